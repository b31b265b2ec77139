"""The fourth axis by header values: which of them name it, in which order, and when none do."""

from typing import Any

import numpy as np

from numbat_gates import Check, gate
from numbat_imaging.gates._images import image, names
from numbat_imaging.geometry.tolerances import DEFAULT_TOLERANCES, Tolerances
from numbat_imaging.series.fourth_axis import Arrangement, arrange, clock_s, position_classes
from numbat_imaging.series.gradient import Gradient
from numbat_imaging.series.instance import Instance

_UP = np.array([0.0, 0.0, 1.0])


@gate(
    "IMG-G19",
    phase=1,
    discharges=["IMG-R010"],
    title="Header values tell volumes apart only where every volume has every place once",
)
def axis_keys(check: Check) -> None:
    _clocks(check)
    _places(check)
    _single_keys(check)
    _diffusion(check)
    _two_keys(check)
    _mixed(check)
    _ragged(check)
    _instance_order(check)
    _declared_times(check)


def _arranged(
    images: list[Instance], fourth_axis: str | None = None, tolerances: Tolerances | None = None
) -> Arrangement:
    limits = tolerances or DEFAULT_TOLERANCES
    return arrange(images, _UP, tolerances=limits, fourth_axis=fourth_axis)


def _axis(found: Arrangement) -> tuple[str, tuple[float, ...], str] | None:
    axis = found.axis
    return None if axis is None else (axis.name, axis.values, axis.unit)


def _clocks(check: Check) -> None:
    noon = 12 * 3600
    for text, seconds in (
        (None, None),
        ("", None),
        ("12", noon),
        ("1234", noon + 34 * 60),
        ("123456", noon + 34 * 60 + 56),
        ("123456.25", noon + 34 * 60 + 56.25),
        ("000000", 0),
        ("010203", 3723),
        ("123456-0500", noon + 34 * 60 + 56),
        ("20000101000000", 0),
        ("20000102123456.5", 86400 + noon + 34 * 60 + 56.5),
        ("20000102123456+0100", 86400 + noon + 34 * 60 + 56),
        ("19991231233000", -1800),
        ("2000010212", 86400 + noon),
        ("1", None),
        ("12345", None),
        ("1234567", None),
        ("20000102", None),
        ("20001301120000", None),
        ("12a4", None),
        ("123456.x", None),
        ("123456.", noon + 34 * 60 + 56),
    ):
        measured = clock_s(text)
        if seconds is None:
            check.equal(f"{text!r} is no time", measured, None)
        else:
            check.close(f"{text!r}", measured=measured, required=seconds, atol=1e-9, unit="s")


def _places(check: Check) -> None:
    heights = (4.0, 0.0, 2.005, 2.0, 0.005)
    images = [image(str(number), height) for number, height in enumerate(heights)]
    labels, levels = position_classes(images, _UP, DEFAULT_TOLERANCES)
    check.equal("places from below", labels, [2, 0, 1, 1, 0])
    check.close("their heights", measured=levels, required=np.array([0.0, 2.0, 4.0]), atol=1e-12)
    labels, levels = position_classes(images, -_UP, DEFAULT_TOLERANCES)
    check.equal("places from above", labels, [0, 2, 1, 1, 2])
    required = np.array([-4.0, -2.005, -0.005])
    check.close("their depths", measured=levels, required=required, atol=1e-12)
    exact = Tolerances(duplicate_mm=0.25, position_fraction=1.0)
    close = [image(str(number), height) for number, height in enumerate((0.0, 0.25, 4.0, 4.5))]
    check.equal("on the limit: one place", position_classes(close, _UP, exact)[0], [0, 0, 1, 2])
    # Of thin slices, the limit is a part of their distance.
    for start in (0.0, 100.0):
        heights_of_thin = (start, start + 0.008, start + 0.016)
        thin = [image(str(number), height) for number, height in enumerate(heights_of_thin)]
        labels = position_classes(thin, _UP, DEFAULT_TOLERANCES)[0]
        check.equal(f"slices of 8 micrometres, {start} mm up", labels, [0, 1, 2])


def _two_by_three(**values: tuple[Any, Any]) -> list[Instance]:
    """Two volumes, abc and def from below, in no order; each value is (first's, second's)."""
    placed = [("e", 2, 1), ("a", 0, 0), ("f", 4, 1), ("c", 4, 0), ("d", 0, 1), ("b", 2, 0)]
    return [
        image(name, float(height), **{key: pair[volume] for key, pair in values.items()})
        for name, height, volume in placed
    ]


def _single_keys(check: Check) -> None:
    one = [image("b", 2.0), image("c", 4.0), image("a", 0.0)]
    found = _arranged(one)
    check.equal("one volume", names(found.volumes), ["abc"])
    check.true("one volume has no axis", found.axis is None)
    for key, values, axis in (
        ("temporal_position", (1, 2), ("time", (1.0, 2.0), "")),
        ("acquisition_number", (3, 7), ("acquisition", (3.0, 7.0), "")),
        ("trigger_time_ms", (0.0, 40.0), ("cardiac-phase", (0.0, 40.0), "ms")),
        ("acquisition_time", ("115959.5", "120002"), ("time", (0.0, 2.5), "s")),
        ("content_time", ("115959.5", "120002"), ("time", (0.0, 2.5), "s")),
        ("content_time", ("120000", "120000.1234567"), ("time", (0.0, 0.123457), "s")),
    ):
        for order, due in ((values, ["abc", "def"]), (values[::-1], ["def", "abc"])):
            found = _arranged(_two_by_three(**{key: order}))
            check.equal(f"{key} {order}: volumes", names(found.volumes), due)
            check.equal(f"{key} {order}: axis", _axis(found), axis)
    both = {"temporal_position": (1, 2), "acquisition_number": (2, 1)}
    found = _arranged(_two_by_three(**both))
    check.equal("the first key that serves", _axis(found), ("time", (1.0, 2.0), ""))
    found = _arranged(_two_by_three(**both), "acquisition")
    check.equal("the key that was asked for", names(found.volumes), ["def", "abc"])
    with check.refuses("IMG-1304", "a key that was asked for and does not serve") as caught:
        _arranged(_two_by_three(**both), "cardiac-phase")
    if caught.diagnostic is not None:
        check.equal("what was asked", caught.diagnostic.fields["asked"], "cardiac-phase")
    with check.refuses("IMG-1304", "one volume has no axis to ask for"):
        _arranged([image("abc"[k], 2.0 * k, temporal_position=1) for k in range(3)], "time")
    with check.refuses("IMG-1302", "a value that one image lacks names nothing"):
        images = _two_by_three(acquisition_number=(1, 2))
        _arranged([image("e", 2.0), *images[1:]])


def _diffusion(check: Check) -> None:
    along_i, along_j = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0)
    pairs = {
        "b-values": (Gradient(0.0), Gradient(1000.0)),
        "directions": (Gradient(1000.0, along_i), Gradient(1000.0, along_j)),
    }
    for name, pair in pairs.items():
        for numbers, due in (((1, 2), ["abc", "def"]), ((2, 1), ["def", "abc"])):
            images = _two_by_three(gradient=pair, instance_number=numbers)
            found = _arranged(images)
            check.equal(f"{name}: in order of acquisition", names(found.volumes), due)
            ordered = pair if due[0] == "abc" else pair[::-1]
            values = tuple(gradient.b_value_s_mm2 for gradient in ordered)
            check.equal(f"{name}: axis", _axis(found), ("diffusion", values, "s/mm2"))
    _order_of_acquisition(check)
    # What scanners write with more digits than they mean is one state.
    rough = [Gradient(1000.0, along_i), Gradient(1000.0002, (1.0, 0.00003, 0.0))]
    images = [
        image(name, float(height), gradient=rough[height // 2 % 2], temporal_position=volume)
        for name, height, volume in (("a", 0, 1), ("b", 2, 1), ("c", 0, 2), ("d", 2, 2))
    ]
    check.equal("rounded apart: one state", names(_arranged(images).volumes), ["ab", "cd"])
    for name, other in (
        ("b-values 0.001 apart", Gradient(1000.001, along_i)),
        ("directions 0.0001 apart", Gradient(1000.0, (1.0, 0.0001, 0.0))),
    ):
        images = _two_by_three(gradient=(rough[0], other), instance_number=(1, 2))
        check.equal(f"{name}: two", names(_arranged(images).volumes), ["abc", "def"])


def _order_of_acquisition(check: Check) -> None:
    weak, strong = Gradient(0.0), Gradient(1000.0)
    for name, numbers, first, due in (
        ("interleaved", {"a": 1, "b": 8, "c": 9, "d": 2, "e": 3, "f": 4}, weak, ["abc", "def"]),
        ("interleaved, the strong one first", {"a": 2, "b": 3, "c": 4, "d": 1, "e": 8, "f": 9},
         weak, ["def", "abc"]),
        ("of one volume alone", {"d": 1, "e": 2, "f": 3}, strong, ["abc", "def"]),
        ("absent: by weighting", {}, strong, ["def", "abc"]),
    ):  # fmt: skip
        pair = (first, strong if first is weak else weak)
        images = [
            image(
                i.sop_instance_uid,
                i.position_lps_mm[2] if i.position_lps_mm else 0.0,
                gradient=i.gradient,
                instance_number=numbers.get(i.sop_instance_uid),
            )
            for i in _two_by_three(gradient=pair)
        ]
        found = names(_arranged(images).volumes)
        check.equal(f"diffusion, numbers {name}", found, due)


def _repeats(**extra: Any) -> list[Instance]:
    """Four volumes ab cd ef gh: b = 0, 1000, 0, 1000, numbered in that order."""
    letters = iter("abcdefgh")
    return [
        image(
            next(letters),
            2.0 * place,
            gradient=Gradient(1000.0 * (volume % 2)),
            instance_number=1 + volume * 2 + place,
            **{key: value[volume] for key, value in extra.items()},
        )
        for volume in range(4)
        for place in range(2)
    ]


def _two_keys(check: Check) -> None:
    found = _arranged(_repeats(acquisition_number=(1, 1, 2, 2))[::-1])
    check.equal("repeated b = 0: volumes", names(found.volumes), ["ab", "cd", "ef", "gh"])
    check.equal("repeated b = 0: axis", _axis(found), ("diffusion", (0, 1000, 0, 1000), "s/mm2"))
    with check.refuses("IMG-1302", "repeated b = 0 and no second key"):
        _arranged(_repeats())
    times = [
        image(
            name,
            2.0 * place,
            temporal_position=1 + volume % 2,
            acquisition_number=1 + volume // 2,
        )
        for volume, pair in enumerate(("ab", "cd", "ef", "gh"))
        for place, name in enumerate(pair)
    ]
    with check.refuses("IMG-1315", "times that restart are one of two axes") as caught:
        _arranged(times)
    if caught.diagnostic is not None:
        check.equal("times × acquisitions", caught.diagnostic.fields["sizes"], [2, 2])


def _mixed(check: Check) -> None:
    weighted = [Gradient(b_value) for b_value in (0.0, 1000.0, 1000.0)]
    states: dict[str, list[dict[str, Any]]] = {
        "TemporalPositionIdentifier": [{"temporal_position": t} for t in (1, 2, 2)],
        "b-value and gradient direction": [{"gradient": gradient} for gradient in weighted],
    }
    for name, values in states.items():
        images = [image("abc"[k], 2.0 * k, **value) for k, value in enumerate(values)]
        with check.refuses("IMG-1307", f"one volume of two states, {name}") as caught:
            _arranged(images)
        if caught.diagnostic is not None:
            fields = caught.diagnostic.fields
            shown = (fields["mixed"], fields["states"], list(fields["images_of_each"]))
            check.equal(f"one volume of two states, {name}: evidence", shown, (name, 2, [2, 1]))
    # Acquisition numbers rise within one volume as a matter of course.
    rising = [image("abc"[k], 2.0 * k, acquisition_number=k) for k in range(3)]
    check.equal("acquisitions may differ in a volume", names(_arranged(rising).volumes), ["abc"])


def _ragged(check: Check) -> None:
    crowded = [image(name, height) for name, height in (("a", 0.0), ("b", 2.0), ("c", 4.0))]
    with check.refuses("IMG-1301", "one place has two images") as caught:
        _arranged([*crowded, image("d", 2.0)])
    if caught.diagnostic is not None:
        fields = caught.diagnostic.fields
        shown = [fields[name] for name in ("positions", "images", "crowded_positions")]
        check.equal("one place has two images: evidence", shown, [3, 4, 1])
    rows = ((0.0, 3), (2.0, 3), (4.0, 1), (6.0, 2), (8.0, 3))
    ragged = [image(f"{h}{n}", h) for h, count in rows for n in range(count)]
    with check.refuses("IMG-1303", "three volumes that lack images") as caught:
        _arranged(ragged)
    if caught.diagnostic is not None:
        fields = caught.diagnostic.fields
        names_ = ("positions", "volumes", "short_positions", "missing_images")
        check.equal("volumes that lack images", [fields[n] for n in names_], [5, 3, 2, 3])
    with check.refuses("IMG-1303", "a time that lacks an image"):
        _arranged(_two_by_three(temporal_position=(1, 2))[1:])


def _numbered(order: str, *, start: int = 10, **values: Any) -> list[Instance]:
    """Two volumes abc and def by height, numbered from `start` in this order of names."""
    heights = dict(zip("abcdef", (0.0, 2.0, 4.0, 0.0, 2.0, 4.0), strict=True))
    return [
        image(name, heights[name], instance_number=start + order.index(name), **values)
        for name in "ebdafc"
    ]


def _instance_order(check: Check) -> None:
    for name, order, due in (
        ("volume by volume", "abcdef", ["abc", "def"]),
        ("volume by volume, downwards", "cbafed", ["abc", "def"]),
        ("interleaved within a volume", "bacedf", ["abc", "def"]),
        ("place by place", "adbecf", ["abc", "def"]),
        ("place by place, downwards", "cfbead", ["abc", "def"]),
    ):
        with check.notices("IMG-1305", f"numbers {name}") as said:
            found = _arranged(_numbered(order), "instance-order")
        check.equal(f"numbers {name}: volumes", names(found.volumes), due)
        check.equal(f"numbers {name}: axis", _axis(found), ("instance-order", (0.0, 1.0), ""))
        check.equal(f"numbers {name}: it travels", [n.code for n in found.notices], ["IMG-1305"])
        if said.diagnostic is not None:
            fields = said.diagnostic.fields
            shown = [fields[part] for part in ("axis", "volumes", "positions")]
            check.equal(f"numbers {name}: evidence", shown, ["instance-order", 2, 3])
        _unnamed(check, f"numbers {name}, not asked for", _numbered(order), cycle=True)
    found = _arranged(_numbered("abcdef", start=0), "instance-order")
    check.equal("numbers from 0: volumes", names(found.volumes), ["abc", "def"])
    bare = _numbered("abcdef")
    bare = [i for i in bare if i.sop_instance_uid != "a"] + [image("a", 0.0)]
    _unnamed(check, "one number absent", bare, cycle=False)
    one = [image("cab"[k], (4.0, 0.0, 2.0)[k], instance_number=k, temporal_positions=0)
           for k in range(3)]  # fmt: skip
    found = _arranged(one, "instance-order")
    check.equal("one volume, asked for in its order", names(found.volumes), ["abc"])
    check.equal("one volume: its axis", _axis(found), ("instance-order", (0.0,), ""))
    with check.refuses("IMG-1302", "two images at the only place") as caught:
        _arranged([image("a", instance_number=1), image("b", instance_number=2)])
    if caught.diagnostic is not None:
        fields = caught.diagnostic.fields
        alone = (fields["positions"], fields["volumes"])
        check.equal("two images at the only place: evidence", alone, (1, 2))
    for name, images in (
        ("in no order", _numbered("abdcef")),
        ("forwards and back", _numbered("abcfed")),
        ("absent", _two_by_three()),
        ("given twice", _two_by_three(instance_number=(1, 2))),
    ):
        _unnamed(check, f"numbers {name}", images, cycle=False)
        with check.refuses("IMG-1302", f"numbers {name}, asked for"):
            _arranged(images, "instance-order")


def _unnamed(check: Check, name: str, images: list[Instance], *, cycle: bool) -> None:
    with check.refuses("IMG-1302", name) as caught:
        _arranged(images)
    if caught.diagnostic is not None:
        fields = caught.diagnostic.fields
        shown = [fields[part] for part in ("positions", "volumes", "instance_numbers_cycle")]
        check.equal(f"{name}: evidence", shown, [3, 2, cycle])
        check.equal(f"{name}: keys that were tried", len(fields["tried"]), 6)


def _declared_times(check: Check) -> None:
    """NumberOfTemporalPositions says that the volumes are times, though not which is which."""
    for declared, is_time in ((2, True), (3, True), (1, False), (None, False)):
        images = _numbered("abcdef", temporal_positions=declared)
        if is_time:
            with check.notices("IMG-1305", f"{declared} temporal positions declared"):
                found = _arranged(images)
            axis = ("time", (0.0, 1.0), "")
            check.equal(f"{declared} temporal positions declared: axis", _axis(found), axis)
        else:
            _unnamed(check, f"{declared} temporal positions declared", images, cycle=True)
    partly = _numbered("abcdef", temporal_positions=2)
    fewer = [image(i.sop_instance_uid, 0.0 if i.position_lps_mm is None else i.position_lps_mm[2],
                   instance_number=i.instance_number, temporal_positions=1 + (k > 2))
             for k, i in enumerate(partly)]  # fmt: skip
    _unnamed(check, "two numbers of temporal positions declared", fewer, cycle=True)
    without = [*_numbered("abcdef")[:1], *partly[1:]]
    _unnamed(check, "temporal positions declared by some", without, cycle=True)
