"""``wheelproof smoke``: does the GPU work, and do real kernels compile, compute right and run fast?"""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from wheel_checks.errors import UsageError
from wheel_checks.sources.regular_file import expand_home
from wheelproof.cli.options.output import OutputOptions, add_list, add_output_options, emit, note

if TYPE_CHECKING:  # not for --help
    from wheelproof.smoke.request import SmokeRequest


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``wheelproof smoke``."""
    parser.add_argument(
        "--device",
        choices=["cuda", "interpret"],
        default="cuda",
        help="run on the GPU, or in Triton's interpreter without a GPU (default: cuda)",
    )
    parser.add_argument(
        "--level",
        choices=["quick", "full", "deep"],
        default="quick",
        help="quick: results of a few kernels; full: all kernels and their speed; deep: also sweeps (default: quick)",
    )
    add_list(parser, "--only", "NAME", "run only these kernels or families (repeatable)")
    add_list(
        parser,
        "--gpus",
        "GPU",
        "run only on these GPUs: a CUDA device number, or the UUID of a GPU or MIG instance (repeatable)",
    )
    add_list(
        parser,
        "--kernels",
        "FILE.py|MODULE",
        "also run the kernels listed in this Python file, or in this module of the interpreter (repeatable)",
    )
    parser.add_argument(
        "--plugins",
        action="store_true",
        help="also run kernels from packages installed in the interpreter (entry points in the group "
        "wheelproof.kernels)",
    )
    parser.add_argument(
        "--mutants",
        action="store_true",
        help="run faulty variants of the kernels instead, to see whether the tests catch them",
    )
    parser.add_argument(
        "--compile-only",
        action="store_true",
        help="compile the kernels for --target without running them; needs no GPU",
    )
    add_list(
        parser,
        "--target",
        "GPU",
        "the GPU to compile for, with --compile-only: GB200, sm_100, MI300X, gfx942, ... (repeatable)",
    )
    parser.add_argument(
        "--soak",
        type=float,
        default=0.0,
        metavar="SECONDS",
        help="then multiply matrices on every GPU for SECONDS, checking the results and the rate",
    )
    parser.add_argument("--seed", type=int, metavar="N", help="reproduce the inputs of the run that printed this seed")
    parser.add_argument(
        "--python",
        metavar="PATH",
        default="",
        help="the interpreter or environment with torch and triton (default: this one, else the active environment)",
    )
    parser.add_argument(
        "--deadline", type=float, metavar="SECONDS", help="kill the run after SECONDS (default: depends on the level)"
    )
    add_output_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the kernels and print the report. Raises WheelproofError."""
    from wheelproof.smoke.interpreter import find_interpreter
    from wheelproof.smoke.report import smoke

    output = OutputOptions.from_arguments(arguments)
    _check(arguments)
    interpreter = find_interpreter(arguments.python, os.environ)
    request = _request(arguments, interpreter.path)
    note(f"running the kernels with {interpreter.path}: {interpreter.why}", quiet=output.quiet)
    report, stopped_by = smoke(
        request, deadline=arguments.deadline or request.deadline, selection=output, quiet=output.quiet
    )
    status = emit(report, output)
    if stopped_by:
        note("interrupted; the report is incomplete", quiet=output.quiet)
    return 128 + stopped_by if stopped_by else status


def _check(arguments: argparse.Namespace) -> None:
    """Raise UsageError for options that do not go together."""
    if arguments.target and not arguments.compile_only:
        raise UsageError("--target requires --compile-only", hint="without it, kernels run on the GPU of this host")
    if arguments.compile_only and not arguments.target:
        raise UsageError(
            "--compile-only requires --target", hint="wheelproof smoke --compile-only --target GB200,sm_90"
        )
    if arguments.compile_only and arguments.device == "interpret":
        raise UsageError("--compile-only cannot be combined with --device interpret")
    if (arguments.gpus or arguments.soak) and (arguments.compile_only or arguments.device != "cuda"):
        raise UsageError("--gpus and --soak require --device cuda", hint="this run uses no GPU")
    if arguments.soak and not 1 <= arguments.soak <= 1e6:
        raise UsageError(f"--soak {arguments.soak:g} is not a valid duration", expected="1 to 1,000,000 seconds")
    if arguments.compile_only and arguments.mutants:
        raise UsageError("--compile-only cannot be combined with --mutants")
    if arguments.plugins and arguments.no_plugins:
        raise UsageError("--plugins cannot be combined with --no-plugins", expected="only one of them")
    _check_kernels(arguments.kernels, arguments.origins.get("kernels", ""))
    if arguments.deadline is not None and not arguments.deadline > 0:
        raise UsageError(f"--deadline {arguments.deadline:g} is not a valid timeout", expected="a number above 0")


def _check_kernels(names: Sequence[str], origin: str) -> None:
    """Raise UsageError for neither a file nor a module, and for a relative file in a configuration.

    A relative file depends on the current folder, and one of the tree would be executed.
    """
    for name in names:
        if not _is_file(name) and not all(part.isidentifier() for part in name.replace(":", ".", 1).split(".")):
            raise UsageError(
                f"--kernels {name} names no kernels", expected="FILE.py, package.module or package.module:LIST"
            )
        if origin.endswith(".toml") and _is_file(name) and not expand_home(name).is_absolute():
            expected = "an absolute path, or one that starts with ~/, or a module"
            raise UsageError(
                f"{origin}: {name} is a relative path, which depends on the current folder", expected=expected
            )


def _request(arguments: argparse.Namespace, python: str) -> SmokeRequest:
    from wheel_checks.facts.gpu.compile_targets import parse_target
    from wheelproof.smoke.request import SmokeRequest

    return SmokeRequest(
        python,
        arguments.device,
        arguments.level,
        tuple(arguments.only),
        tuple(dict.fromkeys(parse_target(name) for name in arguments.target)),
        arguments.seed,
        gpus=tuple(arguments.gpus),
        soak=arguments.soak,
        kernels=tuple(dict.fromkeys(map(_absolute, arguments.kernels))),
        plugins=arguments.plugins,
        mutants=arguments.mutants,
    )


def _absolute(kernels: str) -> str:
    """A module as it is, a file by its whole path: the suite runs in another folder."""
    return str(expand_home(kernels).absolute()) if _is_file(kernels) else kernels


def _is_file(kernels: str) -> bool:
    return kernels.endswith(".py") or "/" in kernels
