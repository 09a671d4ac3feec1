"""PIN1xx: requirements files, each with one thing that could cost someone the torch that works."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.rules.case import NOTE, WARNING, Case
from wheel_checks.facts.pins.facts import PinnedRequirement, PinNotice, RequirementFile
from wheel_checks.model import Location

HERE = Location(path="requirements.txt", line=3, column=1)


def pin(text: str, role: str = "runtime", **more: Any) -> Callable[[], RequirementFile]:
    """A file with one requirement."""
    name = text.partition("=")[0].partition(">")[0].partition("<")[0]
    found = PinnedRequirement(name, text, role, HERE, **more)
    return lambda: RequirementFile("requirements.txt", (found,))


def says(code: str, message: str = "beware") -> Callable[[], RequirementFile]:
    """A file with one notice."""
    return lambda: RequirementFile("requirements.txt", (), (PinNotice(code, message, HERE),))


CASES = [
    Case(
        "PIN101",
        "a pin that the installed version does not satisfy",
        pin("torch==2.8.0", installed="2.7.0+cu128", reason="2.7.0+cu128 does not satisfy ==2.8.0"),
        ("torch==2.8.0 could replace the installed torch: 2.7.0+cu128 does not satisfy ==2.8.0",),
        evidence=("torch==2.8.0", "torch 2.7.0+cu128"),
    ),
    Case("PIN101", "a range that keeps the installed version", pin("torch>=2.7", installed="2.7.0+cu128", kept=True)),
    Case("PIN101", "a build requirement, about which PIN102 has its say", pin("torch==2.8.0", "build")),
    Case(
        "PIN102",
        "torch in a build environment",
        pin("torch", "build", section="build-system.requires", kept=True),
        ("torch is installed again for every build, whatever is installed",),
        WARNING,
        evidence=("build-system.requires",),
    ),
    Case("PIN102", "torch as a requirement of the project", pin("torch", kept=True)),
    Case(
        "PIN103",
        "a bare torchvision where none is installed",
        pin("torchvision", kept=True),
        ("torchvision selects the newest release, and the torch that it requires",),
        WARNING,
    ),
    Case("PIN103", "a bare torchvision that is installed", pin("torchvision", kept=True, installed="0.22.0+cu128")),
    Case("PIN103", "a bare torch", pin("torch", kept=True)),
    Case(
        "PIN101",
        "a command whose version is only known when it runs",
        pin("torch==…", "command", section="pip install", reason="who knows", certain=False),
        ("`pip install torch==…` could replace the installed torch: who knows",),
        undecided=True,
    ),
    Case(
        "PIN104",
        "an install command that keeps an installed torch, and installs any torch where it is missing",
        pin("torch", "command", section="pip install", kept=True),
        ("`pip install torch` installs torch by name",),
        WARNING,
        evidence=("torch", "pip install"),
    ),
    Case("PIN104", "one that replaces it, about which PIN101 has its say", pin("torch==2", "command")),
    Case("PIN104", "a requirement of a file", pin("torch", kept=True)),
    Case("PIN105", "a lock file with torch", says("lock-file"), ("beware",), WARNING),
    Case("PIN105", "something else", says("dynamic")),
    Case(
        "PIN105",
        "a lock file with another torch than the installed one",
        pin("torch 2.7.0", "lock", installed="2.7.0+cu128"),
        ("torch 2.7.0 is locked, but 2.7.0+cu128 is installed: an install of the lock file replaces it",),
    ),
    Case("PIN105", "a lock file with the installed torch", pin("torch 2.7.0+cu128", "lock", installed="x", kept=True)),
    Case("PIN106", "what a setup.py computes", says("dynamic"), ("beware",), WARNING, undecided=True),
    Case(
        "PIN106",
        "a file that a command reads and that is not there",
        says("install-file"),
        ("beware",),
        WARNING,
        undecided=True,
    ),
    Case("PIN106", "a file that was read in place of what is computed", says("reads-file"), ("beware",), NOTE),
    Case("PIN106", "something else", says("extra")),
    Case(
        "PIN107", "conda's pytorch", pin("pytorch-gpu>=2.7", "conda"), ("pytorch-gpu>=2.7 is conda's own torch",), NOTE
    ),
    Case("PIN107", "pip's torch in the same file", pin("torch", kept=True)),
    Case("PIN108", "an extra called torch", says("extra"), ("beware",), NOTE),
    Case("PIN108", "an install command", says("install-command")),
    Case("PIN109", "a --package that matches nothing", says("package-unmatched"), ("beware",), NOTE),
    Case("PIN109", "something else", says("extra")),
]
