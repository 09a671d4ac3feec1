"""Markers as locks write them, evaluated for a target and a choice of the lock's extras and groups: pure.

Beyond PEP 508 these are uv's ``extra == 'extra-6-veomni-gpu'``, where ``extra`` is a set, and PEP 751's ``'gpu' in
extras`` and ``'dev' in dependency_groups``.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from packaging.markers import InvalidMarker, Marker, UndefinedComparison, UndefinedEnvironmentName
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion

from wheel_checks.errors import FormatError
from wheel_checks.parsing import specifiers_or_none
from wheel_checks.targets.target import Target

_TEXT = r"""(?:"(?P<{0}d>[^"]*)"|'(?P<{0}s>[^']*)')"""
_EXTRA = re.compile(
    rf"(?<![\w.])extra\s*(?P<op1>==|!=)\s*{_TEXT.format('a')}"
    rf"|{_TEXT.format('b')}\s*(?P<op2>==|!=)\s*extra(?![\w.])"
    rf"|{_TEXT.format('c')}\s+(?P<op3>in|not\s+in)\s+(?P<set>extras|dependency_groups)(?![\w.])"
)
_TRUE, _FALSE = "sys_platform == 'linux'", "sys_platform != 'linux'"  # every target is a Linux
_SHOWN = 100


@dataclass(slots=True)
class Conditions:
    """The conditions for markers. ``extras`` and ``groups`` are normalised names, or uv's long forms of them.

    ``any_extra`` takes every condition on extras as fulfilled: whether a marker can be true on this target at all.
    """

    target: Target
    extras: frozenset[str] = frozenset()
    groups: frozenset[str] = frozenset()
    any_extra: bool = False
    _known: dict[str, bool] = field(default_factory=dict)
    _environment: Mapping[str, str] | None = None

    def hold(self, marker: str) -> bool:
        """Whether the marker is true; "" always is. Raises FormatError if it is not a marker."""
        if not marker:
            return True
        if marker not in self._known:
            self._known[marker] = self._evaluated(marker)
        return self._known[marker]

    def any_of(self, markers: Collection[str]) -> bool:
        """Whether one of the markers is true, or there isn't one."""
        return not markers or any(map(self.hold, markers))

    def _evaluated(self, marker: str) -> bool:
        try:
            parsed = Marker(_EXTRA.sub(self._constant, marker))
            if self._environment is None:
                self._environment = {**self.target.markers(), "extra": ""}
            return parsed.evaluate(dict(self._environment))
        except (InvalidMarker, InvalidVersion, UndefinedComparison, UndefinedEnvironmentName, RecursionError, KeyError):
            raise FormatError(
                f"the marker {marker[:_SHOWN]!r} cannot be evaluated", expected="a marker as in PEP 508"
            ) from None

    def _constant(self, found: re.Match[str]) -> str:
        if self.any_extra:
            return _TRUE
        groups = found.groupdict()
        value = next(groups[key] for key in ("ad", "as", "bd", "bs", "cd", "cs") if groups[key] is not None)
        chosen = self.groups if groups["set"] == "dependency_groups" else self.extras
        is_in = value in chosen or canonicalize_name(value) in chosen
        wanted = (groups["op1"] or groups["op2"] or groups["op3"]) in ("==", "in")
        return _TRUE if is_in == wanted else _FALSE


def python_fits(requires_python: str, target: Target) -> bool:
    """Whether the target's Python is among those that a lock is for; a bound that does not parse allows all."""
    wanted = specifiers_or_none(requires_python)
    return wanted is None or wanted.contains(target.python_full_version, prereleases=True)
