"""``python -m kernels_smoke``: options, progress, output. This interpreter needs torch and triton and nothing else."""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kernels_smoke.suite import registry
from kernels_smoke.suite.model import LEVELS
from kernels_smoke.suite.report import text
from kernels_smoke.suite.run import Options, new_seed, run
from kernels_smoke.suite.targets import resolve

EXIT_CODES = {"pass": 0, "fail": 1, "undecided": 3}
USAGE, INTERRUPTED = 2, 130


def parser() -> argparse.ArgumentParser:
    """The options."""
    made = argparse.ArgumentParser(
        prog="python -m kernels_smoke",
        description="Run our Triton kernels: are they right, are they fast, do they compile?",
        epilog="exit codes: 0 all is well, 1 findings, 2 wrong usage, 3 could not check, 130 interrupted",
    )
    made.add_argument(
        "--device", choices=("cuda", "interpret"), default="cuda", help="the GPU, or Triton's interpreter"
    )
    made.add_argument("--level", choices=LEVELS, default="quick", help="full adds all kernels and speed, deep sweeps")
    made.add_argument("--only", type=_names, default=(), metavar="NAME,...", help="these kernels or families")
    made.add_argument("--compile-only", action="store_true", help="compile for --target; no GPU is needed")
    made.add_argument(
        "--target", type=_names, default=(), metavar="sm_90,...", help="of --compile-only: also gfx942, GB200, ..."
    )
    made.add_argument("--mutants", action="store_true", help="show that the cases catch deliberately broken kernels")
    made.add_argument("--seed", type=int, help="repeat the inputs of another run (default: new ones)")
    made.add_argument("--patience", type=float, default=30.0, help="seconds of silence after which a kernel hangs")
    made.add_argument("--slowness", type=float, default=1.0, help="multiplies all patience: 10 or more under emulation")
    made.add_argument("--list", action="store_true", help="the kernels that there are")
    made.add_argument("--plot", metavar="FILE.svg", help="write a roofline picture")
    made.add_argument("--with-plot", action="store_true", help="put the picture into the JSON document, too")
    made.add_argument("--format", choices=("text", "json"), default="text")
    made.add_argument("--output", metavar="FILE", help="where the report goes (default: standard output)")
    return made


def main(argv: Sequence[str] | None = None) -> int:
    """Run the suite and return the exit code."""
    options_parser = parser()
    arguments = options_parser.parse_args(argv)
    if arguments.list:
        print("\n".join(f"{entry.name:38} {entry.family:14} {entry.summary}" for entry in registry.ENTRIES))  # noqa: T201  # the answer
        return 0
    try:
        options = _options(arguments)
    except ValueError as error:
        options_parser.error(str(error))
    try:
        document = run(options, Progress())
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        return INTERRUPTED
    if arguments.plot or arguments.with_plot:
        from kernels_smoke.suite.roofline import picture  # noqa: PLC0415  # only who asks for a picture pays for it

        document["plot"] = picture(document)
    if arguments.plot:
        write(arguments.plot, document["plot"])
    if not arguments.with_plot:
        document.pop("plot", None)
    report = json.dumps(document, indent=1) + "\n" if arguments.format == "json" else text(document)
    if arguments.output:
        write(arguments.output, report)
    else:
        sys.stdout.write(report)
    return EXIT_CODES[document["verdict"]]


def _options(arguments: argparse.Namespace) -> Options:
    """What was asked for. Raises ValueError for what makes no sense."""
    if arguments.compile_only and not arguments.target:
        raise ValueError("--compile-only needs a --target, such as sm_90")
    if arguments.target and not arguments.compile_only:
        raise ValueError("--target is for --compile-only")
    try:
        registry.select(arguments.only)
    except LookupError as error:
        raise ValueError(str(error.args[0])) from error
    return Options(
        device=arguments.device,
        level=arguments.level,
        only=arguments.only,
        targets=tuple(dict.fromkeys(resolve(name) for name in arguments.target)),
        compile_only=arguments.compile_only,
        mutants=arguments.mutants,
        seed=new_seed() if arguments.seed is None else arguments.seed,
        patience=arguments.patience,
        slowness=arguments.slowness,
    )


def write(path: str, content: str) -> None:
    """Write a whole file or none."""
    target = Path(path)
    with tempfile.NamedTemporaryFile("w", dir=target.parent, delete=False, encoding="utf-8") as file:
        file.write(content)
    os.chmod(file.name, 0o644)  # noqa: PTH101  # what other files get, instead of a temporary file's 0600
    os.replace(file.name, target)  # noqa: PTH105  # atomic


class Progress:
    """Says on a terminal what was done last; says nothing in a pipe."""

    def __init__(self) -> None:
        self.count = 0
        self.shown = sys.stderr.isatty()

    def __call__(self, record: dict[str, Any]) -> None:
        """Show one record."""
        self.count += 1
        if self.shown:
            name = record.get("name") or record.get("kernel") or record["kind"]
            what = record.get("case") or record.get("mutant") or record.get("target") or ""
            sys.stderr.write(f"\r\033[K{self.count} {name} {what} {record.get('outcome', '')}\r")
            sys.stderr.flush()


def _names(value: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in value.split(",") if name.strip())


if __name__ == "__main__":
    sys.exit(main())
