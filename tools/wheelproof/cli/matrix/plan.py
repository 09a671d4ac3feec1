"""``wheelproof matrix plan``: the cells as a file of the engine that is to run them."""

import argparse
import re
from collections.abc import Mapping, Sequence

from wheel_checks.commands import in_words, option
from wheel_checks.commands import run as command
from wheel_checks.errors import UsageError
from wheelproof.cli.matrix.options import add_matrix_options, matrix_path
from wheelproof.cli.options import add_list, check_output, open_output
from wheelproof.version import __version__

CONFIGURABLE = False
CHECKED_OUT = ("github", "gitlab")  # the path of the matrix is part of their expressions
ENGINES = ("github", "gitlab", "slurm", "kubernetes", "shell")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``wheelproof matrix plan``."""
    parser.add_argument("--to", choices=ENGINES, required=True, help="the system to generate a file for")
    add_matrix_options(parser)
    parser.add_argument(
        "--executor",
        choices=["docker", "venv"],
        help="where each cell runs, as in `matrix run` (default: venv; docker for shell)",
    )
    parser.add_argument(
        "--install",
        metavar="REQUIREMENT",
        default=f"wheelproof=={__version__}",
        help="the requirement to install wheelproof with (default: this release)",
    )
    add_list(
        parser,
        "--runner",
        "KEY=LABEL",
        "the label of runners for x86_64, aarch64 or gpu (repeatable)",
    )
    parser.add_argument("--output", metavar="FILE", default="-", help="write to FILE (- for standard output)")


def run(arguments: argparse.Namespace) -> int:
    """Write the file. Raises UsageError for a cell that has no place there, and WheelproofError."""
    from wheelproof.matrix.listing import as_json
    from wheelproof.matrix.plans import ENGINES as WRITERS
    from wheelproof.matrix.plans.model import Plan
    from wheelproof.matrix.reading import read_matrix

    if arguments.output != "-":
        check_output("--output", arguments.output)
    file = matrix_path(arguments)
    matrix = read_matrix(file)
    if arguments.to in CHECKED_OUT and not re.fullmatch(r"[\w.-]+(/[\w.-]+)*", str(file), re.ASCII):
        raise UsageError(f"--matrix {file} is not a path below the project, made of letters, digits, /, ., _ and -")
    plan = Plan(
        arguments.to,
        str(file),
        tuple(matrix.only(arguments.only)),
        arguments.install,
        arguments.executor or ("docker" if arguments.to == "shell" else "venv"),
        as_json(matrix.cells),
        _made_by(arguments),
        _runners(arguments.runner),
        tuple(arguments.only),
    )
    text = WRITERS[arguments.to](plan)
    with open_output(arguments.output) as stream:
        stream.write(text)
    return 0


def _made_by(arguments: argparse.Namespace) -> str:
    """The command that makes the plan again, but for where it is written."""
    given = {"--matrix": arguments.matrix, "--executor": arguments.executor}
    words = [option(name, value) for name, value in given.items() if value]
    if not arguments.install.endswith(f"=={__version__}"):
        words.append(option("--install", arguments.install))
    words += [option("--only", pattern) for pattern in arguments.only]
    words += [option("--runner", runner) for runner in arguments.runner]
    return in_words(command("wheelproof", "matrix", "plan", option("--to", arguments.to), *words))


def _runners(given: Sequence[str]) -> Mapping[str, tuple[str, ...]]:
    """The labels by platform or "gpu". Raises UsageError for what is not a KEY=LABEL."""
    from wheel_checks.targets.target import OLDEST_GLIBC
    from wheelproof.matrix.model import GPU_RUNNER

    known, found = (*OLDEST_GLIBC, GPU_RUNNER), dict[str, tuple[str, ...]]()
    for entry in given:
        key, _, label = entry.partition("=")
        if key not in known or not label or not label.isprintable():
            raise UsageError(
                f"--runner {entry} is not a KEY=LABEL", expected=f"one of {', '.join(known)}, = and a label"
            )
        found[key] = (*found.get(key, ()), label)
    return found
