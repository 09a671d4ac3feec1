"""What a runner of GitHub Actions does with a composite action: its steps, their environment, their files, the log."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.support.patience import PATIENCE


@dataclass(frozen=True)
class ActionRun:
    """How an action ended: exit code of its last step, log, executed workflow commands, job summary, outputs."""

    status: int
    log: str
    commands: list[str]
    summary: str
    outputs: dict[str, str]


@dataclass(frozen=True)
class Runner:
    """A job in ``workspace``; ``temporary`` is RUNNER_TEMP, which the steps of a job share.

    ``cache`` is what actions/cache keeps from job to job: a folder of archives by key; None where a job has none.
    """

    workspace: Path
    temporary: Path
    cache: Path | None = None

    def uses(self, action: Path, **given: str) -> ActionRun:
        """Run the composite action in the folder ``action`` with these inputs, whose names have _ for -."""
        description = yaml.safe_load((action / "action.yml").read_text(encoding="utf-8"))
        inputs = {name: str(value.get("default", "")) for name, value in description["inputs"].items()}
        inputs |= {name.replace("_", "-"): value for name, value in given.items()}
        missing = [name for name, value in description["inputs"].items() if value.get("required") and not inputs[name]]
        assert not missing, f"GitHub passes no value for {missing}"

        status, log, summary, outputs = 0, "", "", dict[str, dict[str, str]]()
        for number, step in enumerate(description["runs"]["steps"]):
            if "if" in step and not _holds(step["if"], outputs):
                continue
            if "uses" in step:
                given = {name: _value(value, outputs) for name, value in step["with"].items()}
                outputs[step.get("id", "")] = self._action(step["uses"].partition("@")[0], given)
                continue
            files = {name: self.temporary / f"{name}-{number}" for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
            for file in files.values():
                file.write_text("")
            status, said = self._step(action, step, inputs, files)
            log += said
            summary += files["GITHUB_STEP_SUMMARY"].read_text(encoding="utf-8")
            lines = files["GITHUB_OUTPUT"].read_text(encoding="utf-8").splitlines()
            outputs[step.get("id", "")] = dict(line.split("=", 1) for line in lines)
            if status:
                break
        shown = {name: _value(value["value"], outputs) for name, value in description["outputs"].items()}
        return ActionRun(status, log, obeyed(log), summary, shown)

    def _action(self, name: str, given: Mapping[str, str]) -> dict[str, str]:
        """Do what actions/cache/restore and actions/cache/save do, and return the outputs."""
        if self.cache is None:
            return {}
        place, archive = Path(given["path"]), self.cache / given["key"]
        if name == "actions/cache/save":
            assert not archive.exists(), "a key is written once"
            shutil.copytree(place, archive, symlinks=True)
            return {}
        assert name == "actions/cache/restore"
        if not archive.exists():
            return {"cache-hit": ""}
        shutil.copytree(archive, place, symlinks=True, dirs_exist_ok=True)
        return {"cache-hit": "true"}

    def _step(
        self, action: Path, step: Mapping[str, Any], inputs: Mapping[str, str], files: Mapping[str, Path]
    ) -> tuple[int, str]:
        assert step["shell"] == "bash"
        assert "${{" not in step["run"], "an expression in a script is an injection"
        environment = os.environ | {name: _input(value, inputs) for name, value in step["env"].items()}
        environment |= {name: str(file) for name, file in files.items()}
        environment |= {"GITHUB_ACTION_PATH": str(action), "RUNNER_TEMP": str(self.temporary), "GITHUB_ACTIONS": "true"}
        environment |= {"GITHUB_WORKSPACE": str(self.workspace)}
        script = self.temporary / "step.sh"
        script.write_text(step["run"])
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", script],
            cwd=self.workspace,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=PATIENCE,
        )
        return done.returncode, done.stdout


def obeyed(log: str) -> list[str]:
    """The lines that the runner takes for workflow commands: none between ``::stop-commands::TOKEN`` and its end."""
    commands, token = [], None
    for line in map(str.strip, log.splitlines()):
        if token:
            token = None if line == f"::{token}::" else token
        elif line.startswith("::stop-commands::"):
            token = line.removeprefix("::stop-commands::")
        elif line.startswith("::") or "##[" in line:
            commands.append(line)
    return commands


def _holds(condition: str, outputs: Mapping[str, Mapping[str, str]]) -> bool:
    results = []
    for part in condition.split(" && "):
        found = re.fullmatch(r"(steps\.[a-z-]+\.outputs\.[a-z-]+) != '([a-z]*)'", part)
        assert found, f"this double does not know the condition {part}"
        results.append(_value(f"${{{{ {found[1]} }}}}", outputs) != found[2])
    return all(results)


def _input(value: str, inputs: Mapping[str, str]) -> str:
    found = re.fullmatch(r"\$\{\{ inputs\.([a-z-]+) \}\}", value)
    assert found, f"this double does not know the expression {value}"
    return inputs[found[1]]


def _value(value: str, outputs: Mapping[str, Mapping[str, str]]) -> str:
    found = re.fullmatch(r"\$\{\{ steps\.([a-z-]+)\.outputs\.([a-z-]+) \}\}", value)
    assert found, f"this double does not know the expression {value}"
    return outputs.get(found[1], {}).get(found[2], "")
