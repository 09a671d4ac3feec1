"""Facts and rules about wheels, the result model and its renderers.

Nothing in here knows the command line; ``wheelproof`` builds on this package, never the other way round.

The names in ``__all__`` are the public API (``docs/api.md``). Each is imported when it is first used, so that
``import wheel_checks`` by itself reads nothing but this file.
"""

from __future__ import annotations

TYPE_CHECKING = False  # as in typing, which takes longer to import than --help does

if TYPE_CHECKING:
    from wheel_checks.errors import UsageError, WheelproofError
    from wheel_checks.facts.host.facts import HostFacts
    from wheel_checks.facts.wheel.expectations import Expectations
    from wheel_checks.facts.wheel.facts import WheelFacts
    from wheel_checks.model import (
        Answer,
        Audience,
        CheckResult,
        Claim,
        Evidence,
        FailOn,
        Finding,
        Fix,
        Location,
        Outcome,
        Report,
        Severity,
        Subject,
        Unavailable,
        Verdict,
        need,
    )
    from wheel_checks.registry import rule
    from wheel_checks.report import render

__all__ = [
    "Answer",
    "Audience",
    "CheckResult",
    "Claim",
    "Evidence",
    "Expectations",
    "FailOn",
    "Finding",
    "Fix",
    "HostFacts",
    "Location",
    "Outcome",
    "Report",
    "Severity",
    "Subject",
    "Unavailable",
    "UsageError",
    "Verdict",
    "WheelFacts",
    "WheelproofError",
    "need",
    "render",
    "rule",
]

if not TYPE_CHECKING:  # a checker of types sees the imports above, and no name that is not present
    _ELSEWHERE = {
        "Expectations": "facts.wheel.expectations",
        "HostFacts": "facts.host.facts",
        "UsageError": "errors",
        "WheelFacts": "facts.wheel.facts",
        "WheelproofError": "errors",
        "render": "report",
        "rule": "registry",
    }

    def __getattr__(name):
        if name not in __all__:
            raise AttributeError(f"module 'wheel_checks' has no attribute {name!r}")
        import importlib  # noqa: PLC0415  # only when a name is used

        module = importlib.import_module(f"wheel_checks.{_ELSEWHERE.get(name, 'model')}")
        value = globals()[name] = getattr(module, name)
        return value

    def __dir__():
        return sorted({*globals(), *__all__})
