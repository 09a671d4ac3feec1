"""The console command ``wheelproof``: finds the command that was requested, runs it, and turns errors into messages.

``wheelproof --help`` must start fast, so nothing is imported here beyond what every run needs: argparse and the module
of a command are imported when that command runs.

Exit codes: 0 nothing at or above ``--fail-on``, 1 findings, 2 wrong usage, 3 could not check, 130 interrupted.
"""

import os
import sys

from wheel_checks.errors import UsageError, WheelproofError
from wheelproof.version import __version__

# command: (module with ``add_arguments`` and ``run``, summary for --help)
COMMANDS = {
    "verify": ("wheelproof.cli.verify", "check wheels: a file, a folder, a URL, or a requirement on an index"),
    "stack": ("wheelproof.cli.stack", "resolve requirements for a platform, and check every wheel"),
    "release": ("wheelproof.cli.release", "ship or stop: check a whole release against its expectation"),
    "diff": ("wheelproof.cli.diff", "compare two wheels, or two sets of wheels"),
    "pins": (
        "wheelproof.cli.pins.group",
        "find, remove or guard against pins that could replace the installed torch",
    ),
    "use-existing-torch": ("wheelproof.cli.pins.rewrite", "alias of `pins rewrite`: remove torch from requirements"),
    "doctor": ("wheelproof.cli.doctor", "find out why torch does not see the GPU: root cause, evidence and fix"),
    "explain": ("wheelproof.cli.explain", "find the cause of a failure in a log, and the fix"),
    "smoke": ("wheelproof.cli.smoke", "run the Triton kernels: results and speed, or compile them for another GPU"),
    "matrix": (
        "wheelproof.cli.matrix.group",
        "run a platform x Python x torch matrix end to end",
    ),
    "report": ("wheelproof.cli.report.group", "merge the reports of many hosts, differences first"),
    "rules": ("wheelproof.cli.rules", "list the rules: title, severity, why, example and fix"),
    "schema": ("wheelproof.cli.schema", "print the JSON Schema of a document that wheelproof writes or reads"),
    "mcp": ("wheelproof.cli.mcp", "serve the read-only commands to an assistant (Model Context Protocol over stdio)"),
    "new": ("wheelproof.cli.new", "create a package of rules or kernels, ready to build, test and run"),
    "completion": ("wheelproof.cli.completion", "print the completion script for bash, zsh or fish"),
}

ISSUES = "a bug report needs the command, this message, and the traceback that WHEELPROOF_DEBUG=1 adds"
COULD_NOT_CHECK, INTERRUPTED = 3, 130


def main(argv: list[str] | None = None) -> int:
    """Run one command and return its exit code. ``argv`` is without the program's name, by default ``sys.argv[1:]``."""
    arguments = sys.argv[1:] if argv is None else list(argv)
    try:
        status = _dispatch(arguments)
        _print("")
    except WheelproofError as error:
        _say("error: ", error.what, expected=error.expected, hint=error.hint)
        _drop_what_cannot_be_written()
        return error.exit_code
    except KeyboardInterrupt:
        _say("", "interrupted")
        return INTERRUPTED
    except PermissionError as error:
        what = f"{error.filename or 'a file'} cannot be used: {error.strerror or error}"
        _say("error: ", what, hint="run it as a user who may, or in another folder")
        return COULD_NOT_CHECK
    except BrokenPipeError:
        _drop_what_cannot_be_written()  # the reader has gone (`wheelproof ... | head`): nothing to say, and to no one
        return COULD_NOT_CHECK
    except Exception as bug:  # noqa: BLE001  # the outermost frame: a bug becomes a message, not a wall of text
        _say("internal error: ", f"{type(bug).__name__}: {bug}", hint=ISSUES)
        if _wants_traceback(arguments):
            _show_traceback(bug)
        return COULD_NOT_CHECK
    return status


def _dispatch(arguments: list[str]) -> int:
    if sys.stdout is None:  # what Python makes of `wheelproof >&-`
        raise WheelproofError("standard output is closed", hint="use >/dev/null to drop the report")
    name, *rest = arguments or [""]
    if name in {"-h", "--help"} or (name == "help" and not rest):
        _print(overview())
        return 0
    if name in {"-V", "--version"}:
        _print(f"wheelproof {__version__}\n")
        if _is_verbose(rest):
            from wheelproof.plugins.loading import listing  # the version by itself needs no look around

            _print(listing())
        return 0
    if name == "help":
        name, rest = rest[0], ["--help"]
    if name not in COMMANDS:
        raise _unknown_command(name)

    import gc
    import importlib  # --help must not pay for this, nor for argparse, which the next two import

    from wheelproof.cli.configuration.parsing import parse_arguments
    from wheelproof.cli.options import make_parser

    # A run makes a hundred thousand small facts that live to its end: looking through them again and again is 7 % of it
    gc.set_threshold(100_000, 20, 100)
    module_name, summary = COMMANDS[name]
    module = importlib.import_module(module_name)
    below = getattr(module, "SUBCOMMANDS", {})  # of a command that has some: a table like COMMANDS
    if rest and rest[0] in below:
        module_name, summary = below[rest[0]]
        module = importlib.import_module(module_name)
        name = f"{name} {rest.pop(0)}"
    parser = make_parser(name, summary, module)
    try:
        namespace = parse_arguments(parser, rest, command=name, commands=COMMANDS)
    except SystemExit as stop:  # how argparse ends --help
        return int(stop.code or 0)
    return 0 if namespace is None else int(module.run(namespace))


def overview() -> str:
    """The text of ``wheelproof --help``."""
    from wheelproof.cli.listing import listed

    commands = listed({name: summary for name, (_, summary) in COMMANDS.items()})
    return f"""\
usage: wheelproof COMMAND [OPTIONS]

Proves that an accelerator wheel stack (torch, Triton, CUDA) works.

  wheelproof doctor                                    where torch sees no GPU
  wheelproof verify torch==2.11.0 --platform aarch64   before it is downloaded
  wheelproof COMMAND --help                            examples of each command

commands:
{commands}

options:
  -h, --help     show this help, or that of a command: wheelproof COMMAND --help
  -V, --version  show the version; with -v, also the installed plug-ins

exit codes:
  0 nothing found, 1 findings, 2 wrong usage, 3 could not check, 130 interrupted
"""


def _unknown_command(name: str) -> UsageError:
    if not name or name.startswith("-"):
        what = f"expected a command, got the option {name}" if name else "no command given"
        return UsageError(what, expected=f"one of {', '.join(COMMANDS)}", hint="see `wheelproof --help`")

    from difflib import get_close_matches  # only a misspelt command pays for it

    nearest = get_close_matches(name, COMMANDS, n=1)
    hint = f"did you mean `wheelproof {nearest[0]}`?" if nearest else "see `wheelproof --help`"
    return UsageError(f"unknown command {name!r}", expected=f"one of {', '.join(COMMANDS)}", hint=hint)


def _print(text: str) -> None:
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise WheelproofError(f"standard output cannot be written: {error.strerror}") from error


def _drop_what_cannot_be_written() -> None:
    """Send what is still buffered nowhere when it cannot be written, or the interpreter complains as it shuts down."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def _wants_traceback(arguments: list[str]) -> bool:
    """True for WHEELPROOF_DEBUG or ``-vv``; read from the raw arguments, since the parser itself may have failed."""
    return bool(os.environ.get("WHEELPROOF_DEBUG")) or _is_verbose(arguments, 2)


def _is_verbose(arguments: list[str], times: int = 1) -> bool:
    """Whether ``-v`` or ``--verbose`` is there at least so many times."""
    verbose = sum(len(a) - 1 for a in arguments if a.startswith("-v") and not a.strip("-v"))
    return verbose + arguments.count("--verbose") >= times


def _say(label: str, what: str, *, expected: str = "", hint: str = "") -> None:
    """Write a message to standard error: one line each for what happened, what was expected, what to do."""
    from wheelproof.cli.options import say  # --help must not pay for it

    say(f"wheelproof: {label}{what}")
    for name, text in (("expected", expected), ("hint", hint)):
        if text:
            say(f"  {name}: {text}")


def _show_traceback(bug: BaseException) -> None:
    """Write a traceback to standard error: it quotes exceptions of others, which quote URLs and commands."""
    import traceback

    from wheel_checks.formats.secrets import redact_text

    if sys.stderr is not None:
        sys.stderr.write(redact_text("".join(traceback.format_exception(bug))))
