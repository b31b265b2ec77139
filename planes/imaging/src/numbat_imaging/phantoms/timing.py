"""Scans of the phantom that say when their slices were acquired, rightly, wrongly or in part."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from pydicom import Dataset

from numbat_imaging.phantoms import vendor_forms
from numbat_imaging.phantoms.enhanced import enhanced_object
from numbat_imaging.phantoms.phantom import Phantom, write_datasets

if TYPE_CHECKING:
    from numbat_imaging.volume import Volume

Clock = Callable[[int, float], float]

#: RepetitionTime of the phantom.
REPETITION_MS = 2000.0
_RUN = replace(vendor_forms.AXIAL, shape=(8, 6, 10), volumes=3)

#: Of ten slices: every second one first, 60 ms apart.
INTERLEAVED_MS = vendor_forms.acquisition_times_ms(10)
_FALLING_MS = [60.0 * (9 - k) for k in range(10)]
_PAIRS_MS = [60.0 * (k % 5) for k in range(10)]


@dataclass(frozen=True)
class Timed:
    """A scan, and the slice times that a right reader finds: in s, in the order of k; or None.

    `code`: what it says about them.
    """

    build: Callable[[], list[Dataset]]
    slice_times_s: tuple[float, ...] | None
    says: str
    code: str | None = None


def read_timed(name: str) -> Volume:
    """The one volume of the scan that SCANS calls `name`, as `read_series` gives it."""
    return read_datasets(SCANS[name].build())


def read_datasets(datasets: Sequence[Dataset]) -> Volume:
    """`read_series` on data sets, by way of a folder that goes away."""
    from numbat_imaging.volume import read_series

    with TemporaryDirectory() as folder:
        write_datasets(list(datasets), Path(folder))
        return read_series(folder)


# -- tiles ---------------------------------------------------------------------------------------


def _mosaics(*times_ms: Sequence[float] | None, phantom: Phantom = _RUN) -> list[Dataset]:
    """A mosaic for each of `times_ms`, which are those of its tiles."""
    left = iter(times_ms)

    def entries(image: dict[str, Sequence[str]], series: dict[str, Sequence[str]]) -> None:
        image["MosaicRefAcqTimes"] = [f"{time:.8f}" for time in next(left) or ()]
        asked = "sSliceArray.ucMode\t = \t4\nlDelayTimeInTR\t = \t500000\n### ASCCONV END"
        protocol = series["MrPhoenixProtocol"][0]
        series["MrPhoenixProtocol"] = [protocol.replace("### ASCCONV END", asked)]

    return vendor_forms.mosaics(replace(phantom, volumes=len(times_ms)), entries=entries)


# -- slices of their own -------------------------------------------------------------------------


def _slices(
    manufacturer: str, change: Callable[[Dataset, int, int], None], phantom: Phantom = _RUN
) -> list[Dataset]:
    """Single-frame slices; `change` gets each with its volume t and its place k."""
    scans = []
    for t in range(phantom.volumes):
        for k, ds in enumerate(phantom.volume_slices(t)):
            ds.Manufacturer = manufacturer
            change(ds, t, k)
            scans.append(ds)
    return scans


def _timer(ds: Dataset, seconds: float) -> None:
    ds.private_block(0x0021, "GEMS_RELA_01", create=True).add_new(0x5E, "DS", f"{seconds:.6f}")


def _ge(change: Callable[[Dataset, int, float], None], times_ms: Sequence[float]) -> list[Dataset]:
    """GE's slices; `change` gets each with its volume and the moment of the slice in the run."""
    return _slices(
        "GE MEDICAL SYSTEMS", lambda ds, t, k: change(ds, t, t * REPETITION_MS + times_ms[k])
    )


def _ge_two_clocks() -> list[Dataset]:
    def change(ds: Dataset, t: int, k: int) -> None:
        _timer(ds, t * 2 + INTERLEAVED_MS[k] / 1000)
        ds.TriggerTime = f"{t * REPETITION_MS + _FALLING_MS[k]:.1f}"

    return _slices("GE MEDICAL SYSTEMS", change)


def _ge_protocol(phantom: Phantom = _RUN, **lines: str) -> list[Dataset]:
    told = {"IOPT": "EPI, FMRI", "NOSLC": "10", "SLICEORDER": "1", **lines}
    content = "".join(f'{name} "{value}"\n' for name, value in told.items())
    packed = gzip.compress(content.encode(), mtime=0)

    def change(ds: Dataset, t: int, k: int) -> None:
        block = ds.private_block(0x0025, "GEMS_SERS_01", create=True)
        data = len(packed).to_bytes(4, "little") + packed
        block.add_new(0x1B, "OB", data + b"\0" * (len(data) % 2))

    return _slices("GE MEDICAL SYSTEMS", change, phantom)


def _clock_text(ms: float) -> str:
    """A moment as DICOM TM, of a scan that begins 10 s before midnight."""
    seconds = (86_390 + ms / 1000) % 86_400
    return f"{int(seconds // 3600):02d}{int(seconds % 3600 // 60):02d}{seconds % 60:09.6f}"


def _clocked(
    maker: str, times_ms: Sequence[float], *, start_ms: float = 0.0, dated: bool = True
) -> list[Dataset]:
    def change(ds: Dataset, t: int, k: int) -> None:
        moment = start_ms + t * REPETITION_MS + times_ms[k]
        ds.AcquisitionTime = _clock_text(moment)
        if not dated:
            del ds.AcquisitionDate
        elif moment >= 10_000:
            ds.AcquisitionDate = "20200103"

    return _slices(maker, change)


def _two_siemens_clocks() -> list[Dataset]:
    """The private clock of the first volume is that of another scan."""
    scans = _clocked("SIEMENS", _PAIRS_MS)
    for index, ds in enumerate(scans):
        t, k = divmod(index, 10)
        after = _PAIRS_MS[(k + 1) % 10] if t == 0 else t * REPETITION_MS + _PAIRS_MS[k]
        block = ds.private_block(0x0021, "SIEMENS MR SDI 02", create=True)
        block.add_new(0x04, "DS", f"{after / 1000:.4f}")
    return scans


def _enhanced() -> list[Dataset]:
    return [enhanced_object(_clocked("NUMBAT", INTERLEAVED_MS))]


def _seconds(times_ms: Sequence[float]) -> tuple[float, ...]:
    return tuple(time / 1000 for time in times_ms)


_GOOD = _seconds(INTERLEAVED_MS)
_BACKWARD = replace(_RUN, step_lps_mm=(0.0, 0.0, -2.0))
_OTHER_MS = [60.0 * ((3 * k) % 10) for k in range(10)]
_LONG_MS = [5 * time for time in INTERLEAVED_MS]
#: Ten slices, second of each pair first, over RepetitionTime less a pause of 500 ms.
_BY_ORDER = tuple(0.15 * ((k // 2) + (5 if k % 2 == 0 else 0)) for k in range(10))
_BY_GE_ORDER = tuple(0.2 * ((k // 2) + (0 if k % 2 == 0 else 5)) for k in range(10))

SCANS: dict[str, Timed] = {
    "mosaics": Timed(
        lambda: _mosaics(*[INTERLEAVED_MS] * 3), _GOOD, "times of the tiles, the same in all"
    ),
    "mosaics-backward": Timed(
        lambda: _mosaics(*[INTERLEAVED_MS] * 3, phantom=_BACKWARD),
        _GOOD[::-1],
        "tiles against the normal: the last tile is the first slice",
    ),
    "mosaics-first-corrupt": Timed(
        lambda: _mosaics(_OTHER_MS, INTERLEAVED_MS, INTERLEAVED_MS),
        _GOOD,
        "the first volume has the times of another scan (dcm2niix 704)",
        "IMG-1709",
    ),
    "mosaics-first-long": Timed(
        lambda: _mosaics(_LONG_MS, INTERLEAVED_MS),
        _GOOD,
        "the first of two volumes takes longer than RepetitionTime",
        "IMG-1709",
    ),
    "mosaics-no-majority": Timed(
        lambda: _mosaics(_OTHER_MS, INTERLEAVED_MS, _FALLING_MS),
        None,
        "three volumes, three orders",
        "IMG-1710",
    ),
    "mosaics-all-long": Timed(
        lambda: _mosaics(_LONG_MS, _LONG_MS),
        None,
        "all volumes take longer than RepetitionTime",
        "IMG-1710",
    ),
    "mosaics-order-alone": Timed(
        lambda: _mosaics(None, None),
        _BY_ORDER,
        "no times, only the protocol's interleaved order and its pause",
        "IMG-1711",
    ),
    "grids": Timed(lambda: vendor_forms.grids(_RUN), _GOOD, "United Imaging's times of the tiles"),
    "ge-timer": Timed(
        lambda: _ge(lambda ds, t, ms: _timer(ds, ms / 1000), INTERLEAVED_MS), _GOOD, "in seconds"
    ),
    "ge-timer-fine": Timed(
        lambda: _ge(lambda ds, t, ms: _timer(ds, ms * 10), INTERLEAVED_MS), _GOOD, "in 0.1 ms"
    ),
    "ge-trigger": Timed(
        lambda: _ge(lambda ds, t, ms: setattr(ds, "TriggerTime", f"{ms + 60:.1f}"), _FALLING_MS),
        _seconds(_FALLING_MS),
        "TriggerTime marks the end of each slice",
    ),
    "ge-two-clocks": Timed(
        _ge_two_clocks, None, "timer and TriggerTime name different orders", "IMG-1710"
    ),
    "ge-protocol": Timed(_ge_protocol, _BY_GE_ORDER, "only the order in the protocol", "IMG-1711"),
    "ge-protocol-backward": Timed(
        lambda: _ge_protocol(_BACKWARD), _BY_GE_ORDER[::-1], "slices from head to foot", "IMG-1711"
    ),
    "ge-protocol-multiband": Timed(
        lambda: _ge_protocol(MBACCEL="2"), None, "an order that says nothing of pairs"
    ),
    "siemens-clock": Timed(
        lambda: _clocked("SIEMENS", INTERLEAVED_MS), _GOOD, "AcquisitionTime of every slice"
    ),
    "siemens-midnight": Timed(
        lambda: _clocked("SIEMENS", INTERLEAVED_MS, start_ms=7_800.0), _GOOD, "over midnight"
    ),
    "siemens-midnight-undated": Timed(
        lambda: _clocked("SIEMENS", INTERLEAVED_MS, start_ms=7_800.0, dated=False),
        _GOOD,
        "over midnight, without a date",
    ),
    "siemens-two-clocks": Timed(
        _two_siemens_clocks, _seconds(_PAIRS_MS), "two slices at once, a corrupt first volume"
    ),
    "enhanced": Timed(_enhanced, _GOOD, "FrameAcquisitionDateTime of every frame"),
    "philips-clock": Timed(
        lambda: _clocked("Philips Medical Systems", INTERLEAVED_MS),
        None,
        "times that are not those of the acquisition",
    ),
}
