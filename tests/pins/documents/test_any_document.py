"""For any document: unplanned bytes are unchanged, a second run changes nothing, restore restores all."""

from __future__ import annotations

import re
import tempfile
import tomllib
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from pip._internal.req.req_file import preprocess

from wheel_checks.errors import WheelproofError
from wheelproof.pins import Mode, NameSet, Policy, plan
from wheelproof.pins.documents.reading import READERS, read_source
from wheelproof.pins.documents.source import decode
from wheelproof.pins.model import FilePlan
from wheelproof.pins.rewrite.held import hold
from wheelproof.pins.rewrite.planning import plan_document
from wheelproof.pins.rewrite.replace import write
from wheelproof.pins.rewrite.restoring import restore

NAMES = ("torch", "Torch", "torchvision", "TORCH.AUDIO", "torchmetrics", "numpy", "nvidia-nccl-cu12", "triton")
VERSIONS = ("", "==2.8.0", " >= 2.7 , <3", "[gpu]~=2.7", " @ https://example.org/x.whl", "; python_version < '3.12'")
requirement = st.builds(str.__add__, st.sampled_from(NAMES), st.sampled_from(VERSIONS))

# --- requirements files

ends = st.sampled_from(["\n", "\r\n"])
tails = st.sampled_from(["", " # why", " \\\n  --hash=sha256:ab", "\n    # via x", " \\\n # odd", "\n# é漢", "\t"])
other_lines = st.sampled_from(
    ["", "# torch==1", "-c nothing.txt", "--index-url https://a/torch", "\\", "  ", "-e .", "\f"]
)
lines = st.one_of(st.builds(lambda name, tail, end: name + tail + end, requirement, tails, ends), other_lines)
requirement_files = st.builds(
    lambda mark, body, last: mark + "".join(body) + last,
    st.sampled_from(["", "\ufeff", "# coding: utf-8\n"]),
    st.lists(st.builds(str.__add__, lines, st.sampled_from(["\n", ""])), max_size=12),
    st.sampled_from(["", "torch==2.8", "six"]),
)

# --- arrays in TOML, in every style

quoted = requirement.filter(lambda text: "'" not in text).map(lambda text: f'"{text}"')
gaps = st.sampled_from(["", " ", "\n", "\n  ", " # c, [\n ", "\n# c\n"])
item = st.builds(lambda before, text, after: (before, text, after), gaps, quoted, gaps)
arrays = st.builds(
    lambda items, trailing, last: (
        "["
        + ",".join(before + text + after for before, text, after in items)
        + ("," if trailing and items else "")
        + last
        + "]"
    ),
    st.lists(item, max_size=5),
    st.booleans(),
    gaps,
)
toml_files = st.builds(
    lambda a, b, c, d: (
        f"[project]\nname = 'torch'\ndependencies = {a}\noptional-dependencies.torch = {b}\n"
        f"[tool.uv]\nsources.torch = {{index = 'x'}} # torch\noverride-dependencies={c}\n[dependency-groups]\nx={d}"
    ),
    arrays,
    arrays,
    arrays,
    arrays,
)
policies = st.builds(
    lambda mode, names: Policy(mode, names, versions={"torch": "2.7.0+cu128"}),
    st.sampled_from(Mode),
    st.sampled_from(NameSet),
)


def planned(kind: str, data: bytes, policy: Policy) -> FilePlan:
    """The verified plan; unplanned bytes must be unchanged."""
    path = Path("document")
    source = decode(path, data, declared=READERS[kind][1])
    return plan_document(path, read_source(source, kind), policy)


def check(kind: str, text: str, policy: Policy) -> FilePlan:
    file = planned(kind, text.encode(), policy)
    position, kept = 0, b""
    for edit in file.edits:
        kept += file.original[position : edit.start] + edit.replacement
        position = edit.end
    assert kept + file.original[position:] == file.rewritten
    again = planned(kind, file.rewritten, policy)
    assert not again.changed
    if policy.mode is Mode.DROP:
        left = [found.name for found in again.document.requirements if policy.wants(found)]
        assert left == []
    return file


@given(requirement_files, policies)
@example("torch \\\n  >=2.7, \\\n  <3\n    # via\n    #   x\n", Policy())
@example("six \\\ntorch\n", Policy())
def test_any_requirements_file(text: str, policy: Policy) -> None:
    check("requirements", text, policy)


@given(requirement_files)
@example("six \\\n# comment\ntorch\n")
@example("torch \\\n# comment\n  # via x\nsix")
def test_pip_reads_what_is_left(text: str) -> None:
    before, after = (lines_of_pip(t) for t in (text, check("requirements", text, Policy()).rewritten.decode()))
    meant = re.compile(r"(torch|torchvision)(?![\w.-])", re.IGNORECASE)

    assert after == [line for line in before if not meant.match(line)]


def lines_of_pip(text: str) -> list[str]:
    """The logical lines as pip has them."""
    return [line.strip() for _, line in preprocess(text.lstrip("\ufeff"))]


@given(toml_files, policies)
def test_any_pyproject(text: str, policy: Policy) -> None:
    tomllib.loads(text)
    file = check("pyproject", text, policy)
    after = tomllib.loads(file.rewritten.decode())

    assert after["project"]["name"] == "torch"
    assert after["tool"]["uv"]["sources"] == {"torch": {"index": "x"}}
    if policy.mode is Mode.DROP:
        before = tomllib.loads(text)["project"]["dependencies"]
        kept = [entry for entry in before if not policy.means(canonicalize_name(Requirement(entry).name))]
        assert after["project"]["dependencies"] == kept


@settings(max_examples=25)
@given(st.lists(requirement_files, min_size=1, max_size=3), toml_files, policies)
def test_restore_gives_back_what_was_there(texts: list[str], toml: str, policy: Policy) -> None:
    with tempfile.TemporaryDirectory() as folder:
        files = {Path(folder) / f"{number}-requirements.txt": text for number, text in enumerate(texts)}
        files[Path(folder) / "pyproject.toml"] = toml
        for path, text in files.items():
            path.write_bytes(text.encode())
        journal = Path(folder) / "journal"
        with hold(Path(folder).resolve(), journal) as tree:
            write(plan([Path(folder)], policy), tree)
            write(plan([Path(folder)], Policy(names=NameSet.WIDE)), tree)
            if journal.exists():
                restore(tree)

        assert {path: path.read_bytes() for path in files} == {path: text.encode() for path, text in files.items()}
        assert len(list(Path(folder).iterdir())) == len(files)


@pytest.mark.parametrize("kind", list(READERS))
@given(data=st.binary(max_size=300))
@example(data=b"\xff\xfe")
@example(data=b"[[[[[[[[")
@example(data=b"# coding: rot13\ntorch")
@example(data=b"# coding: utf-16\ntorch")
@example(data=b"dependencies: [{a: [" * 40)
def test_no_bytes_whatever_crash_a_reader(kind: str, data: bytes) -> None:
    assert judged(kind, data) in {"planned", "refused"}


@pytest.mark.parametrize("kind", list(READERS))
@given(text=st.text(alphabet="torch-=[]{}(),:;\"'#\\ \n\t\r/s3.@e>", max_size=120))
def test_no_text_whatever_crashes_a_reader(kind: str, text: str) -> None:
    assert judged(kind, text.encode()) in {"planned", "refused"}


def judged(kind: str, data: bytes) -> str:
    """The result for a document: "bug" if its plan failed the verification."""
    try:
        planned(kind, data, Policy(names=NameSet.WIDE, conda=True))
    except WheelproofError as error:
        return "bug" if "bug" in error.hint else "refused"
    return "planned"
