"""Pairs the wheels of two sets for comparison. Pure.

Wheels are paired by project, version, Python, platform and variant. A property without a common value in both sets is
ignored, since it is the subject of the comparison: of a set for aarch64 and one for x86_64 each Python is paired with
its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from packaging.utils import canonicalize_name

from wheel_checks.formats.wheel.wheel_name import WheelName, wheel_name_or_none
from wheel_checks.targets.of_wheel import target_of_tags


@dataclass(frozen=True, slots=True)
class Pairing:
    """File names: the pairs, and the wheels without a counterpart. Lower builds of the same wheel are omitted."""

    pairs: tuple[tuple[str, str], ...]
    only_a: tuple[str, ...] = ()
    only_b: tuple[str, ...] = ()


def pair_files(a: Iterable[str], b: Iterable[str]) -> Pairing:
    """Pair the wheels of two sets by their file names. Of those alike the latest version counts, and its last build."""
    names_a, names_b = (_parsed(files) for files in (a, b))
    dimensions = [_project, *(d for d in (_version, _python, _platform, _variant) if _in_common(d, names_a, names_b))]
    keyed_a, keyed_b = (_keyed(names, dimensions) for names in (names_a, names_b))
    pairs = tuple((keyed_a[key], keyed_b[key]) for key in sorted(keyed_a.keys() & keyed_b.keys()))
    paired_a, paired_b = {one for one, _ in pairs}, {other for _, other in pairs}
    return Pairing(pairs, _lone(names_a, paired_a), _lone(names_b, paired_b))


def _parsed(files: Iterable[str]) -> dict[str, WheelName | None]:
    """The names, best first: by version and build; None for those that are no names of wheels."""
    names = {file: wheel_name_or_none(file) for file in files}
    known = sorted(((n.parsed_version, n.build_number, file) for file, n in names.items() if n), reverse=True)
    return {file: names[file] for _, _, file in known} | {file: None for file, name in names.items() if name is None}


def _project(name: WheelName) -> str:
    return canonicalize_name(name.distribution)


def _version(name: WheelName) -> str:
    return str(name.parsed_version)


def _python(name: WheelName) -> str:
    return ".".join(sorted({f"{tag.interpreter}-{tag.abi}" for tag in name.tags}))


def _platform(name: WheelName) -> str:
    target = target_of_tags(name.tags)
    return target.machine if target else ".".join(sorted({tag.platform for tag in name.tags}))


def _variant(name: WheelName) -> str:
    return name.variant


Dimension = Callable[[WheelName], str]


def _in_common(dimension: Dimension, a: Mapping[str, WheelName | None], b: Mapping[str, WheelName | None]) -> bool:
    values_a, values_b = ({dimension(name) for name in names.values() if name} for names in (a, b))
    return bool(values_a & values_b)


def _keyed(names: Mapping[str, WheelName | None], dimensions: Sequence[Dimension]) -> dict[tuple[str, ...], str]:
    """The best file of each key."""
    keyed: dict[tuple[str, ...], str] = {}
    for file, name in names.items():
        keyed.setdefault(tuple(d(name) for d in dimensions) if name else (file,), file)
    return keyed


def _lone(names: Mapping[str, WheelName | None], paired: set[str]) -> tuple[str, ...]:
    """The files without a counterpart, but for lower builds of a wheel that has one: no installer takes these."""
    builds = {_but_build(name) for file in paired if (name := names[file])}
    return tuple(
        sorted(f for f, name in names.items() if f not in paired and (not name or _but_build(name) not in builds))
    )


def _but_build(name: WheelName) -> tuple[str, ...]:
    return _project(name), _version(name), _python(name), _platform(name), _variant(name)
