"""PIN210 to PIN213: whether the guard of an environment is complete, and its packages are unchanged."""

from __future__ import annotations

from dataclasses import replace

from tests.rules.case import NOTE, Case
from wheel_checks.facts.pins.environment_guard import Bypass, EnvironmentGuard
from wheel_checks.facts.pins.receipt import FileState, GuardFile, InstalledGuard
from wheel_checks.model import Unavailable

PYTHON = "/venv/bin/python"
VERSIONS = (("torch", "2.7.0+cu128"),)


def guard(state: FileState = FileState.INTACT) -> InstalledGuard:
    files = (GuardFile("/venv/bin/pip", "front", state), GuardFile("/venv/pip.conf", "pip.conf", FileState.INTACT))
    return InstalledGuard("/venv", "/venv/share/torch-guard", PYTHON, dict(VERSIONS), files)


def facts(
    found: InstalledGuard | Unavailable | None, *ways: Bypass, damage: str = "", outside: tuple[str, ...] = ()
) -> EnvironmentGuard:
    damages = (("torch", damage),) if damage else ()
    return EnvironmentGuard("/venv", PYTHON, found, ways, damages, VERSIONS, outside)


SYNC = Bypass("uv sync", "it reads no constraint")

CASES = [
    Case("PIN210", "variables alone", lambda: facts(None, SYNC), ("uv sync is not guarded: it reads no constraint",)),
    Case("PIN210", "a guard, and every way is closed", lambda: facts(guard())),
    Case(
        "PIN211",
        "a front program that was written over",
        lambda: facts(guard(FileState.CHANGED)),
        ("/venv/bin/pip is not what the guard wrote",),
    ),
    Case("PIN211", "one that is gone", lambda: facts(guard(FileState.MISSING)), ("/venv/bin/pip is missing",)),
    Case(
        "PIN211",
        "a receipt that cannot be read",
        lambda: facts(Unavailable("the receipt is empty")),
        ("the receipt is empty",),
    ),
    Case("PIN211", "a guard as it was installed", lambda: facts(guard())),
    Case("PIN211", "no guard", lambda: facts(None)),
    Case(
        "PIN212",
        "another torch",
        lambda: facts(guard(), damage="torch 2.7.0+cu128 was replaced by 2.8.0"),
        ("torch 2.7.0+cu128 was replaced by 2.8.0",),
        evidence=("2.7.0+cu128",),
    ),
    Case(
        "PIN212",
        "a guard without its record",
        lambda: replace(facts(guard()), unknown=("torch 2.7.0+cu128",)),
        ("the guarded state of torch 2.7.0+cu128 is unknown: the guard's record is missing or broken",),
        undecided=True,
    ),
    Case("PIN212", "the torch that is held", lambda: facts(guard())),
    Case(
        "PIN213", "a guard", lambda: facts(guard(), outside=("another uv",)), ("cannot be blocked: another uv",), NOTE
    ),
    Case("PIN213", "no guard", lambda: facts(None, outside=("another uv",))),
]
