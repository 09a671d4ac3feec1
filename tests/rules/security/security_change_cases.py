"""SEC012: code that a release newly runs when Python starts."""

from __future__ import annotations

from tests.rules.case import WARNING, Case
from tests.support.pairs import difference, wheel_for
from wheel_checks.facts.wheel.depth import Depth

HOOK = "import demo.hooks\n"

CASES = [
    Case(
        "SEC012",
        "the newer release has a .pth file with code",
        lambda: difference(wheel_for(version="1.0"), wheel_for(version="1.1").add("demo.pth", HOOK), Depth.QUICK),
        ("1.1 newly runs 1 line of code whenever Python starts",),
        severity=WARNING,
        evidence=("demo.pth: import demo.hooks",),
    ),
    Case(
        "SEC012",
        "the newer release is named first, and has another line",
        lambda: difference(
            wheel_for(version="1.1").add("demo.pth", "import other\n"),
            wheel_for(version="1.0").add("demo.pth", HOOK),
            Depth.QUICK,
        ),
        ("1.1 newly runs 1 line of code whenever Python starts",),
        severity=WARNING,
        evidence=("demo.pth: import other",),
    ),
    Case(
        "SEC012",
        "one machine of a release",
        lambda: difference(wheel_for("aarch64").add("sitecustomize.py"), wheel_for("x86_64"), Depth.QUICK),
        ("aarch64 alone runs 1 line of code whenever Python starts",),
        severity=WARNING,
    ),
    Case(
        "SEC012",
        "the newer release runs it no more",
        lambda: difference(wheel_for(version="1.0").add("demo.pth", HOOK), wheel_for(version="1.1"), Depth.QUICK),
    ),
    Case(
        "SEC012",
        "both run it",
        lambda: difference(
            wheel_for(version="1.0").add("demo.pth", HOOK), wheel_for(version="1.1").add("demo.pth", HOOK), Depth.QUICK
        ),
    ),
]
