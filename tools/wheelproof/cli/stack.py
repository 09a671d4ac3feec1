"""``wheelproof stack``: will a set of requirements work on that platform, that Python, those GPUs?"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from wheelproof.cli.options.indexes import add_source_options, open_sources
from wheelproof.cli.options.machines import add_machine_options, add_platform_option
from wheelproof.cli.options.output import (
    OutputOptions,
    add_depth,
    add_list,
    add_max_read,
    add_output_options,
    emit,
    max_read,
)
from wheelproof.cli.options.rights import NAMES_FILES, SETS, allow_tree

if TYPE_CHECKING:
    from wheel_checks.model import Report


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``wheelproof stack``."""
    parser.add_argument(
        "packages",
        nargs="*",
        metavar="PACKAGE",
        help="a requirement (vllm==0.20.0), a .whl file, a pyproject.toml, or a lock file (uv.lock, pylock.toml, ...)",
    )
    parser.add_argument(
        "-r",
        "--requirement",
        action="append",
        default=[],
        metavar="FILE",
        help="a requirements file: requirements.txt, pyproject.toml (repeatable)",
    )
    add_list(parser, "--extra", "EXTRA", "an extra of the lock file or pyproject.toml (repeatable)")
    add_list(
        parser,
        "--group",
        "GROUP",
        "a dependency group of the lock file or of pyproject.toml, or an environment of pixi.lock",
    )
    parser.add_argument(
        "--all-extras", action="store_true", help="include every extra of the lock file or pyproject.toml"
    )
    parser.add_argument(
        "--against",
        metavar="REF|FILE",
        help="report the changes from another file, or from this file at a commit, branch or tag",
    )
    parser.add_argument(
        "--fail-on-change", action="store_true", help="exit with code 1 if something gets worse (with --against)"
    )
    add_platform_option(parser)
    add_list(parser, "--python", "VERSION", "the target Python version: 3.12, 3.13, ... (default: this Python)")
    add_list(parser, "--gpu", "GPU", "the GPUs it must run on: GB200, H100, MI300X, sm_100, ...")
    parser.add_argument(
        "--expect", metavar="WHAT", help="the expected build of torch: cuda, cuda==13.0, cuda>=13, rocm, cpu"
    )
    add_machine_options(parser)
    add_depth(parser, "links")
    add_max_read(parser)
    parser.add_argument("--pre", action="store_true", help="allow pre-releases")
    allow_tree(parser, SETS, "python", "gpu", "expect", "pre", "depth", "max-read", "extra", "group", "all-extras")
    allow_tree(parser, NAMES_FILES, "requirement")
    add_source_options(parser)
    add_output_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Resolve and judge the stack, and print the report. Raises WheelproofError."""
    from wheel_checks.errors import UsageError
    from wheel_checks.facts.gpu.targets import parse_gpus
    from wheel_checks.facts.wheel.depth import Depth
    from wheel_checks.facts.wheel.expectations import Expectations, parse_expectation
    from wheel_checks.targets.extras_and_groups import ExtrasAndGroups
    from wheel_checks.targets.target import this_machine
    from wheelproof.stacks.against import compare_reports
    from wheelproof.stacks.other_side import opened_other
    from wheelproof.stacks.report import judge_stack
    from wheelproof.stacks.request import StackRequest, read_request
    from wheelproof.wheels.described import machines_of, platforms_of
    from wheelproof.wheels.model import Judgement

    output = OutputOptions.from_arguments(arguments)
    gpus = parse_gpus(",".join(arguments.gpu)) if arguments.gpu else ()
    machines = machines_of(gpus, arguments.driver, arguments.cpu, arguments.platform)
    platforms = platforms_of(arguments.platform, gpus, machines)
    chosen = ExtrasAndGroups(tuple(arguments.extra), tuple(arguments.group), arguments.all_extras)
    request = read_request(
        arguments.packages,
        arguments.requirement,
        chosen,
        platforms,
        arguments.python,
        gpus=tuple(gpu.name for gpu in gpus),
        machines=machines,
        offline=output.offline,
        timeout=arguments.deadline,
        pre=arguments.pre,
    )
    if arguments.against is None and arguments.fail_on_change:
        raise UsageError("--fail-on-change requires --against", expected="--against")
    judgement = Judgement(
        Expectations(
            gpus=gpus,
            drivers=tuple(arguments.driver),
            of_torch=parse_expectation(arguments.expect) if arguments.expect else None,
        ),
        selection=output,
        depth=Depth(arguments.depth),
        max_read=max_read(arguments),
    )
    links, whole = judgement.depth.includes(Depth.LINKS), judgement.depth is Depth.FULL
    assumed = "" if request.lock or (platforms and arguments.python) else this_machine().note
    with open_sources(arguments, output, assumed=assumed, links=links, whole=whole) as opened:

        def judge(request: StackRequest) -> Report:
            return judge_stack(request, judgement, opened.client, opened.config, opened.progress, opened.dependencies)

        if arguments.against is None:
            return emit(judge(request), output)
        with opened_other(request, arguments.against, chosen) as other:
            before = judge(other) if other else None
        report = compare_reports(
            before, judge(request), request.targets, arguments.against, judgement, fails=arguments.fail_on_change
        )
    return emit(report, output)
