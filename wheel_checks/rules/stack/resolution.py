"""Can the requirements be fulfilled together, and is what the resolver took what another would take?"""

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
    "the requirements can be satisfied together",
    why="Two packages that pin different releases of torch cannot be installed into one environment; this may affect "
    "only one architecture, if only its wheel has the pin.",
    example="`vllm==0.19.0`, which pins torch 2.10.0, together with `torch==2.11.0`",
    fix="Change one of the requirements that the finding names.",
)
def solvable(stack: StackFacts, _: Expectations) -> Iterable[Finding]:
    """The resolver found versions, and these fulfil every METADATA."""
    if stack.unfinished:
        yield Finding(f"newer releases than these might be installed: {stack.unfinished}", undecided=True)
    for conflict in stack.conflicts:
        evidence = tuple(Evidence("demand", demand, "METADATA") for demand in conflict.demands)
        evidence += tuple(Evidence("hint", hint, "uv") for hint in conflict.hints)
        fix = Fix("Change one of these requirements, or remove its version.")
        if conflict.computed:
            named = joined([archive.label for archive in conflict.computed])
            told = f"it is unknown whether any versions satisfy all requirements: a build computes those of {named}"
            yield Finding(f"{told}; {'; '.join(conflict.sentences)}", evidence, fix, undecided=True)
            continue
        yield Finding(f"no versions satisfy all requirements: {'; '.join(conflict.sentences)}", evidence, fix)
    for package in stack.packages:
        for demand in unfulfilled(package):
            fix = Fix(f"Change the requirement, or the override that selects {package.version}.")
            message = f"{demand}, but the stack has {package.label}"
            # A lock may override what METADATA says, and its installer does not look at that again.
            severity = Severity.WARNING if stack.lock else None
            yield Finding(message, demands(package), fix, package.place, severity=severity)


@stack_rule(
    "STK107",
    "the METADATA used for resolving has the hash that its index states",
    why="An attacker who can replace the METADATA that an index serves controls the resolution. uv and pip reject "
    "METADATA whose hash differs from the index's (PEP 714), so that nothing can be installed.",
    example="an index that states sha256=9f3a... but serves METADATA with sha256=1c22...",
    fix="Find out what changed; have the index extract the METADATA again.",
)
def served_metadata(stack: StackFacts, _: Expectations) -> Iterable[Finding]:
    """The resolver did not refuse any."""
    for wrong in stack.wrong_metadata:
        evidence = (Evidence("stated", wrong.stated, "index"), Evidence("served", wrong.found, wrong.file_name))
        message = f"uv rejects the METADATA that the index serves for {wrong.file_name}: its hash is not the stated one"
        yield Finding(message, evidence, Fix("Find out what changed. Have the index extract the METADATA again."))


@stack_rule(
    "STK108",
    "the newest release of every requested package is selected",
    Severity.NOTE,
    why="A resolver silently selects an older release if the newest one's requirements cannot be satisfied. Features "
    "or GPU code of the newest release are then missing.",
    example="`vllm`, whose newest release requires a certifi that does not exist: uv selects the release before it",
    fix="Require the newest release by its version, and change what prevents it; or require the one that is selected.",
)
def newest_release(stack: StackFacts, _: Expectations) -> Iterable[Finding]:
    """No newer release that the requirement allows has a file for the target."""
    for refused in stack.refused:
        fix = Fix(
            "This shows what prevents it:",
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
    "pip and uv select the same pre-releases",
    Severity.NOTE,
    why="If every final release of a package is yanked, uv selects a pre-release, but pip does not without --pre: the "
    "same requirements install with one of them and fail with the other.",
    example="`flash-attn-4`, whose only final release is yanked: uv selects 4.0.0b36, pip nothing",
    fix="Pin the pre-release; then both select it.",
)
def same_pre_releases(stack: StackFacts, _: Expectations) -> Iterable[Finding]:
    """Every pre-release of the stack is what pip takes, too."""
    for release in stack.pre_releases:
        named = command_package(release.name, release.version)
        fix = Fix("Pin the version; then both select it:", (run("pip", "install", named),))
        taken = stack.package(canonicalize_name(release.name))
        yield Finding(str(release), fix=fix, location=taken.place if taken else None, cause=release.name)
