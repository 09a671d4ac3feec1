"""A pipeline for Azure DevOps."""

from __future__ import annotations

from typing import Any

from wheelproof.matrix.model import Cell
from wheelproof.matrix.plans.model import RECORDS, Plan, in_venv, minutes
from wheelproof.matrix.plans.yaml import to_yaml

_WHEELPROOF = "$AGENT_TEMPDIRECTORY/wheelproof"
_PROGRAM = f'"{_WHEELPROOF}/bin/wheelproof"'
_REPORTS = '"$PIPELINE_WORKSPACE"/cells'


def write(plan: Plan) -> str:
    """The pipeline: a job for each cell, then the merge."""
    jobs = [_job(plan, number, cell) for number, cell in enumerate(plan.cells)]
    jobs.append(
        {
            "job": "merge",
            "displayName": "The report",
            "dependsOn": [job["job"] for job in jobs],
            "condition": "not(canceled())",
            "timeoutInMinutes": "15",
            "pool": {"vmImage": "ubuntu-24.04"},
            "steps": [
                {"script": "\n".join([*in_venv(_WHEELPROOF, plan.install), ""]), "displayName": "wheelproof"},
                {
                    "task": "DownloadPipelineArtifact@2",
                    "inputs": {
                        "itemPattern": f"wheelproof-cell-*/{RECORDS}/**",
                        "targetPath": "$(Pipeline.Workspace)/cells",
                    },
                },
                {
                    "script": f"mkdir -p {_REPORTS}\n{_merge(plan)}\n",
                    "displayName": "One report",
                },
                {
                    "task": "PublishTestResults@2",
                    "condition": "not(canceled())",
                    "inputs": {"testResultsFiles": "wheelproof.xml"},
                },
                {"publish": "wheelproof.json", "artifact": "wheelproof-report", "condition": "not(canceled())"},
            ],
        }
    )
    return plan.header + to_yaml({"trigger": ["main"], "jobs": jobs})


def _merge(plan: Plan) -> str:
    options = ("--also", "json=wheelproof.json", "--also", "junit=wheelproof.xml")
    return plan.merge(*options, program=_PROGRAM, records="RECORDS").replace("RECORDS", _REPORTS)


def _job(plan: Plan, number: int, cell: Cell) -> dict[str, Any]:
    """A job. ``number`` is part of its name, in which neither dots nor dashes may be."""
    return {
        "job": f"cell_{number}",
        "displayName": cell.id,
        "timeoutInMinutes": str(minutes(cell)),
        "pool": _pool(plan.labels(cell)),
        "variables": {"WHEELPROOF_CACHE_DIR": "$(Pipeline.Workspace)/cache"},
        "steps": [
            {"script": "\n".join([*in_venv(_WHEELPROOF, plan.install), ""]), "displayName": "wheelproof"},
            {"task": "UsePythonVersion@0", "inputs": {"versionSpec": cell.python}},
            {
                "task": "Cache@2",
                "inputs": {
                    "key": f'"wheelproof" | "{cell.id}" | {plan.matrix}',
                    "restoreKeys": f'"wheelproof" | "{cell.id}"',
                    "path": "$(Pipeline.Workspace)/cache/matrix/trees",
                },
            },
            {"script": plan.run(cell.id, program=_PROGRAM), "displayName": "The cell"},
            {"publish": RECORDS, "artifact": f"wheelproof-cell-{number}", "condition": "not(canceled())"},
        ],
    }


def _pool(labels: tuple[str, ...]) -> dict[str, Any]:
    """Of labels the first is an image of Microsoft's, or the name of a pool; the others are what an agent must have."""
    first, *demands = labels
    if first.startswith(("ubuntu-", "windows-", "macos-")):
        return {"vmImage": first}
    return {"name": first} | ({"demands": demands} if demands else {})
