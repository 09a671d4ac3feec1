"""PIN201 to PIN209: whether the settings really keep the installed torch."""

from __future__ import annotations

from dataclasses import replace

from packaging.requirements import Requirement

from tests.rules.case import NOTE, WARNING, Case
from wheel_checks.facts.pins.guard import GuardFacts, GuardSetting, Kind

CUDA = {"torch": "2.7.0+cu128"}
OWN_CACHE = GuardSetting(Kind.CACHE, "UV_CACHE_DIR", path="/cache/torch-2.7.0+cu128/uv")


def guard(*settings: GuardSetting, installed: dict[str, str] | None = None, dropped: str = "") -> GuardFacts:
    return GuardFacts(
        "uv", "0.13.8", CUDA if installed is None else installed, settings, dropped, ("deepspeed", "flash-attn")
    )


def constraint(text: str, kind: Kind = Kind.CONSTRAINT) -> GuardSetting:
    return GuardSetting(kind, "UV_CONSTRAINT", (Requirement(text),), path="constraints.txt")


def exclude(origin: str = "UV_EXCLUDE") -> GuardSetting:
    return GuardSetting(Kind.EXCLUDE, origin, packages=("torch",))


def unisolated(*packages: str) -> GuardSetting:
    return GuardSetting(Kind.NO_ISOLATION, "pyproject.toml [tool.uv]", packages=packages)


def never(marker: str) -> GuardSetting:
    return GuardSetting(Kind.OVERRIDE, "UV_OVERRIDE", (Requirement(f"torch; {marker}"),))


LOST = "uv can replace torch 2.7.0+cu128: no setting prevents it"

CASES = [
    Case("PIN201", "no settings", guard, (LOST,)),
    Case("PIN201", "builds without isolation for torch", lambda: guard(unisolated("torch")), (LOST,)),
    Case("PIN201", "an override that can hold", lambda: guard(never("sys_platform == 'linux'")), (LOST,)),
    Case(
        "PIN201",
        "a companion that nothing keeps",
        lambda: guard(exclude(), installed={**CUDA, "torchvision": "0.22.0"}),
        ("uv can replace torchvision 0.22.0: no setting prevents it",),
        WARNING,
    ),
    Case(
        "PIN201",
        "another framework",
        lambda: guard(exclude(), installed={**CUDA, "jax": "0.7.0"}),
        ("uv can replace jax 0.7.0: no setting prevents it",),
    ),
    Case(
        "PIN201",
        "a package that the user wants to keep",
        lambda: replace(guard(exclude(), installed={**CUDA, "six": "1.17.0"}), requested=frozenset(["six"])),
        ("uv can replace six 1.17.0: no setting prevents it",),
    ),
    Case("PIN201", "a constraint", lambda: guard(constraint("torch==2.7.0+cu128"))),
    Case("PIN201", "an exclude", lambda: guard(exclude())),
    Case("PIN201", "an override that never holds", lambda: guard(never("sys_platform == 'never'"))),
    Case("PIN201", "no torch", lambda: guard(installed={})),
    Case(
        "PIN202",
        "a constraint for another torch",
        lambda: guard(constraint("torch==2.6.0+cu124")),
        ("the constraint torch==2.6.0+cu124 does not match the installed torch 2.7.0+cu128",),
        evidence=("constraints.txt",),
    ),
    Case(
        "PIN202",
        "a constraint that allows others",
        lambda: guard(constraint("torch>=2.6")),
        ("the constraint torch>=2.6 allows versions other than the installed torch 2.7.0+cu128",),
        WARNING,
    ),
    Case("PIN202", "the installed version", lambda: guard(constraint("torch==2.7.0+cu128"))),
    Case(
        "PIN202",
        "a range next to the installed version",
        lambda: guard(constraint("torch>=2.6"), constraint("torch==2.7.0+cu128")),
    ),
    Case(
        "PIN203",
        "the public version",
        lambda: guard(constraint("torch==2.7.0")),
        (
            "the constraint torch==2.7.0 also allows the index's build: the installed torch 2.7.0+cu128 has a local "
            "version",
        ),
        WARNING,
    ),
    Case("PIN203", "the full version", lambda: guard(constraint("torch==2.7.0+cu128"))),
    Case(
        "PIN203",
        "an installed version without a local one",
        lambda: guard(constraint("torch==2.11.0"), installed={"torch": "2.11.0"}),
    ),
    Case(
        "PIN204",
        "torch in the list",
        lambda: guard(unisolated("torch", "flash-attn")),
        ("no-build-isolation-package lists torch, which has no effect: the setting lists the packages being built",),
        evidence=("torch, flash-attn",),
    ),
    Case("PIN204", "a package that is compiled against torch", lambda: guard(unisolated("flash-attn"))),
    Case(
        "PIN205",
        "a key of a later uv",
        lambda: guard(dropped="unknown field `x`"),
        ("uv 0.13.8 ignores its settings in pyproject.toml: unknown field `x`",),
    ),
    Case("PIN205", "a table that uv reads", guard),
    Case(
        "PIN206",
        "constraints that do not reach builds",
        lambda: guard(constraint("torch==2.7.0+cu128")),
        ("an isolated build (deepspeed, flash-attn, ...) installs another torch than 2.7.0+cu128",),
        WARNING,
    ),
    Case(
        "PIN206",
        "torch named as the package that is built",
        lambda: guard(unisolated("torch")),
        ("an isolated build (deepspeed, flash-attn, ...) installs another torch than 2.7.0+cu128",),
        WARNING,
    ),
    Case("PIN206", "a build constraint", lambda: guard(constraint("torch==2.7.0+cu128", Kind.BUILD_CONSTRAINT))),
    Case("PIN206", "no isolation at all", lambda: guard(unisolated())),
    Case("PIN206", "no isolation for what compiles", lambda: guard(unisolated("flash-attn"))),
    Case(
        "PIN207",
        "the default cache",
        lambda: guard(GuardSetting(Kind.CACHE, "uv's default", path="/home/me/.cache/uv")),
        ("the cache of built wheels is not separate for torch 2.7.0+cu128",),
        WARNING,
        evidence=("/home/me/.cache/uv",),
    ),
    Case("PIN207", "its own cache", lambda: guard(OWN_CACHE)),
    Case("PIN207", "no cache", lambda: guard(GuardSetting(Kind.CACHE, "UV_NO_CACHE"))),
    Case(
        "PIN208",
        "a file that is gone",
        lambda: guard(GuardSetting(Kind.CONSTRAINT, "UV_CONSTRAINT", path="gone.txt", fault="No such file")),
        ("UV_CONSTRAINT points to gone.txt: No such file",),
    ),
    Case("PIN208", "a file that is there", lambda: guard(constraint("torch==2.7.0+cu128"))),
    Case(
        "PIN209",
        "an exclude without a torch",
        lambda: guard(exclude(), installed={}),
        ("an exclude excludes torch, but torch is not installed",),
        WARNING,
    ),
    Case(
        "PIN209",
        "an exclude in a project",
        lambda: guard(exclude("pyproject.toml [tool.uv] exclude-dependencies")),
        ("`uv sync` removes torch, which the lock does not contain",),
        NOTE,
    ),
    Case("PIN209", "an exclude by a variable", lambda: guard(exclude())),
]
