"""The unified diff is exact: applied to the original it gives the result."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from wheelproof.pins import Mode, Policy
from wheelproof.pins.documents.reading import read_source
from wheelproof.pins.documents.source import decode
from wheelproof.pins.model import FilePlan
from wheelproof.pins.rewrite.diff import unified
from wheelproof.pins.rewrite.planning import plan_document

NO_END = "\n\\ No newline at end of file"


def planned(text: str, mode: Mode = Mode.DROP) -> FilePlan:
    path = Path("requirements.txt")
    return plan_document(path, read_source(decode(path, text.encode()), "requirements"), Policy(mode))


def patched(text: str, diff: list[str]) -> str:
    """The text with the diff applied, strictly: every line and every number must fit."""
    before, after = text.splitlines(keepends=True), list[str]()
    position = 0
    for line in diff[2:]:
        if header := re.fullmatch(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@", line):
            start = int(header[1]) - (header[2] != "0")
            after += before[position:start]
            position = start
            assert len(after) == int(header[3]) - (header[4] != "0")
            continue
        body = line[1:].removesuffix(NO_END) if line.endswith(NO_END) else line[1:] + "\n"
        if line[0] in " -":
            assert before[position] == body
            position += 1
        if line[0] in " +":
            after.append(body)
    return "".join(after + before[position:])


lines = st.sampled_from(["torch==2\n", "six\n", "numpy\n", "torch \\\n  ==2\n", "# x\n", "torchvision  # y\n"])


@given(st.lists(lines, max_size=40), st.sampled_from(["", "torch", "six"]), st.sampled_from(Mode))
@example(["torch==2\n"], "", Mode.DROP)
@example([], "torch==2", Mode.UNPIN)
def test_whoever_applies_it_has_the_result(parts: list[str], last: str, mode: Mode) -> None:
    text = "".join(parts) + last
    file = planned(text, mode)
    diff = list(unified(file))

    assert bool(diff) == file.changed
    assert patched(text, diff) == file.rewritten.decode()


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_other_encodings(encoding: str) -> None:
    path = Path("requirements.txt")
    source = decode(path, "six\ntorch\n".encode(encoding))
    file = plan_document(path, read_source(source, "requirements"), Policy())

    assert list(unified(file))[-1] == "-torch"
