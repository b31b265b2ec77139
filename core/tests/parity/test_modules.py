"""Every module of torch's module database against ours: state, text, results, gradients."""

from __future__ import annotations

from collections.abc import Iterator

import modinfo
import pytest
import torch

TYPES = (torch.float32, torch.float64)


@pytest.fixture(autouse=True)
def _torch_on_one_thread() -> Iterator[None]:
    """The cases are so small that torch's threads only wait for one another."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def test_every_module_of_torchs_database_is_mapped(record_property: pytest.RecordProperty) -> None:
    names = modinfo.mapped()
    record_property("modules", f"{len(names)}/{len(modinfo.INFOS)}")
    print(f"modules: {len(names)} of {len(modinfo.INFOS)} mapped")
    assert sorted(set(modinfo.INFOS) - set(names)) == []


@pytest.mark.parametrize("name", modinfo.mapped())
def test_module_gives_torchs_results_and_gradients(name: str) -> None:
    info = modinfo.INFOS[name]
    faults, compared = [], 0
    for dtype in TYPES:
        if dtype not in info.supported_dtypes("cpu"):
            continue
        for training in (True, False) if info.train_and_eval_differ else (True,):
            for case in modinfo.spread(modinfo.cases(name, dtype, training)):
                compared += 1
                faults += [
                    f"{case.description} {dtype} training={training}: {one}"
                    for one in modinfo.compare(case, dtype, training)
                ]
    assert faults == []
    assert compared > 0


@pytest.mark.parametrize("name", modinfo.mapped())
def test_module_begins_with_torchs_values_and_text(name: str) -> None:
    faults = [
        f"{case.description}: {one}"
        for case in modinfo.spread(modinfo.cases(name, torch.float32, True))
        for one in modinfo.begins_alike(case)
    ]
    assert faults == []
