"""The first screen of each command, as a terminal of 80x24 shows it: the answer, the cause, a command to copy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import dropwhile
from pathlib import Path

import pytest

from tests.cli.test_matrix import MATRIX
from tests.cli.test_release import EXPECT, torch
from tests.cli.test_stack import FILES
from tests.support.environments import Installed
from tests.support.fleets import with_driver, write_fleet
from tests.support.hosts import grace, healthy, with_torch
from tests.support.range_server import RangeServer
from tests.support.screens import COLUMNS, Screen, run_on_screen
from tests.support.wheels import WheelBuilder, torch_like
from wheelproof.doctor.facts_file import facts_text

NO_KERNEL = "RuntimeError: CUDA error: no kernel image is available for execution on the device\n"
AARCH64 = ("--platform", "aarch64", "--python", "3.12")


@pytest.fixture(scope="module")
def server() -> Iterator[RangeServer]:
    with RangeServer(FILES) as running:
        yield running


def nothing(_folder: Path) -> None:
    """Needs no files."""


def broken_wheel(folder: Path) -> None:
    (folder / "demo-1.0-py3-none-any.whl").write_bytes(b"PK\x03\x04" + bytes(100))


def sound_wheel(folder: Path) -> None:
    WheelBuilder("demo", "1.0").write(folder)


def many_wheels(folder: Path) -> None:
    (folder / "many").mkdir()
    for minor in range(30):
        torch_like("cuda" if minor % 5 else "cpu", f"2.{minor}.0", "aarch64").write(folder / "many")


def released(folder: Path) -> None:
    (folder / "dist").mkdir()
    (folder / "release.toml").write_text(EXPECT)
    for wheel in torch(arm="cpu"):
        wheel.write(folder / "dist")


def pinned(folder: Path) -> None:
    (folder / "requirements.txt").write_text("numpy\ntorch==2.8.0\n")


def loose(folder: Path) -> None:
    (folder / "requirements.txt").write_text("numpy\ntorch\n")


def many_pins(folder: Path) -> None:
    for number in range(40):
        (folder / f"part{number}").mkdir()
        (folder / f"part{number}" / "requirements.txt").write_text(f"torch==2.{number}.0\n")


def missing_include(folder: Path) -> None:
    (folder / "requirements.txt").write_text("-r elsewhere.txt\n")


def log(folder: Path) -> None:
    (folder / "job.log").write_text(f"epoch 1\n{NO_KERNEL}")


def unknown_log(folder: Path) -> None:
    (folder / "job.log").write_text("epoch 1\n")


def cpu_host(folder: Path) -> None:
    (folder / "facts.json").write_text(facts_text(with_torch(grace(), "2.10.0+cpu", cuda="", architectures=())))


def sound_host(folder: Path) -> None:
    (folder / "facts.json").write_text(facts_text(healthy()))


def fleet(folder: Path) -> None:
    (folder / "reports").mkdir()
    hosts = {f"node-{number}": healthy() for number in range(1, 10)}
    write_fleet(folder / "reports", hosts | {"node-7": with_driver(healthy(), "570.86.15")})


def environment(folder: Path) -> None:
    Installed(folder / "env").install(WheelBuilder("demo", "1.0").add("demo/data.txt", "x")).remove("demo/data.txt")


def matrix(folder: Path) -> None:
    (folder / "m.toml").write_text(MATRIX)


@dataclass(frozen=True)
class Case:
    """A command, its exit code, the start of its first line, and other text on the first screen.

    ``copied`` is a command that is there whole, alone on its line.
    """

    command: str
    status: int
    answer: str
    cause: str = ""
    copied: str = ""
    files: Callable[[Path], None] = nothing


CASES = [
    Case(
        "verify torch==2.10.0 --platform aarch64 --python 3.12 --expect cuda --index-url INDEX",
        1,
        "torch 2.10.0 for aarch64 is not a build for cuda",
        "WHL201",
        "pip install torch==2.11.0",
    ),
    Case(
        "verify torch==2.11.0 --platform aarch64 --python 3.12 --gpu GB200 --index-url INDEX",
        0,
        "torch 2.11.0 for aarch64 has code for GB200",
        "runs natively",
    ),
    Case("verify demo-1.0-py3-none-any.whl", 1, "demo 1.0 is not in order", "WHL001", files=broken_wheel),
    Case("verify demo-1.0-py3-none-any.whl", 0, "no error was found in demo 1.0", files=sound_wheel),
    Case("verify many --gpu GB200", 1, "6 of 30 wheels are not able to run on GB200", "FAIL", files=many_wheels),
    Case("verify --installed --python env", 1, "FOLDER/env", "WHL702", files=environment),
    Case(
        "stack vllm==0.19.0 --platform aarch64 --python 3.12 --gpu GB200 --index-url INDEX",
        1,
        "does not run on GB200: torch is a CPU build",
        "STK101",
        "uv pip install vllm==0.19.0 --torch-backend=cu128",
    ),
    Case(
        "stack vllm==0.20.0 --platform aarch64 --python 3.12 --gpu GB200 --index-url INDEX",
        0,
        "runs on GB200",
    ),
    Case(
        "diff torch==2.10.0 torch==2.11.0 --platform aarch64 --python 3.12 --index-url INDEX",
        0,
        "the two sides were compared, and not judged",
        "A: 2.10.0",
    ),
    Case("release dist --expect release.toml", 1, "must not be uploaded", "REL103", files=released),
    Case(
        "pins check --installed torch==2.11.0+cu130",
        1,
        "FAIL  1 requirement in requirements.txt could replace the installed torch",
        "torch==2.8.0",
        "wheelproof pins rewrite requirements.txt",
        pinned,
    ),
    Case("pins check", 0, "PASS  nothing in requirements.txt replaces the installed torch", files=loose),
    Case("pins check", 1, "FAIL  40 requirements in 40 of 40 files could replace", "PIN101", files=many_pins),
    Case("pins check", 3, "UNDECIDED  not proven that nothing replaces", "PIN106", files=missing_include),
    Case("pins rewrite --dry-run", 0, "1 file read, 2 requirements found: 1 would be removed", files=pinned),
    Case("explain job.log", 1, "FAIL  this torch, or an extension, has no code", "line 2", files=log),
    Case("explain job.log", 3, "UNDECIDED  not recognised", "DOC901", "wheelproof doctor", unknown_log),
    Case("doctor --facts facts.json", 1, "torch", "DOC10", files=cpu_host),
    Case("doctor --facts facts.json", 0, "torch", files=sound_host),
    Case("report merge reports", 0, "PASS  9 hosts: node-7 differs in driver", "570.86.15", files=fleet),
    Case("matrix list --matrix m.toml", 0, "3 cells", "known to be cpu", files=matrix),
    Case("rules", 0, "", "stacks: what requirements install", "wheelproof rules WHL201    explains a rule"),
    Case("smoke --compile-only", 2, "wheelproof: error: --compile-only requires --target", "smoke --compile-only --ta"),
    Case("verfy torch", 2, "wheelproof: error: unknown command 'verfy'", "`wheelproof verify`"),
]


@pytest.mark.parametrize(
    "case", CASES, ids=[f"{c.command.partition(' --')[0]}-{c.status}-{n}" for n, c in enumerate(CASES)]
)
def test_the_first_screen_has_answer_cause_and_command(case: Case, server: RangeServer, tmp_path: Path) -> None:
    case.files(tmp_path)
    arguments = [server.url("/simple") if word == "INDEX" else word for word in case.command.split()]
    screen = run_on_screen(tmp_path, *arguments)
    assert screen.status == case.status, screen.text
    assert screen.scrolled == 0, "the first line has gone"
    first = next(dropwhile(lambda row: row.startswith(("note: ", "  ")), screen.rows))
    assert first.startswith(case.answer.replace("FOLDER", str(tmp_path))), screen.text
    assert case.cause in screen.text, screen.text
    assert case.copied in ["", *(line.strip() for line in screen.lines)]
    assert_only_commands_are_long(screen)


def assert_only_commands_are_long(screen: Screen) -> None:
    """A command that is longer than the width stays whole, to be copied; nothing else is."""
    long = [line for line in screen.lines if len(line) > COLUMNS]
    assert [line for line in long if not line.startswith("        ")] == []
