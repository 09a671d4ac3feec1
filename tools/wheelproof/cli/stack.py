"""``wheelproof stack``: will a set of requirements work on that platform, that Python, those GPUs?"""

from __future__ import annotations

import argparse

from wheelproof.cli.machine_options import add_machine_options, add_platform_option, described_by
from wheelproof.cli.options import OutputOptions, add_list, add_output_options, emit
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
    add_list(parser, "--gpu", "GPU", "GB200, H100, sm_100, ...: a GPU is wanted")
    add_machine_options(parser)
    parser.add_argument("--pre", action="store_true", help="allow pre-releases")
    allow_tree(parser, SETS, "python", "gpu", "pre")
    allow_tree(parser, NAMES_FILES, "requirement")
    add_source_options(parser)
    add_output_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Resolve and judge the stack, and print the report. Raises WheelproofError."""
    from wheel_checks.facts.expectations import Expectations
    from wheel_checks.facts.gpu.targets import parse_gpu
    from wheel_checks.sources.uv.resolver import DEFAULT_TIMEOUT
    from wheel_checks.targets.target import parse_targets, this_machine
    from wheelproof.stack.inputs import parse_inputs
    from wheelproof.stack.report import StackRequest, judge_stack
    from wheelproof.wheels.model import Judgement

    output = OutputOptions.from_arguments(arguments)
    gpus = tuple(dict.fromkeys(map(parse_gpu, arguments.gpu)))
    machines = described_by(arguments, gpus)
    platforms = arguments.platform or list(dict.fromkeys(machine.machine for machine in machines))
    request = StackRequest(
        parse_inputs(arguments.packages, arguments.requirement),
        parse_targets(platforms, arguments.python),
        tuple(gpu.name for gpu in gpus),
        arguments.pre,
        output.offline,
        arguments.deadline or DEFAULT_TIMEOUT,
        machines,
    )
    judgement = Judgement(Expectations(gpus=gpus), output)
    assumed = "" if platforms and arguments.python else this_machine().note
    with open_sources(arguments, output, assumed=assumed) as opened:
        report = judge_stack(request, judgement, opened.client, opened.config, opened.progress)
    return emit(report, output)
