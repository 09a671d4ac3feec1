"""Hints at a wheel's accelerator: names of members, version.py, requirements. ``content`` has the evidence of its code.

Each is read on its own, so that they can contradict each other and the content. The names are data:
``wheel_checks/data/accelerators.toml``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from packaging.markers import UndefinedComparison, UndefinedEnvironmentName
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from wheel_checks.data import load
from wheel_checks.formats.wheel.version_file import VersionFile
from wheel_checks.phrases import plural, summarised

CUDA, ROCM, XPU, CPU = "cuda", "rocm", "xpu", "cpu"
CONTENT, MEMBERS, VERSION = "content", "members", "version.py"
GPU = (CUDA, ROCM, XPU)  # in the order in which they are named when a wheel supports several
_LONGEST_NAME = 1_000  # characters; patterns take quadratic time, and no file system takes longer names
_NATIVE = (".so", ".dll", ".pyd", ".bc", ".fatbin", ".cubin", ".hsaco", ".dylib", "ptxas")
_LOOSE = (".cubin", ".hsaco")


@dataclass(frozen=True, slots=True)
class Signal:
    """The statement of one source. ``name`` is "content", "members", "version.py" or "requirements".

    ``accelerators`` are cuda, rocm, xpu (several if the wheel supports several), or cpu alone; empty without a hint.
    ``version`` is the version of the first one as far as this source shows ("12.8", "13", ""). ``detail`` is the
    observed value for people, ``source`` the file it was read from.
    """

    name: str
    accelerators: tuple[str, ...]
    version: str
    detail: str
    source: str

    @property
    def says(self) -> str:
        """The beginning of a sentence: "members say", "version.py says"."""
        return f"{self.name} say" if self.name.endswith("s") else f"{self.name} says"


def active_requirements(
    requirements: Iterable[Requirement], environment: Mapping[str, str], extra: str = ""
) -> list[Requirement]:
    """The requirements whose marker (PEP 508) is true in ``environment`` with an extra, by default without any.

    Markers that cannot be evaluated are omitted; :func:`marker_fault` gives the reason.
    """
    return [r for r in requirements if not marker_fault(r, environment) and _holds(r, environment, extra)]


def marker_fault(requirement: Requirement, environment: Mapping[str, str]) -> str:
    """Why the requirement's marker has no value in ``environment`` ("" when it has one), though its syntax is right."""
    try:
        _holds(requirement, environment)
    except UndefinedComparison as error:
        return str(error)
    except UndefinedEnvironmentName as error:
        return f"the variable {error} is missing"
    return ""


def _holds(requirement: Requirement, environment: Mapping[str, str], extra: str = "") -> bool:
    return requirement.marker is None or requirement.marker.evaluate({**environment, "extra": extra})


@cache
def _patterns(table: str) -> list[tuple[re.Pattern[str], dict[str, Any]]]:
    return [(re.compile(row["pattern"]), row) for row in load("accelerators")[table]]


def _cuda_version(digits: str) -> str:
    """A CUDA version as file names write it, with its dot: 130 -> 13.0, 128 -> 12.8, 13 -> 13."""
    return f"{digits[:2]}.{digits[2:]}" if len(digits) > 2 else digits


def _version_in(match: re.Match[str]) -> str:
    return _cuda_version(next((text for text in match.groupdict().values() if text), ""))


@dataclass(frozen=True, slots=True)
class _Shown:
    """A member that shows an accelerator, and the version that its name shows ("" if none)."""

    accelerator: str
    text: str
    version: str
    is_runtime: bool


def is_named_native(member: str) -> bool:
    """True for a member that is named like native code: a library, a compiler, or GPU code by itself."""
    return member.endswith(_NATIVE) or ".so." in member


def bundles_cuda_runtime(members: Iterable[str]) -> bool:
    """True when the CUDA runtime itself is among the members, so that no requirement must provide it."""
    return any(shown.is_runtime for shown in _shown_by_members(members))


def member_signal(members: Sequence[str]) -> Signal:
    """The hint in the names of the wheel's members, and in its own name."""
    source = "central directory"
    shown = _shown_by_members(members)
    shown += _shown_by_name(members, {item.accelerator for item in shown})
    if not shown:
        return Signal("members", (), "", "no member name shows an accelerator", source)
    accelerators = tuple(name for name in GPU if any(item.accelerator == name for item in shown))
    texts = dict.fromkeys(item.text for item in shown if item.accelerator == accelerators[0])
    detail = ", ".join(list(texts)[:3])
    versions = sorted({item.version for item in shown if item.version})
    if len(versions) > 2 or len({version.partition(".")[0] for version in versions}) > 1:
        detail += f" (CUDA {', '.join(versions)})"
    return Signal("members", accelerators, _in_common(versions), detail, source)


def _in_common(versions: Sequence[str]) -> str:
    """The common prefix of all versions: 13.0 of 13 and 13.0, 12 of 12.6 and 12.8, nothing of 12 and 13."""
    exact = {version for version in versions if "." in version}
    majors = {version.partition(".")[0] for version in versions}
    if len(majors) != 1:
        return ""
    return exact.pop() if len(exact) == 1 else majors.pop()


def _shown_by_members(members: Iterable[str]) -> list[_Shown]:
    named = (m for m in members if is_named_native(m) and len(m) <= _LONGEST_NAME)
    # One example represents thousands of cubins in one folder.
    native = {m.rpartition("/")[0] + m[m.rindex(".") :] if m.endswith(_LOOSE) else m: m for m in named}.values()
    return [
        _Shown(row["accelerator"], member, _version_in(match), row.get("bundles_runtime", False))
        for member in native
        for pattern, row in _patterns("member")
        if (match := pattern.search(member))
    ]


def _shown_by_name(members: Iterable[str], already: set[str]) -> list[_Shown]:
    """A version in the package's own name, unless the members show only other accelerators."""
    name = next((m.partition("-")[0] for m in members if m.partition("/")[0].endswith(".dist-info")), "")
    return [
        _Shown(row["accelerator"], name, _version_in(match), False)
        for pattern, row in _patterns("name")
        if (match := pattern.search(name)) and (row["accelerator"] in already or not already)
    ]


def version_signal(files: Sequence[VersionFile]) -> tuple[Signal, str]:
    """The signal of ``*/version.py``, and the full version that it states."""
    for file in files:
        stated = str(file.values.get("__version__") or "")
        local = stated.partition("+")[2]
        named = {name: file.values[name] for name in ("cuda", "hip", "rocm", "xpu") if name in file.values}
        text = _assignments(stated, named)
        for name, accelerator in (("cuda", CUDA), ("hip", ROCM), ("rocm", ROCM), ("xpu", XPU)):
            if value := named.get(name):
                return Signal("version.py", (accelerator,), leading_version(str(value)), text, file.member), stated
        if match := re.match(r"cu(\d{2,3})(?:\W|$)", local):
            return Signal("version.py", (CUDA,), _cuda_version(match.group(1)), text, file.member), stated
        if match := re.match(r"(rocm|xpu|cpu)(.*)", local):
            return Signal("version.py", (match.group(1),), leading_version(match.group(2)), text, file.member), stated
        if "cuda" in named:
            return Signal("version.py", (CPU,), "", text, file.member), stated
    stated = str(files[0].values.get("__version__") or "") if files else ""
    detail = f"__version__ = {stated!r}" if stated else "no */version.py shows an accelerator"
    return Signal("version.py", (), "", detail, files[0].member if files else ""), stated if "+" in stated else ""


def _assignments(version: str, named: Mapping[str, object]) -> str:
    """The assignments worth showing: the version, and the accelerators that are set, or that none is."""
    shown = {"__version__": version} if version else {}
    shown |= {name: str(value) for name, value in named.items() if value}
    unset = [name for name, value in named.items() if not value]
    parts = [f"{name} = {value!r}" for name, value in shown.items()]
    if unset and not any(named.values()):
        parts.append(f"{' = '.join(unset)} = None")
    return ", ".join(parts)


def leading_version(text: str) -> str:
    """The numbers at the beginning, of at most nine digits each: 7.1.25424 of "7.1.25424-4179531dcd", or ""."""
    match = re.match(r"\d{1,9}(?:\.\d{1,9})*(?!\d)", text, re.ASCII)
    return match.group() if match else ""


def requirement_signal(
    requirements: Sequence[Requirement], environment: Mapping[str, str], elsewhere: Sequence[Mapping[str, str]]
) -> Signal:
    """The signal of the requirements that provide an accelerator's libraries on the target."""
    here = _accelerator_requirements(active_requirements(requirements, environment))
    target = f"{environment.get('sys_platform', '')} {environment.get('platform_machine', '')}"
    if here:
        accelerators = tuple(name for name in GPU if any(found == name for _, found, _ in here))
        # Numbers say more than names: 12.8 (a pin of the runtime) before 12 (the suffix of a name).
        versions = [v for _, found, v in here if v and found == accelerators[0]]
        version = max(versions, key=lambda v: v.count("."), default="")
        shown = [str(requirement).partition(";")[0].strip() for requirement, _, _ in here]
        detail = f"{summarised(shown, 2)}: active on {target}"
        return Signal("requirements", accelerators, version, detail, "METADATA")
    for other in elsewhere:
        if absent := _accelerator_requirements(active_requirements(requirements, other)):
            detail = (
                f"{plural(len(absent), 'requirement')} such as {absent[0][0].name} "
                f"active on {other['sys_platform']} {other['platform_machine']}, none on {target}"
            )
            return Signal("requirements", (CPU,), "", detail, "METADATA")
    return Signal("requirements", (), "", "no requirement is a library of an accelerator", "METADATA")


def _accelerator_requirements(requirements: Iterable[Requirement]) -> list[tuple[Requirement, str, str]]:
    """Each requirement that provides an accelerator, with the accelerator and the version that it shows."""
    found = []
    for requirement in requirements:
        for pattern, row in _patterns("requirement"):
            if match := pattern.search(canonicalize_name(requirement.name)):
                version = _pinned(requirement) if row["version"] == "pin" else _version_in(match)
                found.append((requirement, row["accelerator"], version))
    return found


def _pinned(requirement: Requirement) -> str:
    """Major and minor of an exact pin ("12.8" of ``==12.8.90``), the major of ``==13.*``, else ""."""
    for specifier in requirement.specifier:
        if specifier.operator == "==":
            return ".".join(leading_version(specifier.version).split(".")[:2])
    return ""
