"""The blocks of the pages on the matrix: the files are read, and the workflow is valid for GitHub."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

from tests.conftest import Wheelproof
from tests.docs.blocks import Block, read_blocks
from wheelproof.matrix.definition.reading import parse_matrix
from wheelproof.matrix.executors.docker.executor import debian_image

DOCS = Path(__file__).parents[2] / "docs"
PAGES = [DOCS / "matrix.md", DOCS / "how-to/both-architectures.md"]
AXES = '[axes]\nplatform = ["x86_64", "aarch64"]\npython = ["3.13"]\ntorch = ["2.11.0"]\n'


def blocks(language: str) -> list[Block]:
    """The blocks of this language on the pages, but files that are not a matrix."""
    found = [block for page in PAGES for block in read_blocks(page) if block.language == language]
    return [block for block in found if block.title != "pyproject.toml"]


@pytest.mark.parametrize("block", blocks("toml"), ids=lambda block: f"line {block.line}")
def test_a_file_is_a_matrix_whose_cells_have_images(block: Block) -> None:
    """A block without axes shows some keys of a cell."""
    text = block.text if "axes" in tomllib.loads(block.text) else AXES + block.text
    cells = parse_matrix(text.encode()).cells
    assert [cell.id for cell in cells if not cell.image and debian_image(cell) is None] == []


def test_there_is_one_workflow() -> None:
    assert len(blocks("yaml")) == 1


@pytest.mark.parametrize(
    "check", ["check-jsonschema --builtin-schema vendor.github-workflows", "zizmor --offline --strict-collection"]
)
def test_the_workflow_is_one_that_github_takes(tmp_path: Path, check: str) -> None:
    workflow = tmp_path / ".github/workflows/matrix.yml"
    workflow.parent.mkdir(parents=True)
    workflow.write_text(blocks("yaml")[0].text.replace("COMMIT", "0" * 40), encoding="utf-8")
    program, *arguments = check.split()
    command = [str(Path(sys.executable).parent / program), *arguments, str(workflow)]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stdout + answer.stderr


def test_the_workflow_uses_what_the_command_prints(wheelproof: Wheelproof, tmp_path: Path) -> None:
    text = blocks("yaml")[0].text
    workflow = yaml.safe_load(text)
    file = tmp_path / "matrix.toml"
    file.write_text(next(block.text for block in blocks("toml") if "[runners]" in block.text), encoding="utf-8")
    (entry, *_) = json.loads(wheelproof("matrix", "github", "--matrix", str(file)).out)["include"]
    assert {name for name in re.findall(r"\bmatrix\.([a-z]+)", text) if name != "toml"} <= set(entry)

    jobs = workflow["jobs"]
    assert all({"runs-on", "steps", "timeout-minutes"} <= set(job) for job in jobs.values())
    (output,) = jobs["plan"]["outputs"].values()
    step, name = re.fullmatch(r"\$\{\{ steps\.(\w+)\.outputs\.(\w+) \}\}", output).groups()  # type: ignore[union-attr]  # it fails if None
    (writing,) = [found["run"] for found in jobs["plan"]["steps"] if found.get("id") == step]
    assert writing.startswith(f'echo "{name}=$(')
    assert jobs["cell"]["needs"] == "plan"
