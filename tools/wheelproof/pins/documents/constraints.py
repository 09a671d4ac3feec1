"""Versions as poetry, pixi and pdm write them, in the terms of PEP 508."""

import re

from wheelproof.pins.model import Form, FoundRequirement

_VERSION = re.compile(r"(\d+(?:\.\d+)*)\S*")
_CLAUSE = re.compile(r"(\^|~(?!=)|[<>=!~]=?=?|)\s*(\S+)")
_VALUES = re.compile(r"""version\s*=\s*["']([^"']*)["']|=\s*["']([^"']*)["']""")


def as_pep508(found: FoundRequirement) -> str:
    """The requirement as PEP 508 has it; "" where it cannot be said so: a URL, a path, alternatives (``||``)."""
    if found.form is Form.PEP508:
        return found.text if found.requirement is not None else ""
    if found.form is Form.NAME:
        return found.name
    if found.form is Form.CONDA:
        return ""
    values = {match[1] or match[2] or "" for match in _VALUES.finditer(found.text)}
    if len(found.values) != 1 or not values:
        return ""
    version = next(iter(match[1] or match[2] for match in _VALUES.finditer(found.text)))
    return "" if "||" in version or "://" in version else found.name + ",".join(_clauses(version))


def _clauses(version: str) -> list[str]:
    """Poetry's ``^``, ``~`` and bare versions (its manual: "Dependency specification"), all others as they are."""
    clauses: list[str] = []
    for part in version.split(","):
        match = _CLAUSE.fullmatch(part.strip())
        if match is None or match[2] == "*":
            continue
        operator, text = match.groups()
        number = _VERSION.fullmatch(text)
        if operator in ("^", "~") and number:
            parts = [int(item) for item in number[1].split(".")]
            kept = next((i for i, item in enumerate(parts) if item), len(parts) - 1) if operator == "^" else 1
            kept = min(kept, len(parts) - 1)
            upper = [*parts[:kept], parts[kept] + 1]
            clauses += [f">={text}", f"<{'.'.join(map(str, upper))}"]
        else:
            clauses.append(f"{operator or '=='}{text}")
    return clauses
