"""Why ``--fix`` does not run a fix: it is not about the distributions of an environment, or needs a choice."""

from wheel_checks.commands import Command, Export, NoCommand, Options, Pipe, Step, Unset, WriteFile, in_words
from wheel_checks.facts.host.commands import check_torch
from wheel_checks.facts.host.facts import HostFacts
from wheel_checks.model import CheckResult

_CHOICE = "it requires a choice"
_OTHER: dict[type, str] = {  # what no vector is
    Export: "it sets something in your shell",
    Unset: "it sets something in your shell",
    Pipe: "it needs a shell",
    WriteFile: "it writes a file",
    Options: "it changes your own command",
    NoCommand: "no command is safe to run",
}


def why_not(result: CheckResult, facts: HostFacts) -> str:
    """The sentence about a fix that has no goal."""
    steps = [] if result.fix is None else [step for step in result.fix.commands if step != check_torch(facts)]
    return f"--fix does not run the fix of {result.rule}: {_reason(steps)}"


def _reason(steps: list[Step]) -> str:
    if not steps:
        return "it has no command"
    if any(isinstance(step, Command) and step.note for step in steps):
        return _CHOICE
    first = next((step for step in steps if not isinstance(step, Command)), steps[0])
    said = _of_vector(first.argv) if isinstance(first, Command) else _OTHER[type(first)]
    return f"{said}: {in_words(first)}"


def _of_vector(argv: tuple[str, ...]) -> str:
    if argv[0] == "sudo":
        return "it needs root"
    if any(word.startswith("--no-binary") for word in argv):
        return "it builds from source, which runs code"
    if {"pip", "install"} <= set(argv):
        return "this kind of install is not supported"
    return "it changes more than the packages of this environment"
