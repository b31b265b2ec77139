"""What the reader makes of every fault: the right thing, with every plane where its file says."""

from __future__ import annotations

from pathlib import Path

import pytest

from numbat_imaging import read_volumes
from numbat_imaging.phantoms import FAULTS, agreement
from numbat_registries import Refusal


@pytest.mark.parametrize("name", sorted(FAULTS))
def test_each_fault_is_read_rightly(tmp_path: Path, name: str) -> None:
    fault = FAULTS[name]
    kind, bound = fault.expected
    fault.write(tmp_path)
    if kind in ("refused", "aside"):
        with pytest.raises(Refusal) as caught:
            read_volumes(tmp_path)
        assert bound in (None, caught.value.code)
        return
    volumes = read_volumes(tmp_path)
    assert len(volumes) == (bound if kind == "split" else 1)
    if volumes[0].voxels.dtype.fields:
        return
    datasets = fault.slices()
    seen = [agreement(datasets, volume.values(), volume.affine_lps_mm) for volume in volumes]
    assert max(found.max_displacement_mm for found in seen) <= (
        bound if kind == "volume" else 0.001
    )
    planes = sum(volume.voxels[0, 0].size for volume in volumes)
    distinct = {(ds.SOPInstanceUID, bytes(ds.PixelData)) for ds in datasets}
    twins = sum(notice.code == "IMG-1105" for volume in volumes for notice in volume.notices)
    assert planes + twins == len(distinct)
