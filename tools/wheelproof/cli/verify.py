"""``wheelproof verify TARGET...``: judge wheels from their directory and metadata, wherever they are."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING

from wheel_checks.errors import UsageError
from wheelproof.cli.options.indexes import add_source_options, attesting_of, open_sources, parse_companions
from wheelproof.cli.options.machines import add_machine_options, add_platform_option
from wheelproof.cli.options.output import (
    OutputOptions,
    add_depth,
    add_list,
    add_max_read,
    add_output_options,
    check_output,
    emit,
    max_read,
    note,
    open_output,
)
from wheelproof.cli.options.rights import SETS, allow_tree
from wheelproof.cli.progress import Progress

if TYPE_CHECKING:
    from wheel_checks.sources.environment import Environment
    from wheelproof.verifying.recording import Recording
    from wheelproof.wheels.model import Judgement


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``wheelproof verify``."""
    parser.add_argument(
        "targets", nargs="*", metavar="TARGET", help="a .whl file, a folder, a URL, or a requirement (torch==2.11.0)"
    )
    add_platform_option(parser)
    add_list(
        parser,
        "--python",
        "VERSION",
        "the target Python version: 3.12, 3.13t, ... (default: this Python); with --installed the PATH of an "
        "interpreter, "
        "environment, --target folder or container root (default: the active environment)",
    )
    parser.add_argument(
        "--all-files", action="store_true", help="check every wheel of the release, instead of one per target"
    )
    parser.add_argument("--pre", action="store_true", help="allow pre-releases")
    parser.add_argument(
        "--expect", metavar="WHAT", help="the expected build: cuda, cuda==13.0, cuda>=13, rocm, xpu, cpu or none"
    )
    parser.add_argument("--max-size", metavar="SIZE", help="the maximum size of a wheel: 900MB, 2GiB")
    add_depth(parser)
    parser.add_argument(
        "--with",
        dest="companions",
        action="append",
        default=[],
        metavar="REQUIREMENT",
        help="resolve with this additional requirement, at depth links: torch==2.11.0 (repeatable)",
    )
    add_max_read(parser)
    add_list(
        parser,
        "--gpu",
        "GPU",
        "the GPUs it must run on: GB200, H100, MI300X, sm_100, 12.1, ...; reads the GPU code that this needs, at any "
        "depth (repeatable)",
    )
    add_machine_options(parser)
    record = parser.add_argument_group("comparison with an earlier run")
    record.add_argument("--record", metavar="FILE", help="write names, hashes, indexes and verdicts to FILE")
    record.add_argument(
        "--same-as", metavar="FILE", help="fail if a file differs from this record, written by --record"
    )
    parser.add_argument(
        "--provenance",
        action="store_true",
        help="verify the attestations of each file (PEP 740), which reads every byte; needs the extra provenance",
    )
    installed = parser.add_argument_group("installed environments")
    installed.add_argument(
        "--installed", action="store_true", help="check an environment, without running anything in it"
    )
    installed.add_argument(
        "--root",
        default="/",
        metavar="FOLDER",
        help="the root of the file system that contains the environment (default: /)",
    )
    installed.add_argument(
        "--ld-library-path",
        metavar="FOLDERS",
        default="",
        help="the LD_LIBRARY_PATH to assume (default: that of this process)",
    )
    add_list(parser, "--explain", "SONAME", "explain how the loader searches for this library")
    allow_tree(parser, SETS, "python", "all-files", "pre", "expect", "max-size", "depth", "max-read", "gpu")
    add_source_options(parser)
    add_output_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Judge the targets and print the report. Raises WheelproofError."""
    from wheel_checks.facts.gpu.targets import parse_gpus
    from wheel_checks.facts.wheel.depth import Depth
    from wheel_checks.facts.wheel.expectations import Expectations, parse_expectation, parse_size
    from wheelproof.verifying.wheels import verify
    from wheelproof.wheels.described import machines_of, platforms_of
    from wheelproof.wheels.model import Judgement
    from wheelproof.wheels.planning import Wanted

    output = OutputOptions.from_arguments(arguments)
    if arguments.installed and "python" in arguments.from_tree:
        arguments.python = []  # versions of wheels to judge; which environment is inspected is not for a tree to say
    _check_mode(arguments)
    gpus = parse_gpus(",".join(arguments.gpu)) if arguments.gpu else ()
    machines = machines_of(gpus, arguments.driver, arguments.cpu, arguments.platform)
    wanted = Wanted(
        platforms_of(arguments.platform, gpus, machines),
        tuple(arguments.python),
        arguments.all_files,
        arguments.pre,
        machines,
        assumed_platforms=not arguments.platform,
        assumed_pythons="python" in arguments.from_tree,
    )
    expectations = Expectations(
        parse_expectation(arguments.expect) if arguments.expect else None,
        parse_size(arguments.max_size) if arguments.max_size else None,
        tuple(arguments.explain),
        gpus,
        tuple(arguments.driver),
    )
    depth = Depth(arguments.depth)
    if (arguments.companions or expectations.without_driver) and not depth.includes(Depth.LINKS):
        depth = Depth.LINKS
    if arguments.provenance:
        depth = Depth.FULL  # an attestation is of all bytes
    judgement = Judgement(expectations, output, depth, max_read(arguments))
    if arguments.installed:
        return _run_installed(arguments, judgement, output)
    recording = _recording(arguments)
    links, whole = judgement.depth.includes(Depth.LINKS), judgement.depth is Depth.FULL
    companions = parse_companions(arguments.companions)
    with open_sources(
        arguments, output, assumed=wanted.note, links=links, whole=whole, companions=companions
    ) as opened:
        report = verify(
            arguments.targets,
            wanted,
            judgement,
            opened.client,
            opened.index,
            opened.progress,
            opened.dependencies,
            recording,
            attesting=attesting_of(opened.client, output) if arguments.provenance else None,
        )
    if recording is not None and arguments.record:
        with open_output(arguments.record) as stream:
            recording.write(report, stream)
    return emit(report, output)


def _recording(arguments: argparse.Namespace) -> Recording | None:
    """The record to compare with and to write. Raises UsageError if one cannot be read or written."""
    if not arguments.record and not arguments.same_as:
        return None
    from wheel_checks.facts.provenance.record import Requested
    from wheel_checks.formats.secrets import redact_text
    from wheelproof.verifying.recording import Recording, read_record

    if arguments.record:
        check_output("--record", arguments.record)
        if arguments.record == "-":
            raise UsageError("--record - would mix the record with the report", expected="a file")
        if Path(arguments.record).is_symlink():
            what = f"--record {arguments.record} is a link, and links are not followed when writing"
            raise UsageError(what, expected="a file")
        if arguments.same_as and _is_same(Path(arguments.record), Path(arguments.same_as)):
            what = "--record would replace the record that --same-as compares with"
            raise UsageError(what, expected="two files", hint="move the new record if its changes are intended")
    targets = tuple(map(redact_text, arguments.targets))
    requested = Requested(targets, tuple(arguments.platform), tuple(arguments.python), arguments.depth)
    before = read_record(Path(arguments.same_as)) if arguments.same_as else None
    return Recording(requested, before, arguments.same_as or "")


def _is_same(one: Path, other: Path) -> bool:
    """Whether two paths lead to one file, or will."""
    return one.resolve() == other.resolve() or (one.exists() and other.exists() and one.samefile(other))


def _check_mode(arguments: argparse.Namespace) -> None:
    """Raise UsageError if wheels are combined with ``--installed``."""
    if arguments.installed and (arguments.targets or len(arguments.python) > 1):
        raise UsageError("--installed judges one environment", expected="no TARGET, and at most one --python PATH")
    if arguments.installed and (arguments.record or arguments.same_as):
        raise UsageError(
            "--record and --same-as apply to wheels, not to installed environments",
            expected="a TARGET without --installed",
        )
    if arguments.installed and arguments.provenance:
        raise UsageError("--provenance is about wheels", expected="a TARGET without --installed")
    if arguments.installed and arguments.driver:
        what = "--driver applies to wheels, not to installed environments"
        raise UsageError(
            what, expected="a TARGET without --installed", hint="wheelproof doctor checks the driver of this host"
        )
    if arguments.installed and arguments.companions:
        what = "--with applies to wheels, not to installed environments"
        raise UsageError(what, expected="a TARGET without --installed")
    if not arguments.installed and not arguments.targets:
        raise UsageError("nothing to check", expected="a TARGET, or --installed")


def _run_installed(arguments: argparse.Namespace, judgement: Judgement, output: OutputOptions) -> int:
    """Judge an environment and print the report. Raises WheelproofError."""
    from wheelproof.verifying.installed import Place, verify_installed

    def show_place(environment: Environment) -> None:
        for sentence in (f"judging {environment.path}: {environment.found}", *environment.notes):
            note(sentence, quiet=output.quiet)

    place = Place(
        next(iter(arguments.python), ""), arguments.root, tuple(filter(None, arguments.ld_library_path.split(":")))
    )
    with Progress("hashing", unit="files", quiet=output.quiet) as progress:

        def advance(size: int) -> None:
            progress.advance()
            progress.read(size)

        report = verify_installed(place, judgement, os.environ, on_found=show_place, advance=advance)
    return emit(report, output)
