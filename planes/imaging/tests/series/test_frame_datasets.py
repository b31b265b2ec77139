"""One frame's data set, asked for by number."""

from __future__ import annotations

import pytest
from pydicom import Dataset
from pydicom.sequence import Sequence

from numbat_imaging.series.forms.functional_groups import frame_dataset
from numbat_registries import Refusal


@pytest.mark.parametrize("groups", [None, 0, 1])
def test_a_frame_that_no_group_describes_is_refused(groups: int | None) -> None:
    ds = Dataset()
    ds.SharedFunctionalGroupsSequence = Sequence([Dataset()])
    if groups is not None:
        ds.PerFrameFunctionalGroupsSequence = Sequence(Dataset() for _ in range(groups))
    with pytest.raises(Refusal) as caught:
        frame_dataset(ds, frame=1, file="a file")
    assert caught.value.code == "IMG-1310"
    assert caught.value.diagnostic.fields["groups"] == (groups or 0)
