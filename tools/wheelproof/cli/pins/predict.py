"""``wheelproof pins predict``: predict the effect of an install on torch, and its cause."""

from __future__ import annotations

import argparse
import os
import platform
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from wheel_checks.errors import NotFoundError, UsageError
from wheelproof.cli.options.indexes import add_source_options, open_sources
from wheelproof.cli.options.output import CommandParser, OutputOptions, add_list, add_output_options, emit
from wheelproof.cli.options.rights import SETS, allow_tree

if TYPE_CHECKING:  # not for --help
    from wheelproof.pins.predict.model import Destination
    from wheelproof.pins.predict.step import Step

PROGRAMS = ("pip", "pip3", "python", "python3", "uv", "uvx", "poetry", "pdm", "pipx")
_VERSION = re.compile(r"(?:cp)?3\.?\d{1,2}(?:\.\d{1,2})?t?")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``wheelproof pins predict``."""
    if isinstance(parser, CommandParser):
        parser.programs = frozenset(PROGRAMS)
    parser.add_argument(
        "specs",
        nargs="*",
        metavar="TARGET",
        help="a requirement (vllm==0.20.0), a project (.), a lock file, a Dockerfile, or an install command: "
        "uv add vllm, pip install -U vllm, or shell lines in quotes",
    )
    parser.add_argument(
        "-e", "--editable", action="append", default=[], metavar="PATH", help="the project in this folder (repeatable)"
    )
    parser.add_argument(
        "--group", action="append", default=[], metavar="GROUP", help="a group of [dependency-groups] (repeatable)"
    )
    parser.add_argument(
        "--with",
        dest="with_",
        action="append",
        default=[],
        metavar="SPEC",
        help="an additional requirement, as for uv run --with (repeatable)",
    )
    parser.add_argument(
        "-r", "--requirement", action="append", default=[], metavar="FILE", help="a requirements file (repeatable)"
    )
    parser.add_argument(
        "--python",
        default="",
        metavar="PATH|VERSION",
        help="the environment (default: the active one); with --platform or --installed a version, such as 3.12",
    )
    parser.add_argument(
        "--installer",
        choices=("uv", "pip", "both"),
        default=None,
        help="the installer to use (default: both; uv for other platforms)",
    )
    parser.add_argument(
        "--platform", metavar="PLATFORM", help="the target platform: x86_64, aarch64, manylinux_2_28_aarch64, ..."
    )
    add_list(
        parser,
        "--installed",
        "NAME==VERSION",
        "an installed package, such as torch==2.11.0+cu130, instead of an environment (repeatable)",
    )
    add_list(
        parser,
        "--package",
        "NAME",
        "also keep packages matching this name or glob, such as 'nvidia-*' (repeatable)",
    )
    parser.add_argument(
        "-U", "--upgrade", action="store_true", help="upgrade packages, as --upgrade of the installer does"
    )
    parser.add_argument(
        "--build", action="store_true", help="allow the installer to build source archives, which runs their code"
    )
    parser.add_argument("--pre", action="store_true", help="allow pre-releases")
    allow_tree(parser, SETS, "pre")
    add_source_options(parser)
    add_output_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Plan the install, judge the planned wheels, and print the report. Raises WheelproofError."""
    from wheel_checks.facts.pins.families import as_pattern
    from wheelproof.pins.installers import DEFAULT_TIMEOUT, PIP, UV
    from wheelproof.pins.predict.images import FROM
    from wheelproof.pins.predict.model import NOTHING_REQUESTED, PredictRequest
    from wheelproof.pins.predict.prediction import predict
    from wheelproof.pins.predict.targets import read_targets
    from wheelproof.wheels.asked import parse_requested
    from wheelproof.wheels.declared_model import Typed, TypedKind

    output = OutputOptions.from_arguments(arguments)
    folder = Path.cwd()
    typed = [Typed(TypedKind.FILE, name) for name in arguments.requirement]
    typed += [Typed(TypedKind.PROJECT, name) for name in arguments.editable]
    typed += [Typed(TypedKind.GROUP, name) for name in arguments.group]
    targets = read_targets(arguments.specs, folder, typed, arguments.with_)
    place = _place(arguments, targets.steps, folder)
    steps = [step for step in targets.steps if not (arguments.installed and step.text.startswith(f"{FROM} "))]
    if targets.steps and not steps:
        raise NotFoundError("no install command was found", hint="describe what the image has installed")
    chosen = arguments.installer or ("uv" if place.described or output.offline else "both")
    if output.offline and chosen != "uv":
        raise UsageError("pip cannot plan an install from its cache", hint="use --installer uv with --offline")
    request = PredictRequest(
        NOTHING_REQUESTED
        if targets.steps
        else parse_requested(targets.requirements, (), typed=targets.typed, folder=folder),
        place,
        {"uv": (UV,), "pip": (PIP,), "both": (UV, PIP)}[chosen],
        (*_installer_options(arguments), *(["--offline"] if output.offline else [])),
        arguments.upgrade,
        arguments.build,
        output,
        arguments.deadline or DEFAULT_TIMEOUT,
        packages=tuple(map(as_pattern, arguments.package)),
    )
    with open_sources(arguments, output) as opened:
        report = predict(request, opened.client, opened.index, steps)
    return emit(report, output)


def _place(arguments: argparse.Namespace, steps: Sequence[Step], folder: Path) -> Destination:
    """The existing environment, or the one described by ``--installed``."""
    from wheel_checks.sources.environment import find_environment
    from wheel_checks.targets.target import parse_targets
    from wheelproof.pins.predict.environment import target_of
    from wheelproof.pins.predict.images import is_image_file, python_of_image
    from wheelproof.pins.predict.import_order import interior_of, read_interior
    from wheelproof.pins.predict.model import Destination
    from wheelproof.pins.survival import parse_installed

    version = _VERSION.fullmatch(arguments.python) is not None
    if arguments.installed:
        if arguments.python and not version:
            raise UsageError(
                f"--python {arguments.python} and --installed describe different environments", expected="one of them"
            )
        targets = parse_targets(
            [arguments.platform] if arguments.platform else (), [arguments.python] if version else ()
        )
        if len(targets) != 1:
            raise UsageError("only one environment can be described at a time", expected="--platform x86_64 or aarch64")
        there = {name: str(found) for name, found in map(parse_installed, arguments.installed)}
        return Destination.of(targets[0], there)
    if any(not step.trusted for step in steps) and (version or not arguments.python):
        images = [python_of_image(path) for word in arguments.specs if is_image_file(path := folder / word)]
        named = arguments.python or next(filter(None, images), "")
        return Destination.of(
            parse_targets([arguments.platform or platform.machine()], [named] if named else ())[0], {}
        )
    if arguments.platform or version:
        raise UsageError(
            "the installed packages there are unknown", expected="--installed torch==2.11.0+cu130 with --platform"
        )
    environment = find_environment(arguments.python or _of_project(steps), variables=os.environ)
    if not environment.interpreter:  # a folder made by --target, or an environment of another machine
        return Destination(target_of(environment), interior_of(environment), described=True)
    interior = read_interior(environment, os.environ)
    is_named = bool(arguments.python)
    return Destination(target_of(environment), interior, environment.interpreter, is_named=is_named)


def _of_project(steps: Sequence[Step]) -> str:
    """The environment of the project that uv works on, for a command of it; "" for the active one."""
    from wheelproof.pins.predict.step import Verb
    from wheelproof.pins.predict.uv_project import find_project

    first = next((step for step in steps if step.verb in (Verb.SYNC, Verb.ADD, Verb.RUN) and not step.unread), None)
    if first is None:
        return ""
    try:
        place = find_project(first.project) / os.environ.get("UV_PROJECT_ENVIRONMENT", ".venv")
    except UsageError:  # uv run works without a project
        return ""
    return str(place) if place.is_dir() else ""


def _installer_options(arguments: argparse.Namespace) -> list[str]:
    """The options that pip and uv share, as the user gave them."""
    options = ["--pre"] if arguments.pre else []
    options += ["--index-url", arguments.index_url] if arguments.index_url else []
    for name in ("extra-index-url", "find-links"):
        options += [part for value in getattr(arguments, name.replace("-", "_")) for part in (f"--{name}", value)]
    return [*options, *(["--no-index"] if arguments.no_index else [])]
