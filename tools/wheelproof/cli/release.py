"""``wheelproof release TARGET... --expect FILE``: the gate before publishing: ship, or stop, and why."""

from __future__ import annotations

import argparse
from datetime import UTC, datetime
from pathlib import Path

from wheelproof.cli.options.indexes import add_source_options, attesting_of, open_sources
from wheelproof.cli.options.output import (
    OutputOptions,
    add_list,
    add_max_read,
    add_output_options,
    max_read,
    open_output,
    shown,
)
from wheelproof.cli.options.rights import NAMES_FILES, SETS, allow_tree


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``wheelproof release``."""
    parser.add_argument(
        "targets",
        nargs="+",
        metavar="TARGET",
        help="a folder, a wheel or source archive, a URL of one, or a requirement on an index (torch==2.11.0); if "
        "several TARGETs have a file, its hashes and sizes are compared",
    )
    parser.add_argument(
        "--expect", metavar="FILE", required=True, help="the expectation of the release, in TOML: see docs/release.md"
    )
    add_list(
        parser,
        "--platform",
        "PLATFORM",
        "check only the platforms of FILE that match: aarch64, manylinux_2_28_x86_64, win_amd64, macosx_11_0_arm64, "
        "... (repeatable; default: all)",
    )
    parser.add_argument("--pre", action="store_true", help="allow pre-releases")
    parser.add_argument(
        "--depth",
        choices=["quick", "links", "gpu", "full"],
        help="as in `wheelproof verify`; at least the depth of the expectation, which is links by default",
    )
    allow_tree(parser, NAMES_FILES, "expect")
    parser.add_argument(
        "--require-attestations",
        action="store_true",
        help="require verified attestations for every file (PEP 740), which reads every byte; needs the extra "
        "provenance",
    )
    add_max_read(parser)
    allow_tree(parser, SETS, "depth", "max-read", "pre")
    add_source_options(parser)
    add_output_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Judge the release and print the report. Raises WheelproofError."""
    from packaging.requirements import Requirement

    from wheel_checks.facts.release.expectation import read_release_expectation
    from wheel_checks.facts.wheel.depth import Depth
    from wheel_checks.report import render
    from wheel_checks.report.links import is_screen
    from wheel_checks.report.wording import write
    from wheel_checks.targets.target import parse_targets
    from wheelproof.release.installable import Installer
    from wheelproof.release.report import ReleaseRequest, judge_release
    from wheelproof.release.summary import markdown_summary, text_summary
    from wheelproof.wheels.model import Judgement

    output = OutputOptions.from_arguments(arguments)
    expectation = read_release_expectation(Path(arguments.expect))
    if arguments.platform:
        targets = parse_targets(arguments.platform, systems=True)
        expectation = expectation.only({tag.platform for target in targets for tag in target.supported_tags()})
    today = datetime.now(UTC).date()
    request = ReleaseRequest(tuple(arguments.targets), expectation, today, arguments.pre)
    depth = Depth(arguments.depth) if arguments.depth else expectation.depth
    depth = depth if depth.includes(expectation.depth) else expectation.depth
    if arguments.require_attestations:
        depth = Depth.FULL  # an attestation is of all bytes
    judgement = Judgement(selection=output, depth=depth, max_read=max_read(arguments))
    companions = [Requirement(f"torch{expectation.torch_abi}")] if expectation.torch_abi else []
    links, whole = depth.includes(Depth.LINKS), depth is Depth.FULL
    with open_sources(arguments, output, links=links, whole=whole, companions=companions) as opened:
        report = judge_release(
            request,
            judgement,
            opened.client,
            lambda project: opened.index.files(project).files,
            opened.progress,
            opened.dependencies,
            attesting_of(opened.client, output, is_required=True) if arguments.require_attestations else None,
            Installer(opened.config, opened.index, opened.client, output.offline, arguments.pre),
        )
    for name, place in output.reports:
        with open_output(place) as stream:
            if name == "markdown":
                write(stream, markdown_summary(report))
            all_of_it = not is_screen(stream) or output.verbose > 0  # a screen has room for reasons with fixes alone
            summary = text_summary(report, quiet=output.quiet, with_reasons=all_of_it)
            render(report, stream, name, **shown(output), before=summary.splitlines())
    return report.exit_code
