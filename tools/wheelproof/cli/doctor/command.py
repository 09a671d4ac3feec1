"""``wheelproof doctor``: the root cause why torch does not see the GPU, with evidence and a fix."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
import threading
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from wheel_checks.errors import UsageError
from wheel_checks.model import Subject, Unavailable
from wheel_checks.process.child import find_program
from wheelproof.cli.options.output import OutputOptions, add_output_options, emit, open_output
from wheelproof.cli.progress import Progress
from wheelproof.reporting import OpenReport

if TYPE_CHECKING:  # not for --help
    from wheel_checks.facts.gpu.expected import HostExpectation
    from wheel_checks.facts.host.facts import HostFacts, ProbedFacts
    from wheelproof.doctor.report import Examination

TIMEOUT, LONGEST = 60.0, 86_400.0  # seconds


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``wheelproof doctor``."""
    parser.add_argument(
        "--python",
        metavar="PATH",
        default="",
        help="the interpreter or environment to inspect (default: the active environment, else the first python3 on "
        "PATH)",
    )
    parser.add_argument(
        "--expect",
        metavar="WHAT",
        default="",
        help='the expected accelerator: gpu, cpu, rocm, xpu, a product, or a count of them ("4 x GB200"); without '
        "it, a host without a GPU is undecided",
    )
    parser.add_argument(
        "--root",
        metavar="FOLDER",
        default="/",
        help="inspect only the files of the system below FOLDER, such as an unpacked container (default: /)",
    )
    parser.add_argument(
        "--host",
        metavar="NAME",
        default="",
        help="the host name to use in the report, for `wheelproof report merge`",
    )
    parser.add_argument(
        "--timeout",
        type=float,
        default=TIMEOUT,
        metavar="SECONDS",
        help=f"stop probing after SECONDS; missing facts are reported as unavailable (default: {TIMEOUT:g})",
    )
    parser.add_argument(
        "--full",
        action="store_true",
        help="also run the Triton kernels (`wheelproof smoke --level quick`), for up to --timeout SECONDS more",
    )
    parser.add_argument(
        "--fix",
        action="store_true",
        help="plan the smallest change to this virtual environment that removes the cause without breaking a "
        "requirement; show it, ask, apply it, and diagnose again; a change that does not help is reverted",
    )
    parser.add_argument("--yes", action="store_true", help="apply the --fix plan without asking for confirmation")
    parser.add_argument("--dry-run", action="store_true", help="show the --fix plan without applying it")
    parser.add_argument(
        "--undo", action="store_true", help="restore the environment as it was before the last --fix, byte for byte"
    )
    parser.add_argument(
        "--save-facts", metavar="FILE", help="write the collected facts to FILE, without names, tokens and identifiers"
    )
    parser.add_argument(
        "--facts", metavar="FILE", help="diagnose the host whose facts are in FILE, instead of this one"
    )
    add_output_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Diagnose, and print the report. Raises WheelproofError."""
    from wheelproof.doctor.facts_file import facts_text, load_facts
    from wheelproof.doctor.reading import Request, read_host

    output = OutputOptions.from_arguments(arguments)
    _check(arguments)
    if arguments.undo:
        from wheelproof.cli.doctor.repair import put_back

        return put_back(arguments.python, quiet=output.quiet)
    expected = _expected(arguments.expect)
    opened = OpenReport("doctor")
    request = Request(arguments.python, arguments.root, arguments.timeout, probes=_probes(output))

    def look() -> Examination:
        # Rules are imported while the probes wait for their children.
        threading.Thread(target=importlib.import_module, args=("wheelproof.doctor.report",), daemon=True).start()
        with Progress("reading this host:", unit="sections", quiet=output.quiet) as progress:
            facts = read_host(request, os.environ, progress.done)
        return _examine(facts, expected, output)

    found = _examine(load_facts(arguments.facts), expected, output) if arguments.facts else look()
    notes: list[str] = []
    facts: dict[str, object] = {}
    if arguments.save_facts:
        with open_output(arguments.save_facts) as stream:
            stream.write(facts_text(found.facts))
        notes.append(f"The facts were written to {arguments.save_facts}; review them before you share them.")
    if not arguments.facts and arguments.root == "/":
        from wheelproof.doctor.repair.unfinished import unfinished

        notes += unfinished(found.facts)
    if arguments.fix:
        from wheelproof.cli.doctor.repair import RepairOptions, mend

        options = RepairOptions(offline=output.offline, ask=not arguments.yes, dry_run=arguments.dry_run)
        mended = mend(found, look, notes, options)
        found, facts = mended.examination, mended.facts
    more = _kernels(found, arguments.timeout, notes) if arguments.full else []
    from wheelproof.doctor.report import Showing, make_report

    showing = Showing(
        arguments.facts or (f"the machine below {arguments.root}" if arguments.root != "/" else "this machine"),
        output,
        detail=bool(output.verbose),
        host=arguments.host,
    )
    return emit(make_report(found, showing, opened, more=more, notes=notes, facts=facts), output)


def _probes(output: OutputOptions) -> Callable[[], Mapping[str, ProbedFacts | Unavailable]] | None:
    """A function that runs the probes of plug-ins; None without plug-ins."""
    from wheelproof.plugins.installed import PROBES

    if not output.plugins.of(PROBES):
        return None
    from wheelproof.plugins.probes import read_probes

    return partial(read_probes, output.plugins)


def _examine(facts: HostFacts, expected: HostExpectation | None, output: OutputOptions) -> Examination:
    from wheelproof.doctor.report import examine  # after the facts have been read

    return examine(facts, expected, output.plugins)


def _expected(text: str) -> HostExpectation | None:
    if not text:
        return None
    from wheel_checks.facts.gpu.expected import parse_host_expectation

    return parse_host_expectation(text)


def _check(arguments: argparse.Namespace) -> None:
    """Raise UsageError for options that do not go together."""
    acting = _acting(arguments)
    elsewhere = "--facts" if arguments.facts else "--root" if arguments.root != "/" else ""
    if arguments.full and arguments.expect.strip().lower() == "cpu":
        raise UsageError("--full runs kernels on a GPU, but --expect cpu expects none", expected="only one of them")
    if elsewhere and acting:
        raise UsageError(f"{acting[0]} acts on this host, but {elsewhere} names another", expected="only one of them")
    python, here = arguments.python, arguments.root == "/"
    if arguments.facts and (python or not here):
        raise UsageError("--facts replaces a host", expected="no --python or --root")
    if not Path(arguments.root).is_dir():
        raise UsageError(f"--root {arguments.root} is not a folder", expected="a folder with etc, proc, usr, ... in it")
    if python and here and not Path(python).exists() and find_program(python, os.environ) is None:
        raise UsageError(f"there is no {python}", expected="an interpreter, or an environment folder")
    if not 0 < arguments.timeout <= LONGEST:
        raise UsageError(
            f"--timeout {arguments.timeout:g} is not a valid timeout",
            expected="a number of seconds above 0, at most a day",
        )
    _check_fix(arguments)


def _check_fix(arguments: argparse.Namespace) -> None:
    """Raise UsageError for options of --fix that do not go together."""
    of_fix = [name for name, given in (("--yes", arguments.yes), ("--dry-run", arguments.dry_run)) if given]
    if of_fix and not arguments.fix:
        raise UsageError(f"{of_fix[0]} requires --fix")
    if arguments.fix and not of_fix and not sys.stdin.isatty():
        expected = "--yes, or --dry-run to see the plan"
        raise UsageError(
            "--fix asks before it changes anything, but standard input is not a terminal", expected=expected
        )


def _acting(arguments: argparse.Namespace) -> list[str]:
    """The options that do more than diagnose. Raises UsageError for incompatible ones."""
    given = (("--undo", arguments.undo), ("--fix", arguments.fix), ("--full", arguments.full))
    acting = [name for name, is_given in given if is_given]
    if arguments.undo and len(acting) > 1:
        raise UsageError(f"--undo cannot be combined with {acting[1]}", expected="only one of them")
    return acting


def _kernels(found: Examination, timeout: float, notes: list[str]) -> list[Subject]:
    """The verdict of the kernels; none if torch cannot use a GPU, since they would only say so again."""
    from wheelproof.doctor.full import run_smoke

    interpreter, torch = found.facts.interpreter, found.facts.torch
    if isinstance(interpreter, Unavailable) or isinstance(torch, Unavailable) or not torch.available:
        notes.append("--full ran no kernels: torch sees no GPU.")
        return []
    return [run_smoke(interpreter.path, timeout)]
