"""Output of the commands next to reports: no line of it is a workflow command of GitHub."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.conftest import Wheelproof
from tests.support.github_runner import obeyed
from wheelproof.cli.options.output import note, say, warn

ERROR = "::error file=x::y ##[error]z"
MATRIX = f"""\
[[include]]
platform = "x86_64"
python = "3.12"
torch = "2.11.0"
smoke = ["compile"]
gpu = ["GB200"]
expect = {{ accelerator = "cpu", reason = "{ERROR}\\n{ERROR}\\u001b[2J" }}

[runners]
x86_64 = ["{ERROR}"]
"""


@pytest.mark.parametrize("space", ["", "  ", "\t", "\u00a0\u3000"])
def test_notes_warnings_and_errors(space: str, capsys: pytest.CaptureFixture[str]) -> None:
    note(f"{space}{ERROR}\n{space}{ERROR}", quiet=False)
    warn([f"{space}\n{space}{ERROR}"])
    say(f"{space}{ERROR}")
    words = capsys.readouterr().err
    assert obeyed(words) == []
    assert len(words.splitlines()) == 3
    assert words.count("error file=x") == 4


@pytest.mark.parametrize("arguments", [[ERROR], ["verify", ERROR], ["rules", ERROR], ["stack", "-r", f"\n{ERROR}"]])
def test_errors_of_the_command_line(wheelproof: Wheelproof, arguments: list[str]) -> None:
    run = wheelproof(*arguments)
    assert run.status in {2, 3}
    assert obeyed(run.err) == obeyed(run.out) == []


def test_a_diff_and_the_names_of_files(wheelproof: Wheelproof) -> None:
    Path("\x1b[2Jrequirements.txt").write_text(f"torch==2.8.0\n{ERROR}\n")
    Path("requirements.txt").write_text(f"numpy\n# \n{ERROR}\ntorch==2.8.0\n  {ERROR}\nx\t1\n")
    for options in ([], ["--dry-run"], ["--dry-run", "--color"], ["--dry-run", "--json"]):
        run = wheelproof("pins", "rewrite", "--summary" if not options else options[0], *options[1:])
        assert obeyed(run.out) == obeyed(run.err) == []
        assert "\x1b[2J" not in run.out + run.err
    assert json.loads(run.out)["files"]


def test_a_matrix_of_a_stranger(wheelproof: Wheelproof) -> None:
    Path("matrix.toml").write_text(MATRIX)
    for arguments in (["list"], ["list", "--format", "json"], ["github"]):
        run = wheelproof("matrix", arguments[0], "--matrix", "matrix.toml", *arguments[1:])
        assert run.status == 0, run.err
        assert obeyed(run.out) == []
        assert "\x1b" not in run.out
    assert json.loads(run.out)["include"][0]["runner"] == [ERROR]
