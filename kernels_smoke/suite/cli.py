"""``python -m kernels_smoke``: options, progress, output. This interpreter needs torch and triton and nothing else."""

import argparse
import contextlib
import json
import math
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from kernels_smoke.suite import registry
from kernels_smoke.suite.compiling.targets import resolve
from kernels_smoke.suite.jobs import Options
from kernels_smoke.suite.model import LEVELS
from kernels_smoke.suite.own.sources import is_path
from kernels_smoke.suite.report import text
from kernels_smoke.suite.run import Stopped, new_seed, run

EXIT_CODES = {"pass": 0, "fail": 1, "undecided": 3}
USAGE, UNDECIDED = 2, 3
MOST_SECONDS = 1e6  # of patience: more is as good as none, and too much for a clock


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
    made.add_argument(
        "--only", type=_names, action="extend", default=[], metavar="NAME,...", help="these kernels or families"
    )
    made.add_argument(
        "--kernels",
        action="append",
        default=[],
        metavar="FILE.py|MODULE",
        help="run the kernels that this file or module lists, too (repeatable; see suite/model.py)",
    )
    made.add_argument(
        "--plugins", action="store_true", help="and those of installed packages: entry points of wheelproof.kernels"
    )
    made.add_argument("--compile-only", action="store_true", help="compile for --target; no GPU is needed")
    made.add_argument(
        "--target", type=_names, default=(), metavar="sm_90,...", help="of --compile-only: also gfx942, GB200, ..."
    )
    made.add_argument("--mutants", action="store_true", help="show that the cases catch deliberately broken kernels")
    made.add_argument(
        "--gpus", type=_names, default=(), metavar="0,2,...", help="these GPUs, by number or UUID (default: all)"
    )
    made.add_argument(
        "--soak", type=float, default=0.0, metavar="SECONDS", help="then multiply so long on every GPU, and compare"
    )
    made.add_argument("--seed", type=int, help="repeat the inputs of another run (default: new ones)")
    made.add_argument("--patience", type=float, default=30.0, help="seconds of silence after which a kernel hangs")
    made.add_argument("--slowness", type=float, default=1.0, help="multiplies all patience: 10 or more under emulation")
    made.add_argument("--list", action="store_true", help="the kernels that there are")
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
    document: dict[str, Any] | None = None
    try:
        with stoppable() as stopped, contextlib.suppress(KeyboardInterrupt):  # that comes where there is no report yet
            document = run(options, Progress(each=options.mutants), keeper(arguments))
    except LookupError as error:  # names of kernels that no file has, once all files are read
        options_parser.error(str(error.args[0]))
    if stopped:
        sys.stderr.write("interrupted\n")
    if document is None:
        return 128 + stopped[0]
    try:
        write(arguments.output, written(document, arguments.format))
    except OSError as error:
        sys.stderr.write(f"the report could not be written: {error.strerror or error}\n")
        return UNDECIDED
    return 128 + stopped[0] if stopped else EXIT_CODES[document["verdict"]]


def written(document: dict[str, Any], format: str) -> str:  # noqa: A002  # the option's own name
    """The report as text or JSON."""
    return json.dumps(_standard(document), indent=1, allow_nan=False) + "\n" if format == "json" else text(document)


def keeper(arguments: argparse.Namespace) -> Callable[[dict[str, Any]], None]:
    """What keeps the report so far where the whole one will be, so that it is there when this process is killed.

    Only a regular file holds it: a pipe gets one report. What cannot be written is said at the end.
    """
    path = arguments.output
    if path is None or (Path(path).exists() and not Path(path).is_file()):
        return lambda _document: None

    def keep(document: dict[str, Any]) -> None:
        with contextlib.suppress(OSError):
            write(path, written(document, arguments.format))

    return keep


@contextlib.contextmanager
def stoppable() -> Iterator[list[int]]:
    """Have the first SIGINT or SIGTERM raise Stopped, and no other one disturb the clean-up; lists what came."""
    came: list[int] = []

    def stop(number: int, _frame: object) -> None:
        came.append(number)
        if len(came) == 1:
            raise Stopped(signal.Signals(number).name)

    numbers = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(number, stop) for number in numbers]
    try:
        yield came
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)


def _options(arguments: argparse.Namespace) -> Options:
    """What was asked for. Raises ValueError for what makes no sense."""
    _check(arguments)
    own = tuple(dict.fromkeys(str(Path(each).resolve()) if is_path(each) else each for each in arguments.kernels))
    try:
        registry.select(arguments.only, strict=not (own or arguments.plugins))
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
        gpus=arguments.gpus,
        soak=arguments.soak,
        own=own,
        plugins=arguments.plugins,
    )


def _check(arguments: argparse.Namespace) -> None:
    """Raise ValueError for options that do not go together, and for files that cannot be written."""
    if arguments.compile_only and not arguments.target:
        raise ValueError("--compile-only needs a --target, such as sm_90")
    if arguments.target and not arguments.compile_only:
        raise ValueError("--target is for --compile-only")
    if arguments.compile_only and arguments.mutants:
        raise ValueError("--mutants are run, and --compile-only runs nothing: choose one of the two")
    for option, number in (("--patience", arguments.patience), ("--slowness", arguments.slowness)):
        if not 0 < number <= MOST_SECONDS:
            raise ValueError(f"{option} must be more than 0 and at most {MOST_SECONDS:g}, not {number:g}")
    _check_gpus(arguments)
    path = arguments.output
    if path is not None and Path(path).is_dir():
        raise ValueError(f"--output: {path} is a folder")
    if path is not None and not Path(path).resolve().parent.is_dir():
        raise ValueError(f"--output: there is no folder {Path(path).resolve().parent}")


def _check_gpus(arguments: argparse.Namespace) -> None:
    """Raise ValueError for options about GPUs in a run without any."""
    on_gpus = arguments.device == "cuda" and not arguments.compile_only
    if (arguments.gpus or arguments.soak) and not on_gpus:
        raise ValueError("--gpus and --soak are of --device cuda")
    if arguments.soak and (arguments.mutants or not 1 <= arguments.soak <= MOST_SECONDS):
        raise ValueError(f"--soak must be 1 to {MOST_SECONDS:g} seconds, and not with --mutants")


def write(path: str | None, content: str) -> None:
    """Write a whole file or none; to standard output without a ``path``. Raises OSError.

    What is not a regular file (a pipe, ``/dev/stderr``) is written directly, and a link keeps pointing to what it does.
    """
    if path is None:
        try:
            sys.stdout.write(content)
            sys.stdout.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # else Python tries again at its end
            raise
        return
    if Path(path).exists() and not Path(path).is_file():
        Path(path).write_text(content, encoding="utf-8")
        return
    target = Path(path).resolve()
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        temporary.write_text(content, encoding="utf-8")
        if target.exists():
            temporary.chmod(target.stat().st_mode)
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)


def _standard(value: Any) -> Any:
    """``value`` as JSON has it, which knows no infinity and no NaN: null instead."""
    if isinstance(value, dict):
        return {name: _standard(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_standard(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


class Progress:
    """Says on a terminal what was done last, and in a pipe nothing; with ``each``, every mutant on a line, anywhere."""

    def __init__(self, *, each: bool = False) -> None:
        self.count = 0
        self.each = each
        self.shown = sys.stderr.isatty()

    def __call__(self, record: dict[str, Any]) -> None:
        """Show one record."""
        self.count += 1
        if self.each and record["kind"] == "mutant":
            by = record["caught_by"] or record["message"]
            sys.stderr.write(f"{record['outcome']:8} {record['kernel']} / {record['mutant']}: {by}\n")
        elif self.shown:
            name = record.get("name") or record.get("kernel") or record["kind"]
            what = record.get("case") or record.get("mutant") or record.get("target") or ""
            sys.stderr.write(f"\r\033[K{self.count} {name} {what} {record.get('outcome', '')}\r")
            sys.stderr.flush()


def _names(value: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in value.split(",") if name.strip())


if __name__ == "__main__":
    sys.exit(main())
