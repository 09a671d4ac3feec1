"""The commands of the documentation: they are run, and give the shown output."""

from __future__ import annotations

import importlib
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import LANES, kernels_python
from tests.docs.blocks import COMMANDS as LANGUAGES
from tests.docs.blocks import Block, Command, is_shown, read_blocks
from tests.support.patience import PATIENCE
from wheel_checks.errors import UsageError
from wheelproof.cli.main import COMMANDS
from wheelproof.cli.options.output import make_parser

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
# Pages whose commands are run, each in its own folder.
RUN = [DOCS / "index.md", *sorted(DOCS.glob("tutorial/*.md")), *sorted(DOCS.glob("how-to/*.md"))]
KERNELS_PYTHON = kernels_python()  # read now, since a test sees no such variable
MARK = "=== end of a command: "
NO_NETWORK = dict.fromkeys(("http_proxy", "https_proxy", "all_proxy"), "http://127.0.0.1:9")


def stories() -> Iterator[object]:
    """Every page with each lane that it has commands for."""
    for page in RUN:
        for lane in sorted({block.lane for block in read_blocks(page) if is_run(block)}):
            marks = [getattr(pytest.mark, lane)] if lane else []
            yield pytest.param(page, lane, marks=marks, id=f"{page.relative_to(DOCS)}{lane and f' {lane}'}")


def is_run(block: Block) -> bool:
    """Whether the block has commands that are to be run."""
    return block.language == "console" and not block.reason


@pytest.mark.parametrize(("page", "lane"), list(stories()))
def test_the_commands_of_a_page_give_what_it_shows(page: Path, lane: str, tmp_path: Path) -> None:
    blocks = read_blocks(page)
    folder = tmp_path / "reader"
    prepare(folder, blocks, lane)
    commands = [c for block in blocks if is_run(block) and block.lane == lane for c in block.commands]
    outputs = run(commands, folder, offline=lane != "online")
    next_ones = [command.text for command in commands[1:]] + [""]
    for command, (status, output), then in zip(commands, outputs, next_ones, strict=True):
        seen = f"{page.name}: $ {command.text}\n{output}\n(exit code {status})"
        findings = "wheelproof" in command.text and status == 1
        assert status == 0 or findings or then == "echo $?", seen
        assert not command.expected or is_shown(command.expected, output), (
            f"{seen}\nthe page shows:\n{command.expected}"
        )


def prepare(folder: Path, blocks: list[Block], lane: str) -> None:
    """Make the reader's folder: the files that the documentation offers, and the shown ones."""
    shutil.copytree(DOCS / "files", folder)
    for block in blocks:
        if block.title:
            (folder / block.title).write_text(block.text)
    if KERNELS_PYTHON and lane == "kernels":
        (folder / "torch-env").symlink_to(Path(KERNELS_PYTHON).parents[1])


def run(commands: list[Command], folder: Path, *, offline: bool) -> list[tuple[int, str]]:
    """The exit code and the output of each command, all typed into one shell."""
    typed = "".join(f"{command.text}\nstatus=$?; echo; echo '{MARK}'$status; (exit $status)\n" for command in commands)
    environment = {**os.environ, **(NO_NETWORK if offline else {})}
    environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environment.get('PATH', os.defpath)}"
    bash = ["bash", "--norc", "--noprofile", "-c", f"exec 2>&1\n{typed}"]
    done = subprocess.run(
        bash,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        check=False,
        timeout=PATIENCE,
    )
    ends: list[tuple[int, str]] = []
    output: list[str] = []
    for line in done.stdout.decode().splitlines():
        if line.startswith(MARK):
            ends.append((int(line.removeprefix(MARK)), "\n".join(output)))
            output = []
        else:
            output.append(line)
    return ends


@pytest.mark.parametrize("page", RUN, ids=lambda page: str(page.relative_to(DOCS)))
def test_what_is_not_run_says_why(page: Path) -> None:
    for block in read_blocks(page):
        where = f"{page.name}, line {block.line}"
        assert not block.lane or block.lane in LANES, f"{where}: no test has the marker {block.lane}"
        if block.language in LANGUAGES and not block.reason:
            assert block.language == "console", f"{where}: a console block, or <!-- not run: why -->"
            assert block.commands, f"{where}: no line starts with '$ '"


def written_commands() -> list[tuple[Path, str]]:
    """Every call of wheelproof in the documentation, in a block of code or in backticks, and its page."""
    calls = []
    for page in [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]:
        if page.is_relative_to(DOCS / "reference"):
            continue  # synopses, made from the parsers
        text = page.read_text(encoding="utf-8")
        code = [line for block in read_blocks(page) for line in block.text.splitlines()]
        code += re.findall("^ {4}(.*)", text, re.MULTILINE)
        whole = [call for line in code for call in re.findall(r"^\s*(?:\$ |run: )?(wheelproof [a-z].*)", line)]
        named = [
            call for call in re.findall("`(wheelproof [a-z][^`]*)`", text) if not call.split()[-1].startswith("--")
        ]
        calls += [(page, " ".join(call.split())) for call in [*whole, *named]]
    return calls


def test_every_command_line_of_the_documentation_is_understood() -> None:
    wrong = [f"{page}: {call}\n    {fault}" for page, call in written_commands() if (fault := fault_of(call))]
    assert not wrong, "\n".join(wrong)


def fault_of(call: str) -> str:
    """The parser's error for a call; arguments may be omitted."""
    name, *words = shlex.split(re.split(r" [|>] ", call)[0], comments=True)[1:]
    if name not in COMMANDS:
        return "no such command"
    module = importlib.import_module(COMMANDS[name][0])
    below = getattr(module, "SUBCOMMANDS", {})
    if words and words[0] in below:
        name, module = f"{name} {words[0]}", importlib.import_module(below[words.pop(0)][0])
    parser = make_parser(name, "...", module)
    parser.forgive_missing_arguments()
    try:
        parser.parse(words)
    except UsageError as error:
        return str(error)
    return ""


@pytest.mark.parametrize(
    ("call", "fault"),
    [
        ("wheelproof verify torch==2.11.0 --platform all  # both", ""),
        ("wheelproof verify --depth links | less", ""),
        ("wheelproof pins check --set wide", ""),
        ("wheelproof verify --depht links", "did you mean --depth"),
        ("wheelproof verify --depth deeper", "invalid choice"),
        ("wheelproof pins guard --set wide", "unexpected option --set"),
        ("wheelproof judge", "no such command"),
    ],
)
def test_a_wrong_command_line_is_seen(call: str, fault: str) -> None:
    message = fault_of(call)
    assert fault in message
    assert bool(fault) == bool(message)


@pytest.mark.parametrize(
    ("shown", "output", "is_it"),
    [
        ("PASS  1 wheel (0.4 s)", "PASS  1 wheel (12.1 s)", True),
        ("PASS  1 wheel (0.4 s)", "FAIL  1 wheel (0.4 s)", False),
        ("(1.3 s, 1.6 MB read in 5 requests)", "(0.2 s, 365.6 kB read in 1 request)", True),
        ("first\n...\nlast", "first\nsecond\nthird\nlast", True),
        ("first\n...\nlast", "first\nlast", True),
        ("first\nlast", "first\nsecond\nlast", False),
        ("first\n...", "other\nsecond", False),
        ("torch ...: passed", "torch 2.11.0: passed", True),
        ("torch ...: passed", "torch 2.11.0: failed", False),
        ("a.c", "abc", False),
    ],
)
def test_when_an_output_is_the_one_that_is_shown(shown: str, output: str, is_it: bool) -> None:
    assert is_shown(shown, output) is is_it


def test_a_page_is_read_as_blocks(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        '```toml title="a.toml"\nx = 1\n```\n\n'
        "<!-- lane: online -->\n\n```console\n$ one \\\n> two\nout\n\n$ three\n```\n\n"
        "<!-- not run: needs a GPU -->\n```sh\nfour\n```\n"
    )
    file, online, gpu = read_blocks(page)
    assert (file.title, file.text) == ("a.toml", "x = 1\n")
    assert (online.lane, online.commands) == ("online", [Command("one \\\ntwo", "out"), Command("three", "")])
    assert (gpu.language, gpu.reason, gpu.lane) == ("sh", "needs a GPU", "")
