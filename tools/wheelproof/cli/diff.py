"""``wheelproof diff A [B]``: differences between two wheels, or two sets of wheels."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from wheel_checks.errors import NotFoundError
from wheelproof.cli.options.indexes import add_source_options, open_sources
from wheelproof.cli.options.output import OutputOptions, add_list, add_output_options, open_output, shown
from wheelproof.cli.options.rights import SETS, allow_tree

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wheel_checks.sources.simple_index import SimpleIndex
    from wheelproof.diff.report import Comparison
    from wheelproof.diff.sides import Planner, Side
    from wheelproof.wheels.model import PlannedWheel


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``wheelproof diff``."""
    parser.add_argument(
        "wheels",
        nargs="+",
        metavar="WHEEL",
        help="A and B: a .whl file, a folder, a URL, or a requirement (torch==2.11.0); a single value is used for both",
    )
    add_list(
        parser,
        "--platform",
        "PLATFORM",
        "the target platform, x86_64, aarch64, manylinux_2_28_aarch64, ...: one for both sides, or A,B (default: this "
        "host)",
    )
    add_list(
        parser,
        "--python",
        "VERSION",
        "the target Python version, 3.12, 3.13t, ...: one for both sides, or A,B (default: this Python)",
    )
    add_list(parser, "--variant", "LABEL", "compare wheel variants (PEP 825): one label for both sides, or A,B")
    parser.add_argument(
        "--all-files", action="store_true", help="compare every wheel of the releases with its counterpart"
    )
    parser.add_argument("--pre", action="store_true", help="allow pre-releases")
    parser.add_argument(
        "--depth",
        choices=["quick", "links", "gpu", "full"],
        default="links",
        help="what to read; quick: directory and small members; links: also libraries of ELF files; gpu: also GPU "
        "code; full: every byte (default: links)",
    )
    allow_tree(parser, SETS, "platform", "python", "variant", "all-files", "pre", "depth")
    add_source_options(parser)
    add_output_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Compare the two sides and print the report with its tables. Raises WheelproofError."""
    from wheel_checks.facts.wheel.depth import Depth
    from wheel_checks.targets.target import this_machine
    from wheelproof.diff.report import diff
    from wheelproof.diff.sides import split_sides
    from wheelproof.wheels.model import Judgement

    output = OutputOptions.from_arguments(arguments)
    sides = split_sides(arguments.wheels, arguments.platform, arguments.python, arguments.variant)
    judgement = Judgement(selection=output, depth=Depth(arguments.depth))
    assumed = "" if arguments.platform and arguments.python else this_machine().note
    with open_sources(arguments, output, assumed=assumed, threads=judgement.depth.includes(Depth.LINKS)) as opened:
        planner = _planner(opened.index, all_files=arguments.all_files, pre=arguments.pre)
        comparison = diff(sides, planner, judgement, opened.client, opened.progress)
    return _emit(comparison, output)


def _planner(index: SimpleIndex, *, all_files: bool, pre: bool) -> Planner:
    """The planner of targets, which mean the same as for ``verify``."""
    from wheelproof.wheels.planning import Wanted, plan

    def wheels(side: Side) -> Sequence[PlannedWheel]:
        # Only variants were asked for: search among all wheels, not just the installers' choice.
        wanted = Wanted(side.platforms, side.pythons, all_files or bool(side.variant), pre)
        planned = plan(side.text, wanted, lambda project: index.files(project).files)
        refused = [choice for choice in planned.choices if choice.chosen is None]
        if refused and not planned.wheels:
            raise NotFoundError(f"{side.text} for {refused[0].target.label}: {refused[0].explanation}")
        return planned.wheels

    return wheels


def _emit(comparison: Comparison, options: OutputOptions) -> int:
    """Render the report; for people with the tables. Raises WheelproofError when writing fails."""
    from wheel_checks.report import render
    from wheel_checks.report.wording import MANY
    from wheelproof.diff.rows import build_table

    report = comparison.report
    # Of a whole release the findings come first; a table for each pair would bury them.
    compared = comparison.differences if options.verbose or len(comparison.differences) <= MANY else {}
    tables = [(title, build_table(pair, everything=options.verbose > 0)) for title, pair in compared.items()]
    for name, place in options.reports:
        with open_output(place) as stream:
            after: list[str] = []
            if name == "text" and not options.quiet:
                from wheelproof.diff import text  # imports rich

                after = text.table_lines(tables, stream, color=options.color)
            render(report, stream, name, **shown(options), after=after)
            if name == "markdown":
                from wheelproof.diff import markdown

                markdown.render_tables(tables, stream)
    return report.exit_code
