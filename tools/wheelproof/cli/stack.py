"""``wheelproof stack``: will a set of requirements work on that platform, that Python, those GPUs?"""

from __future__ import annotations

import argparse

from wheelproof.cli.machine_options import add_machine_options, add_platform_option, described_by, platforms_of
from wheelproof.cli.options import OutputOptions, add_depth, add_list, add_max_read, add_output_options, emit, max_read
from wheelproof.cli.rights import NAMES_FILES, SETS, allow_tree
from wheelproof.cli.sources import add_source_options, open_sources


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``wheelproof stack``."""
    parser.add_argument(
        "packages", nargs="*", metavar="PACKAGE", help="a requirement (vllm==0.20.0), a .whl file, or a pyproject.toml"
    )
    parser.add_argument(
        "-r",
        "--requirement",
        action="append",
        default=[],
        metavar="FILE",
        help="a file of requirements: requirements.txt, pyproject.toml (repeatable)",
    )
    add_platform_option(parser)
    add_list(parser, "--python", "VERSION", "3.12, 3.13, ... (default: this Python)")
    add_list(parser, "--gpu", "GPU", "the GPUs that it must run on: GB200, H100, MI300X, sm_100, ...")
    add_machine_options(parser)
    add_depth(parser)
    add_max_read(parser)
    parser.add_argument("--pre", action="store_true", help="allow pre-releases")
    allow_tree(parser, SETS, "python", "gpu", "pre", "depth", "max-read")
    allow_tree(parser, NAMES_FILES, "requirement")
    add_source_options(parser)
    add_output_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Resolve and judge the stack, and print the report. Raises WheelproofError."""
    from wheel_checks.facts.expectations import Expectations
    from wheel_checks.facts.gpu.targets import parse_gpus
    from wheel_checks.facts.wheel.facts import Depth
    from wheel_checks.sources.uv.resolver import DEFAULT_TIMEOUT
    from wheel_checks.targets.target import parse_targets, this_machine
    from wheelproof.stack.inputs import parse_inputs
    from wheelproof.stack.report import StackRequest, judge_stack
    from wheelproof.wheels.model import Judgement

    output = OutputOptions.from_arguments(arguments)
    gpus = parse_gpus(",".join(arguments.gpu)) if arguments.gpu else ()
    machines = described_by(arguments, gpus)
    platforms = platforms_of(arguments, gpus, machines)
    request = StackRequest(
        parse_inputs(arguments.packages, arguments.requirement),
        parse_targets(platforms, arguments.python),
        tuple(gpu.name for gpu in gpus),
        arguments.pre,
        output.offline,
        arguments.deadline or DEFAULT_TIMEOUT,
        machines,
    )
    judgement = Judgement(
        Expectations(gpus=gpus, drivers=tuple(arguments.driver)),
        selection=output,
        depth=Depth(arguments.depth),
        max_read=max_read(arguments),
    )
    links, whole = judgement.depth.includes(Depth.LINKS), judgement.depth is Depth.FULL
    assumed = "" if platforms and arguments.python else this_machine().note
    with open_sources(arguments, output, assumed=assumed, links=links, whole=whole) as opened:
        report = judge_stack(request, judgement, opened.client, opened.config, opened.progress, opened.dependencies)
    return emit(report, output)
