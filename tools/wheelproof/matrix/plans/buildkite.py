"""A pipeline for Buildkite."""

from __future__ import annotations

from typing import Any

from wheelproof.matrix.model import Cell
from wheelproof.matrix.plans.model import RECORDS, Plan, in_venv, minutes
from wheelproof.matrix.plans.yaml import to_yaml

_WHEELPROOF = ".wheelproof"  # in the checkout: Buildkite puts its own values in place of $VARIABLES
_PROGRAM = f"{_WHEELPROOF}/bin/wheelproof"


def write(plan: Plan) -> str:
    """The pipeline: a step for each cell, a wait that failures do not end, then the merge."""
    steps: list[dict[str, Any]] = [_step(plan, cell) for cell in plan.cells]
    steps.append({"wait": None, "continue_on_failure": True})
    steps.append(
        {
            "label": "The report",
            "commands": [
                *in_venv(_WHEELPROOF, plan.install),
                f"mkdir -p {RECORDS}",
                f'buildkite-agent artifact download "{RECORDS}/**/*" . || true',
                plan.merge("--also", "json=wheelproof.json", "--also", "junit=wheelproof.xml", program=_PROGRAM),
            ],
            "artifact_paths": ["wheelproof.json", "wheelproof.xml"],
            "timeout_in_minutes": 15,
        }
    )
    return plan.header + to_yaml({"steps": steps})


def _step(plan: Plan, cell: Cell) -> dict[str, Any]:
    return {
        "label": cell.id,
        "agents": dict(_tag(label) for label in plan.labels(cell)),
        "commands": [*in_venv(_WHEELPROOF, plan.install), plan.run(cell.id, program=_PROGRAM)],
        "artifact_paths": [f"{RECORDS}/**/*"],
        "timeout_in_minutes": minutes(cell),
    }


def _tag(label: str) -> tuple[str, str]:
    """A tag of agents: NAME=VALUE, or the name of a queue."""
    name, equals, value = label.partition("=")
    return (name, value) if equals else ("queue", label)
