"""The fourth axis of a stack: which volumes it holds, by a key that the files state."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import combinations, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from numbat_imaging.geometry.tolerances import Tolerances
from numbat_imaging.series.instance import Instance
from numbat_registries import Diagnostic, notice, refuse

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class FourthAxis:
    """What the fourth index of a volume counts.

    `name` is time, diffusion, cardiac-phase, acquisition, dimension or instance-order; `values` has
    one entry for each volume, in `unit` ("" for a plain number); clock times count from the first
    volume. `key` is the header value that names the axis.
    """

    name: str
    values: tuple[float, ...]
    unit: str = ""
    key: str = ""


@dataclass(frozen=True, slots=True)
class Key:
    """A header value that may tell the volumes of one stack apart.

    `is_one_state`: no volume holds images with several of its values, whatever else names the axis.
    """

    name: str
    axis: str
    unit: str
    value: Callable[[Instance], Hashable | None]
    is_one_state: bool = False


def _diffusion(instance: Instance) -> Hashable | None:
    gradient = instance.gradient
    if gradient is None:
        return None
    direction = gradient.direction_lps
    rounded = tuple(round(part, 4) for part in direction) if direction is not None else None
    return (round(gradient.b_value_s_mm2, 3), rounded)


#: Counting from a near day keeps microseconds exact.
_YEAR_2000 = datetime(2000, 1, 1).toordinal()


def clock_s(text: str | None) -> float | None:
    """A DICOM TM as seconds since midnight, a DT as seconds since 2000; None when it is neither."""
    if not text:
        return None
    digits = text.split("+")[0].split("-")[0]
    dated = len(digits.split(".")[0]) > 8
    clock = digits[8:] if dated else digits
    try:
        days = datetime.strptime(digits[:8], "%Y%m%d").toordinal() - _YEAR_2000 if dated else 0
    except ValueError:
        return None
    whole, _, fraction = clock.partition(".")
    if not whole.isdigit() or len(whole) not in (2, 4, 6) or (fraction and not fraction.isdigit()):
        return None
    hours, minutes, seconds = int(whole[:2]), int(whole[2:4] or 0), int(whole[4:6] or 0)
    return days * 86400 + hours * 3600 + minutes * 60 + seconds + float(f"0.{fraction or 0}")


#: Tried in this order; the first key (or pair of keys) under which every volume has every position
#: exactly once names the axis.
KEYS = (
    Key("TemporalPositionIdentifier", "time", "", lambda i: i.temporal_position, True),
    Key("b-value and gradient direction", "diffusion", "s/mm2", _diffusion, True),
    Key("AcquisitionNumber", "acquisition", "", lambda i: i.acquisition_number),
    Key("TriggerTime", "cardiac-phase", "ms", lambda i: i.trigger_time_ms),
    Key("AcquisitionTime", "time", "s", lambda i: clock_s(i.acquisition_time)),
    Key("ContentTime", "time", "s", lambda i: clock_s(i.content_time)),
)

#: What the dimensions that enhanced objects list count; others are called by their own name.
_DIMENSION_AXES = {
    "TemporalPositionIndex": "time",
    "TemporalPositionTimeOffset": "time",
    "DiffusionBValue": "diffusion",
    "DiffusionGradientOrientation": "diffusion",
    "NominalCardiacTriggerDelayTime": "cardiac-phase",
}

#: Names that a caller may ask for.
AXIS_CHOICES = (*dict.fromkeys(key.axis for key in KEYS), "dimension", "instance-order")


def keys_of(instances: Sequence[Instance]) -> tuple[Key, ...]:
    """The keys by which the volumes of these instances may be told apart.

    The dimensions of an enhanced object come last: their indices say less than the values that
    they stand for.
    """
    names = [name for name, _ in instances[0].dimensions]
    dimensions = (
        Key(f"dimension {name}", _DIMENSION_AXES.get(name, "dimension"), "", _index_along(name))
        for name in names
    )
    return (*KEYS, *dimensions)


def _index_along(dimension: str) -> Callable[[Instance], Hashable | None]:
    return lambda instance: dict(instance.dimensions).get(dimension)


@dataclass(frozen=True, slots=True)
class Arrangement:
    """Instances as volumes × slices, and what the fourth index counts (None for one volume)."""

    volumes: tuple[tuple[Instance, ...], ...]
    axis: FourthAxis | None
    notices: tuple[Diagnostic, ...] = ()


def position_classes(
    instances: Sequence[Instance], normal: Array, tolerances: Tolerances
) -> tuple[list[int], Array]:
    """Which slice position each instance has, and the distances along the normal in mm.

    Positions are told apart by their distance along the normal, in upward order.
    """
    distances = np.array([np.asarray(i.position_lps_mm) for i in instances]) @ normal
    order = np.argsort(distances, kind="stable")
    extent = float(distances[order[-1]] - distances[order[0]])
    limit = tolerances.duplicate_limit_mm(extent, len(instances))
    labels = [0] * len(instances)
    levels = [float(distances[order[0]])]
    for previous, current in pairwise(order):
        if distances[current] - distances[previous] > limit:
            levels.append(float(distances[current]))
        labels[current] = len(levels) - 1
    return labels, np.array(levels)


def arrange(
    instances: Sequence[Instance],
    normal: Array,
    *,
    tolerances: Tolerances,
    fourth_axis: str | None = None,
) -> Arrangement:
    """Sort a stack into volumes.

    Raises IMG-1301 when a position holds several images and one volume is otherwise complete,
    IMG-1302 when no key of the files tells the volumes apart, IMG-1303 when some volumes lack
    positions, IMG-1304 for an axis that the files do not support, IMG-1307 when a volume mixes
    temporal positions or diffusion weightings, IMG-1315 when the volumes run along two axes,
    IMG-1317 when a value that names the volumes puts two images of a position into one.
    """
    arrangement = _arrange(instances, normal, tolerances=tolerances, fourth_axis=fourth_axis)
    for volume in arrangement.volumes:
        _refuse_mixed(volume)
    return arrangement


def _refuse_mixed(volume: Sequence[Instance]) -> None:
    for key in KEYS:
        states = Counter(key.value(instance) for instance in volume) if key.is_one_state else {}
        if len(states) > 1:
            raise refuse(
                "IMG-1307",
                mixed=key.name,
                states=len(states),
                images_of_each=sorted(states.values(), reverse=True),
            )


def _arrange(
    instances: Sequence[Instance],
    normal: Array,
    *,
    tolerances: Tolerances,
    fourth_axis: str | None,
) -> Arrangement:
    labels, levels = position_classes(instances, normal, tolerances)
    counts = np.bincount(labels, minlength=len(levels))
    if counts.max() == 1 and fourth_axis is None:
        order = np.argsort(labels)
        return Arrangement((tuple(instances[k] for k in order),), None)
    keys = keys_of(instances)
    for chosen in _candidates([key for key in keys if fourth_axis in (None, key.axis)]):
        volumes = _volumes_by(chosen, instances, labels, len(levels))
        if volumes is not None:
            return _arranged(volumes, chosen)
    if fourth_axis is None:
        _refuse_two_axes(keys, instances, labels, len(levels))
        _refuse_two_at_one_place(keys, instances, labels, counts)
    return _without_key(instances, labels, counts, fourth_axis=fourth_axis)


def _refuse_two_axes(
    keys: Sequence[Key], instances: Sequence[Instance], labels: Sequence[int], levels: int
) -> None:
    """Refuse volumes that are complete only under two keys together, as time × cardiac phase."""
    for first, second in combinations(keys, 2):
        volumes = _volumes_by((first, second), instances, labels, levels)
        if volumes is None:
            continue
        counts = [len({str(pair[k]) for pair in volumes}) for k in (0, 1)]  # type: ignore[index]
        if min(counts) > 1 and counts[0] * counts[1] == len(volumes):
            raise refuse(
                "IMG-1315",
                axes=[first.name, second.name],
                sizes=counts,
                positions=levels,
                volumes=len(volumes),
            )


def _refuse_two_at_one_place(
    keys: Sequence[Key],
    instances: Sequence[Instance],
    labels: Sequence[int],
    counts: NDArray[np.intp],
) -> None:
    """Refuse volumes that are as many as each position has images, but not of one image each."""
    if counts.min() < counts.max():
        return
    for key in keys:
        if not (key.is_one_state or key.name.startswith("dimension ")):
            continue
        values = [key.value(instance) for instance in instances]
        images = Counter(values)
        if None not in images and len(images) == counts[0] > 1:
            raise refuse(
                "IMG-1317",
                axis=key.name,
                volumes=len(images),
                positions=len(counts),
                images_of_each=sorted(images.values(), reverse=True),
                images_astray=len(values) - len(set(zip(values, labels, strict=True))),
            )


def _candidates(keys: Sequence[Key]) -> Iterator[tuple[Key, ...]]:
    yield from ((key,) for key in keys)
    # A diffusion scan repeats its b = 0 volumes: a second key tells the repeats apart. Any other
    # pair would give two volumes one value on the axis, and no order between them.
    repeated = [key for key in keys if key.axis == "diffusion"]
    yield from ((key, other) for key in repeated for other in KEYS if other is not key)


def _volumes_by(
    chosen: tuple[Key, ...], instances: Sequence[Instance], labels: Sequence[int], levels: int
) -> dict[Hashable, list[Instance]] | None:
    groups: dict[Hashable, dict[int, Instance]] = defaultdict(dict)
    for instance, label in zip(instances, labels, strict=True):
        values = tuple(key.value(instance) for key in chosen)
        if None in values or label in groups[values]:
            return None
        groups[values][label] = instance
    if len(groups) < 2 or any(len(group) != levels for group in groups.values()):
        return None
    return {key: [group[k] for k in range(levels)] for key, group in groups.items()}


def _arranged(volumes: dict[Hashable, list[Instance]], chosen: tuple[Key, ...]) -> Arrangement:
    leading = chosen[0]
    # Diffusion has no order of its own: its volumes stay in the order of acquisition.
    ranked = sorted(
        volumes.items(), key=_first_instance_number if leading.axis == "diffusion" else _key
    )
    values = tuple(_axis_value(leading, group[0]) for _, group in ranked)
    if leading.unit == "s":
        values = tuple(round(value - values[0], 6) for value in values)
    axis = FourthAxis(leading.axis, values, leading.unit, leading.name)
    if leading.axis == "time":
        axis = _weighted(axis, [group[0] for _, group in ranked])
    return Arrangement(tuple(tuple(group) for _, group in ranked), axis)


def _weighted(axis: FourthAxis, firsts: Sequence[Instance]) -> FourthAxis:
    # Some scanners number the volumes of a diffusion scan as moments; they differ in weighting.
    gradients = [instance.gradient for instance in firsts]
    if len(set(gradients)) < 2:
        return axis
    known = [gradient.b_value_s_mm2 for gradient in gradients if gradient is not None]
    if len(known) < len(gradients):
        return axis
    return FourthAxis("diffusion", tuple(known), "s/mm2", axis.key)


def _key(item: tuple[Hashable, list[Instance]]) -> Any:
    return item[0]


def _first_instance_number(item: tuple[Hashable, list[Instance]]) -> tuple[tuple[int, int], str]:
    return (min(i.order or (0, 0) for i in item[1]), str(item[0]))


def _axis_value(key: Key, instance: Instance) -> float:
    value = key.value(instance)
    return float(value[0] if isinstance(value, tuple) else value)  # type: ignore[arg-type]


def _without_key(
    instances: Sequence[Instance],
    labels: Sequence[int],
    counts: NDArray[np.intp],
    *,
    fourth_axis: str | None,
) -> Arrangement:
    if fourth_axis not in (None, "instance-order"):
        raise refuse("IMG-1304", asked=fourth_axis, choices=list(AXIS_CHOICES))
    if len(set(counts.tolist())) > 1:
        _refuse_ragged(instances, counts)
    volumes = _by_instance_number(instances, labels, len(counts))
    declared = {i.temporal_positions for i in instances}
    is_time = None not in declared and min(n or 0 for n in declared) >= len(volumes or ())
    if volumes is None or (fourth_axis is None and not is_time):
        raise refuse(
            "IMG-1302",
            positions=len(counts),
            volumes=int(counts[0]),
            tried=[key.name for key in KEYS],
            instance_numbers_cycle=volumes is not None,
        )
    count = len(volumes)
    name = "time" if is_time else "instance-order"
    warning = notice("IMG-1305", axis=name, volumes=count, positions=len(counts))
    return Arrangement(volumes, FourthAxis(name, tuple(map(float, range(count)))), (warning,))


def _refuse_ragged(instances: Sequence[Instance], counts: NDArray[np.intp]) -> None:
    usual = int(np.bincount(counts).argmax())
    if usual == 1:
        raise refuse(
            "IMG-1301",
            positions=len(counts),
            images=len(instances),
            crowded_positions=int(np.sum(counts > 1)),
        )
    raise refuse(
        "IMG-1303",
        positions=len(counts),
        volumes=int(counts.max()),
        short_positions=int(np.sum(counts < counts.max())),
        missing_images=int(np.sum(counts.max() - counts)),
    )


def _by_instance_number(
    instances: Sequence[Instance], labels: Sequence[int], levels: int
) -> tuple[tuple[Instance, ...], ...] | None:
    """Volumes by InstanceNumber, when it runs through all positions in one order again and again.

    Two layouts prove themselves: position by position inside a volume (the sequence of positions
    repeats with the period of one volume), or volume by volume inside a position.
    """
    numbers = [i.order for i in instances]
    if None in numbers or len(set(numbers)) != len(numbers):
        return None
    order = sorted(range(len(instances)), key=lambda k: numbers[k] or (0, 0))
    walk = np.array([labels[k] for k in order])
    count = len(walk) // levels
    by_volume = walk.reshape(count, levels)
    if (by_volume == by_volume[0]).all() and len(set(by_volume[0].tolist())) == levels:
        table = np.array(order).reshape(count, levels)[:, np.argsort(by_volume[0])]
    else:
        by_position = walk.reshape(levels, count)
        if not (by_position == by_position[:, :1]).all():
            return None
        table = np.array(order).reshape(levels, count)[np.argsort(by_position[:, 0])].T
    return tuple(tuple(instances[k] for k in row) for row in table.tolist())
