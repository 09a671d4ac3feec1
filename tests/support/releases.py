"""Releases of a project ``demo``, laid over an expectation.

release(wheel("cp312", "x86_64"), platforms={"x86_64": {"accelerator": "cuda"}})
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Any

from packaging.version import Version

from tests.support.wheel_facts import facts_of
from tests.support.wheels import WheelBuilder
from wheel_checks.facts.accelerator.verdict import AcceleratorFacts
from wheel_checks.facts.release import FileInRelease, ReleaseFacts, ReleaseFile, Told, lay_out
from wheel_checks.facts.release_expectation import parse_release_expectation

TODAY = date(2026, 11, 20)
BOTH: dict[str, dict[str, Any]] = {"x86_64": {}, "aarch64": {}}


def toml(value: Any) -> str:
    """A value as TOML writes it."""
    if isinstance(value, list):
        return f"[{', '.join(map(toml, value))}]"
    if isinstance(value, bool):
        return str(value).lower()
    return f'"{value}"' if isinstance(value, str) else str(value)


def expectation_text(platforms: Mapping[str, Mapping[str, Any]] = BOTH, more: str = "", **top: Any) -> str:
    """An expectation file: Python 3.12 on manylinux_2_28 of each platform, unless the arguments say otherwise."""
    lines = [
        f"{key.replace('_', '-')} = {toml(value)}"
        for key, value in ({"project": "demo", "pythons": ["3.12"]} | top).items()
    ]
    for name, keys in platforms.items():
        row = {"name": name, "tags": [f"manylinux_2_28_{name}"], **keys}
        lines += ["[[platform]]", *(f"{key.replace('_', '-')} = {toml(value)}" for key, value in row.items())]
    return "\n".join([*lines, more])


def wheel(
    python: str = "cp312", machine: str = "x86_64", version: str = "1.0", build: str = "", **fields: Any
) -> ReleaseFile:
    """A wheel of demo, known by its name; ``fields`` are those of :class:`ReleaseFile`."""
    stem = "-".join(filter(None, ("demo", version, build)))
    return ReleaseFile(f"{stem}-{python}-{python}-manylinux_2_28_{machine}.whl", **fields)


def built(accelerator: str, version: str = "", local: str = "") -> AcceleratorFacts:
    """What was found out about an accelerator."""
    return AcceleratorFacts(accelerator, version, local, ())


def with_metadata(machine: str, *requires: str, requires_python: str = ">=3.10") -> ReleaseFile:
    """A wheel with this METADATA."""
    builder = WheelBuilder("demo", "1.0", f"cp312-cp312-manylinux_2_28_{machine}")
    facts = facts_of(builder.metadata(requires=requires, requires_python=requires_python))
    return ReleaseFile(builder.file_name, metadata=facts.metadata)


def of_size(size: int, python: str = "cp312", machine: str = "x86_64") -> ReleaseFile:
    """A wheel of so many bytes."""
    return wheel(python, machine, sizes=(Told("the file as served", size),))


def release(
    *files: ReleaseFile, platforms: Mapping[str, Mapping[str, Any]] = BOTH, more: str = "", **top: Any
) -> ReleaseFacts:
    """The files over the matrix of version 1.0; the other arguments are those of :func:`expectation_text`."""
    expectation = parse_release_expectation(expectation_text(platforms, more, **top).encode())
    return lay_out(expectation, Version("1.0"), files, TODAY)


def first(facts: ReleaseFacts) -> FileInRelease:
    """The first file, next to its release."""
    return FileInRelease(facts.files[0], facts)
