"""``wheelproof pins guard``: installs what keeps torch, checks it, removes it, or writes it as files."""

import argparse
import os
import shlex
import sys
from dataclasses import replace
from pathlib import Path

from wheel_checks.errors import NotFoundError, SourceError, UsageError
from wheel_checks.model import Subject
from wheelproof.cli.options import OutputOptions, add_list, add_output_options, emit, open_output
from wheelproof.reporting import OpenReport


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``wheelproof pins guard``."""
    what = parser.add_mutually_exclusive_group()
    what.add_argument(
        "--install", action="store_true", help="install the guard into the environment, after confirmation"
    )
    what.add_argument(
        "--uninstall", action="store_true", help="remove the guard from the environment, and restore every file"
    )
    what.add_argument(
        "--check", action="store_true", help="check what is set up, and list the gaps, without writing anything"
    )
    parser.add_argument("--yes", action="store_true", help="do not ask for confirmation of --install and --uninstall")
    parser.add_argument(
        "--user", action="store_true", help="with --install, also constrain uv in every environment of this user"
    )
    add_list(
        parser,
        "--family",
        "NAME",
        "the family to hold, such as jax or tensorflow (repeatable; default: torch)",
    )
    add_list(
        parser,
        "--package",
        "NAME",
        "also hold packages matching this name or glob, and their dependencies (repeatable)",
    )
    parser.add_argument(
        "--directory",
        metavar="FOLDER",
        default="torch-guard",
        help="the folder to write the files to (default: torch-guard)",
    )
    parser.add_argument(
        "--python", metavar="PATH", default="", help="the environment to guard (default: the active one)"
    )
    add_list(
        parser,
        "--installed",
        "VERSION",
        "the installed version, such as 2.7.0+cu128 or torchvision==0.22.0+cu128, instead of an environment "
        "(repeatable)",
    )
    parser.add_argument(
        "--on-conflict",
        choices=("fail", "keep"),
        default="fail",
        help="what uv does with a requirement that the installed torch does not satisfy: fail, or keep torch and drop "
        "it",
    )
    add_list(parser, "--extension", "NAME", "another package that is compiled against torch (repeatable)")
    parser.add_argument(
        "--installer", choices=("uv", "pip", "both"), default="both", help="the installer whose setup --check inspects"
    )
    parser.add_argument(
        "--project", metavar="FOLDER", default=".", help="the folder from which the installer is run, for --check"
    )
    add_output_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Do what the options say, or write the guard as files and say how they are used. Raises WheelproofError."""
    output = OutputOptions.from_arguments(arguments)
    if arguments.check:
        return _check(arguments, output)
    if arguments.install:
        return _install(arguments, output)
    if arguments.uninstall:
        return _uninstall(arguments, output)
    return _write(arguments, output)


def _extensions(arguments: argparse.Namespace) -> tuple[str, ...]:
    from packaging.utils import canonicalize_name

    from wheelproof.pins.guard.files import known_extensions

    more = (str(canonicalize_name(name)) for name in arguments.extension)
    return tuple(dict.fromkeys((*more, *known_extensions())))


def _install(arguments: argparse.Namespace, output: OutputOptions) -> int:
    from wheelproof.pins.guard import environment

    if arguments.installed:
        raise UsageError(
            "--installed describes an environment elsewhere; --install needs one on this host: --python PATH"
        )
    place, found = environment.place_of(arguments.python, os.environ)
    before = environment.families_before(place)
    settings = environment.families_held(_families(arguments), _extensions(arguments), before)
    plan = environment.make_plan(place, found, settings, os.environ, user=arguments.user)
    described = environment.describe_plan(plan)
    _print(output, described)
    _ask(arguments, "Install it?")
    environment.install(plan)
    done = f"installed; check it with: wheelproof pins guard --check --python {shlex.quote(place.python)}\n"
    _print(output, done, behind=described)
    return 0


def _uninstall(arguments: argparse.Namespace, output: OutputOptions) -> int:
    from wheelproof.pins.guard import environment
    from wheelproof.pins.guard.inside.layout import ORIGINALS

    place, _ = environment.place_of(arguments.python, os.environ)
    described = environment.describe_installed(place)
    _print(output, described)
    _ask(arguments, "Remove it?")
    left = environment.uninstall(place)
    if left:
        kept = f"the original is in {place.file(ORIGINALS)}" if Path(place.file(ORIGINALS)).is_dir() else ""
        raise SourceError(f"{', '.join(left)} was changed since, and is kept", hint=kept or "remove the lines by hand")
    _print(output, "removed; every file is as it was\n", behind=described)
    return 0


def _ask(arguments: argparse.Namespace, question: str) -> None:
    """Ask, unless --yes says so already. Raises UsageError for a no, and when standard input is not a terminal."""
    if arguments.yes:
        return
    if not sys.stdin.isatty():
        raise UsageError("nothing was changed: no terminal to ask for confirmation", hint="add --yes")
    sys.stderr.write(f"{question} [y/N] ")
    sys.stderr.flush()
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise UsageError("nothing was changed")


def _print(output: OutputOptions, text: str, behind: str = "") -> None:
    """Write a text, to a file with what is in front of it: a file is written whole."""
    from wheel_checks.report.folding import for_stream
    from wheel_checks.report.wording import write

    if not output.quiet:
        with open_output(output.output) as stream:
            write(stream, for_stream(text, stream) if output.output == "-" else behind + text)


def _installed(arguments: argparse.Namespace) -> dict[str, str]:
    """What is to be held, as it is installed or described: torch first, its companions, its closure."""
    from wheel_checks.facts.pins.receipt import InstalledGuard, read_installed_guard
    from wheel_checks.sources.environment import find_environment
    from wheelproof.pins.guard.environment import held_in
    from wheelproof.pins.predict.environment import read_packages
    from wheelproof.pins.survival import parse_installed

    if arguments.installed:
        return {name: str(version) for name, version in map(parse_installed, arguments.installed)}
    environment = find_environment(arguments.python, variables=os.environ)
    packages = read_packages(environment)
    guard = read_installed_guard(environment.tree, environment.path)
    names = list(guard.packages) if isinstance(guard, InstalledGuard) else []
    families = _families(arguments)
    for asked in [[name] for name in families] or ([] if names else [[]]):
        found = held_in(environment, asked)
        if asked and not found:
            raise NotFoundError(
                f"no {asked[0]} in {environment.path}",
                hint="name another environment (--python PATH), or another --family or --package",
            )
        names += found
    return {name: packages[name].version for name in names if name in packages}


def _families(arguments: argparse.Namespace) -> list[str]:
    return [*arguments.family, *arguments.package]


def _write(arguments: argparse.Namespace, output: OutputOptions) -> int:
    from wheel_checks.facts.pins.families import families_of
    from wheelproof.pins.guard.abilities import read_uv
    from wheelproof.pins.guard.environment import families_held
    from wheelproof.pins.guard.files import Guard, guard_files, instructions, program_files, write_files

    folder = Path(arguments.directory).absolute()
    extensions = _extensions(arguments)
    keep_going = arguments.on_conflict == "keep"
    installed = _installed(arguments)
    guard = Guard(installed, folder, read_uv(os.environ), extensions, keep_going)
    families = _families(arguments) or [family.name for family in families_of(installed)]
    write_files(folder, guard_files(guard, families_held(families, extensions)))
    for below, files in program_files().items():
        write_files(folder / below, files)
    _print(output, instructions(guard))
    return 0


def _check(arguments: argparse.Namespace, output: OutputOptions) -> int:
    from wheel_checks.facts.expectations import Expectations
    from wheel_checks.facts.pins.families import as_pattern
    from wheel_checks.runner import run_rules
    from wheel_checks.sources.environment import find_environment
    from wheelproof.pins.guard.check import read_guard
    from wheelproof.pins.guard.inspection import inspect_environment

    opened = OpenReport("pins guard")
    folder = Path(arguments.project)
    if not folder.is_dir():
        raise UsageError(f"--project {folder} is not a folder", expected="the folder in which the installer is started")
    environment = None if arguments.installed else find_environment(arguments.python, variables=os.environ)
    installed = _installed(arguments)
    if not installed:
        where = environment.path if environment is not None else "what is described"
        raise NotFoundError(
            f"no torch in {where}: nothing to guard",
            hint="name another environment (--python PATH) or another family (--family NAME)",
        )
    names = ", ".join(f"{name} {version}" for name, version in installed.items())
    subjects = []
    for installer in {"both": ("uv", "pip")}.get(arguments.installer, (arguments.installer,)):
        guard = read_guard(installer, installed, folder, os.environ, environment)
        guard = replace(guard, asked=frozenset(map(as_pattern, _families(arguments))))
        facts = {
            "installer": installer,
            "version": guard.version,
            "installed": dict(installed),
            "settings": [f"{s.kind}: {s.origin}{f' ({s.path})' if s.path else ''}" for s in guard.settings],
        }
        results = run_rules(output.rules("pin-guard"), guard, Expectations())
        subjects.append(Subject(f"the guard of {installer} {guard.version}", "guard", names, facts, results))
    if environment is not None:
        whole = inspect_environment(environment, os.environ, arguments.installer.replace("both", ""))
        results = run_rules(output.rules("pin-environment"), whole, Expectations())
        facts = {
            "held": dict(whole.versions),
            "open": [way.command for way in whole.open_ways],
            "outside": whole.outside,
        }
        subjects.append(Subject(f"the guard of {environment.path}", "guard", names, facts, results))
    report = opened.close(subjects, output)
    return emit(report, output)
