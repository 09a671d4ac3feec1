"""docs/adopting.md is true: its commands run, and its workflows are valid and call existing commands."""

from __future__ import annotations

import importlib
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.patience import PATIENCE
from tests.support.wheels import torch_like
from wheelproof.cli.main import COMMANDS
from wheelproof.cli.options.output import make_parser

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/adopting.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
COMMANDS_OF = {"sh": ["bash", "--noprofile", "--norc", "-e", "-u", "-c"], "fish": ["fish", "--no-config", "-c"]}
YAML = [text for language, text in BLOCKS if language == "yaml"]
COMMIT = "0123456789abcdef0123456789abcdef01234567"


def called(step: dict[str, Any]) -> list[str]:
    """The command line of a step that uses the action or the reusable workflow."""
    return [*shlex.split(step["with"]["command"]), *shlex.split(step["with"].get("arguments", ""), comments=True)]


def parse(words: list[str]) -> None:
    """Parse a command line without running it. Raises UsageError for an unknown option."""
    name, (module, summary) = words[0], COMMANDS[words[0]]
    below = getattr(importlib.import_module(module), "SUBCOMMANDS", {})
    if words[1] in below:
        name, (module, summary) = f"{name} {words[1]}", below[words[1]]
    make_parser(name, summary, importlib.import_module(module)).parse(words[len(name.split()) :])


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with a built wheel, as the commands of the page find it; wheelproof is on PATH."""
    (tmp_path / "dist").mkdir()
    torch_like("cuda", "2.11.0").write(tmp_path / "dist")
    return tmp_path


def test_every_language_of_a_block_is_checked() -> None:
    assert {language for language, _ in BLOCKS} == {"sh", "fish", "yaml"}


@pytest.mark.shells
@pytest.mark.parametrize(("language", "script"), [block for block in BLOCKS if block[0] in COMMANDS_OF])
def test_the_commands_run(project: Path, language: str, script: str) -> None:
    environment = {"HOME": str(project), "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    command = [*COMMANDS_OF[language], script]
    done = subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    made = [project / name for name in re.findall(r"(?:[a-z]+=|> ~/)([\w./-]+)", script)]
    assert all(file.stat().st_size for file in made)


@pytest.mark.parametrize("text", [text for text in YAML if "jobs:" in text])
def test_the_workflows_are_valid_and_call_what_exists(tmp_path: Path, text: str) -> None:
    workflow = tmp_path / "workflow.yml"
    workflow.write_text(text.replace("@COMMIT", f"@{COMMIT} # v0.1.0"))
    tools = Path(sys.executable).parent
    for check in ("check-jsonschema --builtin-schema vendor.github-workflows", "zizmor --offline --strict-collection"):
        command = [str(tools / check.split()[0]), *check.split()[1:], str(workflow)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE)
        assert done.returncode == 0, done.stdout + done.stderr

    action = yaml.safe_load((ROOT / "action.yml").read_text())
    reusable = yaml.safe_load((ROOT / ".github/workflows/wheelproof.yml").read_text())[True]["workflow_call"]
    uses = [(step, action) for job in yaml.safe_load(text)["jobs"].values() for step in job.get("steps", [])]
    uses += [(job, reusable) for job in yaml.safe_load(text)["jobs"].values()]
    ours = [(step, offered) for step, offered in uses if "OWNER/wheelproof" in step.get("uses", "")]
    assert ours
    for step, offered in ours:
        assert set(step["with"]) <= set(offered["inputs"])
        parse(called(step))


def test_the_inputs_and_outputs_are_all_documented() -> None:
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    for name in (*action["inputs"], *action["outputs"]):
        assert f"\n| `{name}` |" in PAGE


def test_the_hooks_are_those_that_exist() -> None:
    (text,) = (text for text in YAML if "repos:" in text)
    (repository,) = yaml.safe_load(text)["repos"]
    hooks = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    assert [hook["id"] for hook in repository["hooks"]] == [hook["id"] for hook in hooks]


@pytest.mark.parametrize("link", re.findall(r"\]\(([^)#:]+)\)", PAGE))
def test_the_links_lead_somewhere(link: str) -> None:
    assert (ROOT / "docs" / link).is_file()
