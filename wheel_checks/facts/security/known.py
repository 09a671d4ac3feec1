"""Start-up code, import names and names of programs that are known, from dated tables."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from functools import cache

from packaging.utils import canonicalize_name

from wheel_checks.data import load
from wheel_checks.facts.security.places import package_of, place_of

_SHORTEST_LOOKALIKE = 5  # characters of a name: shorter ones are near each other by chance
_INITIAL = ("/__init__.py", "/__init__.pyc")
_BUILD = re.compile(
    r"-(?:cu(?:da)?\d+x?|rocm(?:-\d+)*)$"
)  # ends the name of a project with the accelerator of its build
_CONFUSED = (("rn", "m"), ("vv", "w"), ("cl", "d"), ("0", "o"), ("1", "l"), ("5", "s"))


def known_startup(project: str, member: str, line: str) -> str:
    """The purpose of a line of start-up code known for this project ("" for any), or ""."""
    for row in load("startup_code")["code"]:
        if project in ("", row["project"]) and re.fullmatch(row["member"], member) and line == row["text"]:
            return str(row["does"])
    if member.endswith("-nspkg.pth") and any(pattern.fullmatch(line) for pattern in _namespace_lines()):
        return "declares a namespace package"
    return ""


def is_editable(member: str, line: str) -> bool:
    """Whether a line of start-up code is an editable install's, to start its finder."""
    rows = load("startup_code")["editable"]
    return any(re.fullmatch(row["member"], member) and re.fullmatch(row["line"], line) for row in rows)


def is_of_environment(member: str, line: str) -> bool:
    """Whether a line of start-up code is written by tools into every virtual environment."""
    rows = load("startup_code")["environment"]
    return any(re.fullmatch(row["member"], member) and re.fullmatch(row["line"], line) for row in rows)


@cache
def _namespace_lines() -> tuple[re.Pattern[str], ...]:
    """The templates of setuptools, in which names and nothing else may vary."""
    patterns = []
    for row in load("startup_code")["namespace"]:
        text = re.escape(row["text"]).replace(r"\{parts\}", r"\((?:'\w+', )*'\w+',?\)")
        text = text.replace(r"\{name\}", r"(?P<name>'[\w.]+')", 1).replace(r"\{name\}", "(?P=name)")
        patterns.append(re.compile(text + r"(?:;m and setattr\(sys\.modules\['[\w.]+'\], '\w+', m\))?"))
    return tuple(patterns)


def owners_of(import_name: str) -> tuple[str, ...]:
    """The projects that are known to install a regular package or module of this name; none when it is unknown."""
    return tuple(load("import_names")["imports"].get(import_name, ()))


def is_owner(project: str, owners: Collection[str]) -> bool:
    """Whether a project owns a package, or is another build of an owner that is named for its accelerator.

    cuml-cu12 installs the same packages as cuml-cu13. Of an owner without such a name no builds are assumed: anybody
    could register torch-cu13.
    """
    builds = {_BUILD.sub("", name) for name in owners if _BUILD.search(name)}
    return project in owners or _BUILD.sub("", project) in builds


def own_packages(project: str, members: Iterable[str]) -> frozenset[str]:
    """The regular packages ("torch/") and modules ("six") of a project's wheel that are known to be its own."""
    found = {package_of(m) for m in members if m.endswith(_INITIAL) or "/" not in place_of(m).path}
    return frozenset(package for package in found if is_owner(project, owners_of(package.rstrip("/"))))


def may_write(project: str, import_name: str, member: str) -> bool:
    """Whether a project is known to write ``member`` into the package of another one."""
    return any(
        re.fullmatch(row["project"], project)
        and re.fullmatch(row["import"], import_name)
        and re.match(row["member"], member)
        for row in load("startup_code")["guest"]
    )


@cache
def _projects() -> frozenset[str]:
    owners = load("import_names")["imports"].values()
    return frozenset(canonicalize_name(name) for names in owners for name in names)


@cache
def resembled(project: str) -> str:
    """The known project for which the name could be taken: one slip of the keyboard or of the eye away. "" if none."""
    known = _projects()
    if project in known or any(row["project"] == project for row in load("startup_code")["namesake"]):
        return ""
    for plain in _read_as(project):
        if plain in known and len(plain) >= _SHORTEST_LOOKALIKE:
            return plain
    near = (name for name in known if len(name) > _SHORTEST_LOOKALIKE and is_one_slip(project, name))
    return min(near, default="")


def _read_as(project: str) -> list[str]:
    """How people may read the name: similar signs replaced, and dashes omitted."""
    forms = [project.replace(sign, plain) for sign, plain in _CONFUSED if sign in project]
    joined = project.replace("-", "")
    forms += [name for name in _projects() if name != project and name.replace("-", "") == joined]
    return [form for form in forms if form != project]


def is_one_slip(a: str, b: str) -> bool:
    """True when one letter more, less or another, or two that changed places, make ``a`` of ``b``.

    Numbers are not letters: cu12 and cu13 are different on purpose.
    """
    if a == b or abs(len(a) - len(b)) > 1:
        return False
    start = next((n for n, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
    rest_a, rest_b = a[start:], b[start:]
    if any(sign.isdigit() for sign in rest_a[:1] + rest_b[:1]):
        return False
    one_more, one_less, another = rest_a[1:] == rest_b, rest_a == rest_b[1:], rest_a[1:] == rest_b[1:]
    swapped = rest_a[:2] == rest_b[:2][::-1] and rest_a[2:] == rest_b[2:]
    return one_more or one_less or another or swapped


def program_owners(script: str) -> tuple[str, str, tuple[str, ...]] | None:
    """Of a program that people and tools start by its name: the name, its kind, and whose it is. None for others."""
    stem = re.sub(r"\.(?:exe|cmd|bat|py|sh)$", "", script, flags=re.IGNORECASE)
    for row in load("startup_code")["program"]:
        if re.fullmatch(row["pattern"], stem, re.IGNORECASE):
            return stem, row["kind"], tuple(row["projects"])
    return None


def plugin_groups() -> Mapping[str, str]:
    """Groups of entry points that other programs load by themselves, with when they do."""
    return {row["group"]: row["loaded"] for row in load("startup_code")["plugin"]}
