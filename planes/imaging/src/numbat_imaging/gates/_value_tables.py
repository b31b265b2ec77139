"""Modality LUTs and real-world maps against arithmetic on the stored values; part of IMG-G26."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pydicom
from pydicom import Dataset
from pydicom.uid import ExplicitVRBigEndian, ImplicitVRLittleEndian

from numbat_gates import Check
from numbat_imaging.gates._small_phantoms import SIGNED, SMALL, made, read, stored
from numbat_imaging.phantoms import Phantom
from numbat_imaging.phantoms.reading import read_fault
from numbat_imaging.phantoms.value_faults import (
    real_world_item,
    with_modality_lut,
    with_real_world,
    with_values,
)
from numbat_imaging.values.modality_lut import displayed_scale
from numbat_imaging.values.real_world import real_world_scales
from numbat_imaging.values.scales import Scale


def tables(check: Check) -> None:
    ramp = [5 * code + 11 for code in range(192)]
    byte = [(3 * code + 1) % 251 for code in range(191)]
    whole = [(7 * code + 3) % 65521 for code in range(65536)]
    cases = (
        ("a table from 0 on", SMALL, 0, ramp, 16),
        ("stored values beyond both ends of a table", SMALL, 40, ramp[:100], 16),
        ("signed stored values", SIGNED, -32700, ramp[:100], 16),
        ("a first value that only looks signed", replace(SMALL, dtype="uint16"), 40000, [7, 8], 16),
        ("entries of 12 bits", SMALL, 0, [min(4095, 40 * code) for code in range(192)], 12),
        ("bytes, an odd number of them", SMALL, 0, byte, 8),
        ("65536 entries, which the descriptor calls 0", SIGNED, -32768, whole, 16),
    )
    for says, phantom, first, entries, bits in cases:
        for syntax in (phantom.transfer_syntax_uid, ExplicitVRBigEndian, ImplicitVRLittleEndian):
            slices = made(
                replace(phantom, transfer_syntax_uid=syntax),
                with_modality_lut(first, entries, bits=bits),
            )
            volume = read(slices)
            index = np.clip(stored(slices).astype(int) - first, 0, len(entries) - 1)
            name = f"{says}, {pydicom.uid.UID(syntax).name}"
            check.equal(name, volume.voxels, np.array(entries)[index])
        check.equal(f"{says}: type", volume.voxels.dtype.name, "uint8" if bits == 8 else "uint16")
        check.equal(f"{says}: applied", volume.scale.applied, True)
    check.equal("unit of a table of optical densities", volume.scale.unit, "10^-3 OD")
    _more_tables(check, ramp)
    _damaged_tables(check)


def _more_tables(check: Check, ramp: list[int]) -> None:
    words = made(SMALL, with_modality_lut(0, ramp))
    for ds in words:
        item = ds.ModalityLUTSequence[0]
        item.LUTDescriptor = [192, 0, 8]
        item["LUTData"].value = np.arange(192, dtype="<u2").tobytes()
        item.ModalityLUTType = "US"
    volume = read(words)
    check.equal("bytes that lie one to a word", volume.voxels, SMALL.truth_voxels())
    check.equal("bytes stay bytes", volume.voxels.dtype.name, "uint8")
    check.equal("a table of unspecified unit", volume.scale.unit, None)
    for first, signed in ((0x7FFF, 0x7FFF), (0x8000, -0x8000), (0xFFFF, -1)):
        for sign, required in ((0, first), (1, signed)):
            (ds,) = made(replace(SMALL, shape=(8, 6, 1)), with_modality_lut(first, ramp))
            ds.PixelRepresentation = sign
            scale = displayed_scale(ds, file="a phantom")
            found = None if scale is None or scale.table is None else scale.table.first
            check.equal(f"first value {first:#x} of sign {sign}", found, required)
    several = made(SMALL, with_modality_lut(0, ramp))
    del several[2].ModalityLUTSequence
    with_modality_lut(0, ramp[::-1])(several[2:3])
    truth = np.array(ramp)[stored(several)]
    truth[:, :, 2] = np.array(ramp[::-1])[stored(several)[:, :, 2]]
    check.equal("another table in one slice", read(several).voxels, truth)
    beside = made(
        SMALL, with_modality_lut(0, ramp), with_values(RescaleSlope=1, RescaleIntercept=0)
    )
    expected = np.array(ramp)[stored(beside)]
    check.equal("a table beside a rescale that does nothing", read(beside).voxels, expected)
    kept = read(made(SMALL, with_modality_lut(0, ramp)), value_scale="stored")
    check.equal("stored values beside a table", kept.voxels, SMALL.truth_voxels())
    check.equal("stored values have no unit", (kept.scale.name, kept.scale.unit), ("stored", None))


def _damaged_tables(check: Check) -> None:
    def damaged(says: str, slices: list[Dataset]) -> None:
        with check.refuses("IMG-1508", f"a table with {says}"):
            read(slices)

    ramp = list(range(192))
    damaged("an entry too few", made(SMALL, with_modality_lut(0, ramp, count=193)))
    damaged("an entry too many", made(SMALL, with_modality_lut(0, ramp, count=191)))
    damaged("entries of 7 bits", made(SMALL, with_modality_lut(0, ramp, bits=7)))
    damaged("entries of 17 bits", made(SMALL, with_modality_lut(0, ramp, bits=17)))
    damaged("values above its bits", made(SMALL, with_modality_lut(0, [4096] * 192, bits=12)))
    one = [0, 4096, *[0] * 190]
    damaged("one value above its bits", made(SMALL, with_modality_lut(0, one, bits=12)))
    damaged(
        "a rescale beside it",
        made(SMALL, with_modality_lut(0, ramp), with_values(RescaleSlope=2, RescaleIntercept=0)),
    )
    for keyword in ("LUTDescriptor", "LUTData"):
        slices = made(SMALL, with_modality_lut(0, ramp))
        for ds in slices:
            delattr(ds.ModalityLUTSequence[0], keyword)
        damaged(f"no {keyword}", slices)
    slices = made(SMALL, with_modality_lut(0, ramp))
    for ds in slices:
        ds.ModalityLUTSequence.append(ds.ModalityLUTSequence[0])
    damaged("a twin", slices)
    slices = made(SMALL, with_modality_lut(0, ramp))
    slices[0].ModalityLUTSequence[0].LUTDescriptor = [192, 0]
    damaged("a descriptor of two numbers in one slice", slices)
    with check.refuses("IMG-1508", "modality-lut-short"):
        read_fault("modality-lut-short")
    with check.refuses("IMG-1504", "a rescale of colours"):
        read_fault("rescaled-colours")
    coloured = replace(SMALL, dtype="uint8", samples=3, modality="SC", slope=1.0, intercept=0.0)
    check.equal("colours on a scale that does nothing", read(made(coloured)).scale.slope, 1.0)


# -- real-world maps ------------------------------------------------------------------------------


def real_world_maps(check: Check) -> None:
    volume = read_fault("real-world-two-maps", value_scale="real-world:T2")
    check.equal("a map by its label", volume.values(), Phantom().truth_voxels() * 0.5)
    check.equal("unit of a map", (volume.scale.name, volume.scale.unit), ("real-world:T2", "ms"))
    check.equal("a map is not applied", volume.scale.applied, False)
    plain = read_fault("real-world-two-maps")
    check.equal("maps are no default", plain.values(), Phantom().truth_voxels().astype(float))
    with check.refuses("IMG-1506", "which of two maps") as caught:
        read_fault("real-world-two-maps", value_scale="real-world")
    if caught.diagnostic is not None:
        names = caught.diagnostic.fields["offered"]
        check.equal("maps to choose from", names, ["real-world:ADC", "real-world:T2"])
    with check.refuses("IMG-1505", "a label that no map has"):
        read_fault("real-world-two-maps", value_scale="real-world:SUV")
    table = [0.1 * code**2 for code in range(192)]
    for says, phantom, low in (("unsigned", SMALL, 0), ("signed", SIGNED, -32768)):
        for vr in ("US", "SS", "FD"):
            if vr == "SS" and low == 0:
                continue
            ends = (low, low + 191)
            tabled = real_world_item("T", "s", ends, table=table, vr=vr)
            lined = real_world_item("L", "s", ends, line=(0.25, -3.0), vr=vr)
            slices = made(phantom, with_real_world(tabled, lined))
            found = read(slices, value_scale="real-world:T")
            truth = np.array(table)[stored(slices).astype(int) - low]
            check.equal(f"a table of {says} values, range as {vr}", found.values(), truth)
            found = read(slices, value_scale="real-world:L")
            truth = stored(slices) * 0.25 - 3.0
            check.equal(f"a line of {says} values, range as {vr}", found.values(), truth)
    _more_maps(check)
    _mapped_ends(check)
    _damaged_maps(check)
    _undefined(check)


def _more_maps(check: Check) -> None:
    halves = [0.5 * code for code in range(192)]
    fits = read(
        made(SMALL, with_real_world(real_world_item("T", "s", (0, 191), table=halves))),
        value_scale="real-world",
    )
    check.equal("entries that fit single precision", fits.voxels.dtype.name, "float32")
    unnamed = real_world_item("", "1", (0, 191), line=(2.0, 1.0))
    volume = read(made(SMALL, with_real_world(unnamed)), value_scale="real-world")
    check.equal("a map without a label", volume.values(), SMALL.truth_voxels() * 2.0 + 1.0)
    check.equal("no units", (volume.scale.name, volume.scale.unit), ("real-world", None))
    # Range as US although the pixels are signed, and reversed when it is read by their sign.
    wide = made(SIGNED, with_real_world(real_world_item("L", "s", (0, 65535), line=(1.0, 0.0))))
    with check.refuses("IMG-1510", "a range that only its VR gives"):
        read(wide, value_scale="real-world")


def _mapped_ends(check: Check) -> None:
    """First and last value by the sign of the pixels, also at the ends of 16 bits."""
    cases: tuple[tuple[str, tuple[int, int], int | None, tuple[float, float]], ...] = (
        ("US", (0, 0x7FFF), 1, (0, 0x7FFF)),
        ("US", (0x8000, 0x7FFF), 1, (-0x8000, 0x7FFF)),
        ("US", (0xFFFF, 0), 1, (-1, 0)),
        ("US", (0x8000, 0xFFFF), 1, (-0x8000, -1)),
        ("US", (0x8000, 0xFFFF), 0, (0x8000, 0xFFFF)),
        ("SS", (-0x8000, -1), 0, (0x8000, 0xFFFF)),
        ("SS", (-1024, 3071), 0, (-1024, 3071)),
        ("US", (7, 7), 0, (7, 7)),
        ("US", (0xFFFF, 0xFFFF), 1, (-1, -1)),
        ("US", (0xFFFE, 0xFFFF), None, (0xFFFE, 0xFFFF)),
        ("UL", (0, 0x10000), 0, (0, 0x10000)),
        ("SL", (-0x8001, 0), 1, (-0x8001, 0)),
    )
    for vr, written, sign, required in cases:
        item = real_world_item("M", "s", (0, 1), line=(1.0, 0.0))
        item.add_new("RealWorldValueFirstValueMapped", vr, written[0])
        item.add_new("RealWorldValueLastValueMapped", vr, written[1])
        ds = Dataset()
        if sign is not None:
            ds.PixelRepresentation = sign
        ds.RealWorldValueMappingSequence = [item]
        (found,) = real_world_scales(ds, file="a phantom")
        mapped = found.mapped if isinstance(found, Scale) else found.why.code
        check.equal(f"range {written} as {vr} of sign {sign}", mapped, required)


def _damaged_maps(check: Check) -> None:
    def broken(says: str, item: Dataset) -> None:
        slices = made(SMALL, with_real_world(item))
        with check.refuses("IMG-1509", f"a map with {says}") as caught:
            read(slices, value_scale="real-world")
        if caught.diagnostic is not None:
            label = caught.diagnostic.fields["label"]
            check.equal(f"a map with {says}: its label", label, item.LUTLabel)
        volume = read(slices)
        check.equal(f"a map with {says} is in nobody's way", volume.voxels, SMALL.truth_voxels())
        forms = [other.form for other in volume.scale.alternatives]
        check.equal(f"a map with {says} is listed", forms, ["unreadable"])

    broken("an entry too few", real_world_item("M", "s", (0, 191), table=[1.0] * 191))
    broken("no line and no table", real_world_item("M", "s", (0, 191)))
    broken("a slope of 0", real_world_item("M", "s", (0, 191), line=(0.0, 1.0)))
    broken("a range that runs backwards", real_world_item("M", "s", (191, 0), line=(1.0, 0.0)))
    for says, keyword in (
        ("no intercept", "RealWorldValueIntercept"),
        ("no slope", "RealWorldValueSlope"),
        ("no unit", "MeasurementUnitsCodeSequence"),
        ("no first value", "RealWorldValueFirstValueMapped"),
        ("no last value", "RealWorldValueLastValueMapped"),
    ):
        item = real_world_item("M", "s", (0, 191), line=(1.0, 0.0))
        delattr(item, keyword)
        broken(says, item)
    item = real_world_item("M", "s", (0.5, 191.5), table=[1.0] * 192, vr="FD")
    broken("a table between whole numbers", item)


def _undefined(check: Check) -> None:
    with check.refuses("IMG-1510", "stored values beyond a map") as caught:
        read_fault("real-world-range-exceeded", value_scale="real-world:ADC")
    if caught.diagnostic is not None:
        fields = caught.diagnostic.fields
        evidence = [fields[name] for name in ("count", "lowest", "highest", "first", "last")]
        # The fifth slice stores 4096 to 5119.
        check.equal("evidence of what is undefined", evidence, [119, 5001, 5119, 0, 5000])
    item = real_world_item("M", "s", (10, 191), line=(1.0, 0.0))
    with check.refuses("IMG-1510", "stored values below a map"):
        read(made(SMALL, with_real_world(item)), value_scale="real-world")
    padding = with_values(PixelPaddingValue=0, PixelPaddingRangeLimit=9)
    volume = read(made(SMALL, with_real_world(item), padding), value_scale="real-world")
    check.equal("padding needs no value", volume.values(), SMALL.truth_voxels().astype(float))
