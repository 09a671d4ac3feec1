"""Can the requirements be fulfilled together, and is what the resolver took what another would take?"""

from __future__ import annotations

from collections.abc import Iterable

from packaging.utils import canonicalize_name

from wheel_checks.commands import option, run
from wheel_checks.commands import package as command_package
from wheel_checks.facts.expectations import Expectations
from wheel_checks.facts.stack.facts import StackFacts, unfulfilled
from wheel_checks.model import Audience, Evidence, Finding, Fix, Severity
from wheel_checks.phrases import joined
from wheel_checks.registry import rules_of
from wheel_checks.rules.stack.demands import demands

stack_rule = rules_of("stack", Audience.INSTALLER)


@stack_rule(
    "STK105",
    "the requirements can be fulfilled together",
    why="Two packages that pin different releases of torch cannot be installed into one environment, and on one "
    "architecture alone this may come from a wheel that only the other has.",
    example="`vllm==0.19.0`, which pins torch 2.10.0, together with `torch==2.11.0`",
    fix="Change one of the requirements that the finding names.",
)
def solvable(stack: StackFacts, _: Expectations) -> Iterable[Finding]:
    """The resolver found versions, and these fulfil every METADATA."""
    if stack.unfinished:
        yield Finding(f"newer releases than these may be installed: {stack.unfinished}", undecided=True)
    for conflict in stack.conflicts:
        evidence = tuple(Evidence("demand", demand, "METADATA") for demand in conflict.demands)
        evidence += tuple(Evidence("hint", hint, "uv") for hint in conflict.hints)
        fix = Fix("Change one of these requirements, or leave its version open.")
        if conflict.computed:
            named = joined([archive.label for archive in conflict.computed])
            told = f"perhaps no versions fulfil all requirements: a build computes those of {named}"
            yield Finding(f"{told}; {'; '.join(conflict.sentences)}", evidence, fix, undecided=True)
            continue
        yield Finding(f"no versions fulfil all requirements: {'; '.join(conflict.sentences)}", evidence, fix)
    for package in stack.packages:
        for demand in unfulfilled(package):
            fix = Fix(f"Change the requirement, or what overrides it so that {package.version} is taken.")
            message = f"{demand}, and the stack has {package.label}"
            # A lock may override what METADATA says, and its installer does not look at that again.
            severity = Severity.WARNING if stack.lock else None
            yield Finding(message, demands(package), fix, package.place, severity=severity)


@stack_rule(
    "STK107",
    "the METADATA that the requirements are resolved by has the hash that its index states",
    why="Whoever can replace the METADATA that an index serves chooses what a resolver takes. uv and pip refuse "
    "one with another hash than the index states (PEP 714), so that nothing can be installed.",
    example="an index that states sha256=9f3a... and serves METADATA with sha256=1c22...",
    fix="Find out who changed it; have the index extract the METADATA again.",
)
def served_metadata(stack: StackFacts, _: Expectations) -> Iterable[Finding]:
    """The resolver did not refuse any."""
    for wrong in stack.wrong_metadata:
        evidence = (Evidence("stated", wrong.stated, "index"), Evidence("served", wrong.found, wrong.file_name))
        message = f"uv refuses the METADATA that the index serves of {wrong.file_name}: it is not the stated one"
        yield Finding(message, evidence, Fix("Find out who changed it. Have the index extract the METADATA again."))


@stack_rule(
    "STK108",
    "what was asked for is taken in its newest release",
    Severity.NOTE,
    why="A resolver silently takes an older release where the newest one requires what cannot be had. Who expects the "
    "newest one then looks for its features, or its GPU code, in vain.",
    example="`vllm`, whose newest release requires a certifi that does not exist: uv takes the release before it",
    fix="Ask for the newest release by its version, and change what prevents it; or ask for the one that is taken.",
)
def newest_release(stack: StackFacts, _: Expectations) -> Iterable[Finding]:
    """No newer release that the requirement allows has a file for the target."""
    for refused in stack.refused:
        fix = Fix(
            "See what prevents it:",
            (
                run(
                    "wheelproof",
                    "stack",
                    command_package(refused.name, refused.version),
                    option("--platform", stack.target.machine),
                ),
            ),
        )
        taken = stack.package(canonicalize_name(refused.name))
        yield Finding(str(refused), fix=fix, location=taken.place if taken else None, cause=refused.name)


@stack_rule(
    "STK109",
    "pip and uv take the same pre-releases",
    Severity.NOTE,
    why="Where every final release of a package is yanked, uv takes a pre-release, and pip takes none without --pre: "
    "the same requirements install with one of them and fail with the other.",
    example="`flash-attn-4`, whose only final release is yanked: uv takes 4.0.0b36, pip nothing",
    fix="Name the pre-release with its version: both take it then.",
)
def same_pre_releases(stack: StackFacts, _: Expectations) -> Iterable[Finding]:
    """Every pre-release of the stack is what pip takes, too."""
    for release in stack.pre_releases:
        named = command_package(release.name, release.version)
        fix = Fix("Name the version; then both take it:", (run("pip", "install", named),))
        taken = stack.package(canonicalize_name(release.name))
        yield Finding(str(release), fix=fix, location=taken.place if taken else None, cause=release.name)
