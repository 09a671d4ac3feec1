"""``wheelproof doctor``: the one root cause why torch does not see the GPU, with proof, and what mends it."""

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
from wheel_checks.process import find_program
from wheelproof.cli.options import OutputOptions, add_output_options, emit, open_output
from wheelproof.cli.progress import Progress
from wheelproof.reporting import OpenReport

if TYPE_CHECKING:  # not for --help
    from wheel_checks.facts.gpu.expected import HostExpectation
    from wheel_checks.facts.host.facts import HostFacts, ProbedFacts
    from wheelproof.doctor.report import Examination

_OF_A_DIAGNOSIS = ("--python", "--expect", "--host", "--full", "--fix", "--undo", "--save-facts", "--facts")
TIMEOUT, LONGEST = 60.0, 86_400.0  # seconds


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``wheelproof doctor``."""
    parser.add_argument(
        "--python",
        metavar="PATH",
        default="",
        help="the interpreter, or its environment, that is to be looked at (default: the active environment, else the "
        "first python3 on PATH)",
    )
    parser.add_argument(
        "--expect",
        metavar="WHAT",
        default="",
        help='what the host should have: gpu, cpu, rocm, xpu, a product, or a number of them ("4 x GB200"); without '
        "it, a host without a GPU is undecided",
    )
    parser.add_argument(
        "--root",
        metavar="FOLDER",
        default="/",
        help="judge the file system below FOLDER, such as that of a container, by its files alone (default: /)",
    )
    parser.add_argument(
        "--host",
        metavar="NAME",
        default="",
        help="call the machine NAME in the report, so that `wheelproof report merge` knows it",
    )
    parser.add_argument(
        "--timeout",
        type=float,
        default=TIMEOUT,
        metavar="SECONDS",
        help=f"what is not known after so long counts as not read, whatever hangs (default: {TIMEOUT:g})",
    )
    parser.add_argument(
        "--full",
        action="store_true",
        help="afterwards run the Triton kernels, too (`wheelproof smoke --level quick`), for at most as long again",
    )
    parser.add_argument(
        "--fix",
        action="store_true",
        help="plan the smallest change of this virtual environment that removes the cause and breaks no requirement, "
        "show it, ask, carry it out, and diagnose again; what makes nothing better is put back",
    )
    parser.add_argument("--yes", action="store_true", help="--fix does not ask before it changes anything")
    parser.add_argument("--dry-run", action="store_true", help="--fix shows the plan and changes nothing")
    parser.add_argument(
        "--undo", action="store_true", help="put the environment back as it was before the last --fix, byte for byte"
    )
    parser.add_argument(
        "--save-facts", metavar="FILE", help="write what is known to FILE, without names, tokens and identifiers"
    )
    parser.add_argument(
        "--facts", metavar="FILE", help="diagnose the machine whose facts are in FILE, and not this one"
    )
    parser.add_argument(
        "--collector",
        action="store_true",
        help="write a program of one file that collects the facts of a machine without wheelproof, for --facts: it "
        "needs Python 3.6 or newer, and no package",
    )
    add_output_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Diagnose, and print the report. Raises WheelproofError."""
    from wheelproof.doctor.facts_file import facts_text, load_facts
    from wheelproof.doctor.reading import Request, read_host

    output = OutputOptions.from_arguments(arguments)
    _check(arguments)
    if arguments.undo:
        from wheelproof.cli.mending import put_back

        return put_back(arguments.python, quiet=output.quiet)
    if arguments.collector:
        return _write_collector(output.output)
    expected = _expected(arguments.expect)
    opened = OpenReport("doctor")
    request = Request(arguments.python, arguments.root, arguments.timeout, probes=_probes(output))

    def look() -> Examination:
        # What judges the facts is imported while they are read, which is mostly waiting for children.
        threading.Thread(target=importlib.import_module, args=("wheelproof.doctor.report",), daemon=True).start()
        with Progress("reading this machine:", unit="sections", quiet=output.quiet) as progress:
            facts = read_host(request, os.environ, progress.done)
        return _examine(facts, expected, output)

    found = _examine(load_facts(arguments.facts), expected, output) if arguments.facts else look()
    notes: list[str] = []
    facts: dict[str, object] = {}
    if arguments.save_facts:
        with open_output(arguments.save_facts) as stream:
            stream.write(facts_text(found.facts))
        notes.append(f"The facts are in {arguments.save_facts}; look at them before you pass them on.")
    if not arguments.facts and arguments.root == "/":
        from wheelproof.doctor.repair.unfinished import unfinished

        notes += unfinished(found.facts)
    if arguments.fix:
        from wheelproof.cli.mending import Asking, mend

        asking = Asking(offline=output.offline, ask=not arguments.yes, dry_run=arguments.dry_run)
        mended = mend(found, look, notes, asking)
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
    """What asks the probes of plug-ins; None where there isn't one."""
    from wheelproof.plugins.installed import PROBES

    if not output.plugins.of(PROBES):
        return None
    from wheelproof.plugins.probes import read_probes

    return partial(read_probes, output.plugins)


def _write_collector(output: str) -> int:
    from wheelproof.doctor.collector.program import collector_program

    text = collector_program()
    with open_output(output) as stream:
        stream.write(text)
    return 0


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
        raise UsageError("--full runs kernels on a GPU, and --expect cpu expects none", expected="one of the two")
    if elsewhere and acting:
        raise UsageError(f"{acting[0]} acts on this machine, and {elsewhere} names another", expected="one of the two")
    python, here = arguments.python, arguments.root == "/"
    if arguments.facts and (python or not here):
        raise UsageError("--facts is instead of a machine", expected="no --python and no --root next to it")
    if not Path(arguments.root).is_dir():
        raise UsageError(f"--root {arguments.root} is no folder", expected="a folder with etc, proc, usr, ... in it")
    if python and here and not Path(python).exists() and find_program(python, os.environ) is None:
        raise UsageError(f"there is no {python}", expected="an interpreter, or the folder of an environment")
    if not 0 < arguments.timeout <= LONGEST:
        raise UsageError(
            f"--timeout {arguments.timeout:g} is no time to wait", expected="a number above 0, up to a day"
        )
    _check_fix(arguments)


def _check_fix(arguments: argparse.Namespace) -> None:
    """Raise UsageError for options of --fix that do not go together."""
    of_fix = [name for name, given in (("--yes", arguments.yes), ("--dry-run", arguments.dry_run)) if given]
    if of_fix and not arguments.fix:
        raise UsageError(f"{of_fix[0]} is of --fix")
    if arguments.fix and not of_fix and not sys.stdin.isatty():
        expected = "--yes, or --dry-run to see the plan"
        raise UsageError("--fix asks before it changes anything, and standard input is no terminal", expected=expected)


def _acting(arguments: argparse.Namespace) -> list[str]:
    """The options that do more than diagnose. Raises UsageError for those that do not go together."""
    asked = [name for name in _OF_A_DIAGNOSIS if getattr(arguments, name.lstrip("-").replace("-", "_"))]
    if arguments.collector and asked:
        raise UsageError(
            f"--collector writes a program and diagnoses nothing, and {asked[0]} is of a diagnosis",
            expected="wheelproof doctor --collector > collect.py",
        )
    given = (("--undo", arguments.undo), ("--fix", arguments.fix), ("--full", arguments.full))
    acting = [name for name, is_given in given if is_given]
    if arguments.undo and len(acting) > 1:
        raise UsageError(
            f"--undo puts back what --fix did, and {acting[1]} does something else", expected="one of the two"
        )
    return acting


def _kernels(found: Examination, timeout: float, notes: list[str]) -> list[Subject]:
    """The verdict of the kernels; none where torch cannot use a GPU, since they would only say so again."""
    from wheelproof.doctor.full import run_smoke

    interpreter, torch = found.facts.interpreter, found.facts.torch
    if isinstance(interpreter, Unavailable) or isinstance(torch, Unavailable) or not torch.available:
        notes.append("--full ran no kernels: torch has no GPU to run them on.")
        return []
    return [run_smoke(interpreter.path, timeout)]
