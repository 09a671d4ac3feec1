"""A pipeline for GitLab."""

from typing import Any

from wheelproof.matrix.plans.model import RECORDS, Plan, container_image, in_venv, minutes
from wheelproof.matrix.plans.yaml import to_yaml

_WHEELPROOF = "/tmp/wheelproof"  # noqa: S108  # in the container of the job
_PROGRAM = f"{_WHEELPROOF}/bin/wheelproof"
_CACHE = ".cache/wheelproof"  # below the project: GitLab caches nothing else


def write(plan: Plan) -> str:
    """The pipeline: a job for each cell in an image of its Python, then the merge."""
    base = {
        "stage": "wheelproof-cells",
        "variables": {"WHEELPROOF_CACHE_DIR": f"$CI_PROJECT_DIR/{_CACHE}"},
        "script": [*in_venv(_WHEELPROOF, plan.install), plan.run('"$CI_JOB_NAME"', program=_PROGRAM)],
        "cache": {
            "key": {"files": [plan.matrix], "prefix": "wheelproof-$CI_JOB_NAME"},
            "paths": [f"{_CACHE}/matrix/trees"],
        },
        "artifacts": {"when": "always", "paths": [f"{RECORDS}/"], "expire_in": "30 days"},
    }
    document: dict[str, Any] = {"stages": ["wheelproof-cells", "wheelproof-report"], ".wheelproof-cell": base}
    for cell in plan.cells:
        document[cell.id] = {
            "extends": ".wheelproof-cell",
            "image": container_image(cell),
            "tags": list(plan.labels(cell)),
            "timeout": f"{minutes(cell)} minutes",
        }
    document["wheelproof-report"] = {
        "stage": "wheelproof-report",
        "image": "python:3.13-slim-trixie",
        "when": "always",
        "script": [
            *in_venv(_WHEELPROOF, plan.install),
            f"mkdir -p {RECORDS}",
            plan.merge("--also", "json=wheelproof.json", "--also", "junit=wheelproof.xml", program=_PROGRAM),
        ],
        "artifacts": {
            "when": "always",
            "paths": ["wheelproof.json"],
            "reports": {"junit": "wheelproof.xml"},
        },
    }
    return plan.header + to_yaml(document)
