"""A reusable workflow for GitHub Actions."""

from typing import Any

from wheel_checks.data import load
from wheelproof.matrix.plans.model import RECORDS, Plan, in_venv, minutes
from wheelproof.matrix.plans.yaml import Commented, to_yaml

_WHEELPROOF = "$RUNNER_TEMP/wheelproof"
_PROGRAM = f'"{_WHEELPROOF}/bin/wheelproof"'


def write(plan: Plan) -> str:
    """The workflow: a job for each cell on a runner of its platform, then the merge."""
    read = {"contents": "read"}
    document: dict[str, Any] = {
        "name": "matrix",
        "on": {"workflow_call": {"inputs": _INPUTS, "outputs": _OUTPUTS}, "workflow_dispatch": {"inputs": _INPUTS}},
        "permissions": {},
        "concurrency": {
            "group": "wheelproof-matrix-${{ github.workflow }}-${{ github.ref }}",
            "cancel-in-progress": True,
        },
        "jobs": {
            "cell": {
                "name": "${{ matrix.id }}",
                "runs-on": "${{ matrix.runner }}",
                "timeout-minutes": "${{ matrix.minutes }}",
                "permissions": read,
                "strategy": {"fail-fast": False, "matrix": {"include": [*map(_entry(plan), plan.cells)]}},
                "steps": _cell_steps(plan),
            },
            "merge": {
                "name": "The report",
                "needs": "cell",
                "if": "${{ !cancelled() }}",
                "runs-on": "ubuntu-24.04",
                "timeout-minutes": 15,
                "permissions": read,
                "outputs": {"verdict": "${{ steps.merge.outputs.verdict }}"},
                "steps": _merge_steps(plan),
            },
        },
    }
    return plan.header + to_yaml(document)


_INPUTS = {
    "artifact": {
        "description": "An artifact of this run, such as the wheels of a build job, that is put into dist/ before",
        "type": "string",
        "default": "",
    }
}
_OUTPUTS = {"verdict": {"description": "pass, fail or undecided", "value": "${{ jobs.merge.outputs.verdict }}"}}


def _entry(plan: Plan) -> Any:
    return lambda cell: {
        "id": cell.id,
        "python": cell.python,
        "runner": list(plan.labels(cell)),
        "minutes": minutes(cell),
    }


def _uses(name: str) -> Commented:
    row = next(row for row in load("engines")["actions"] if row["name"] == name)
    return Commented(f"{name}@{row['commit']}", row["version"])


def _checkout() -> dict[str, Any]:
    return {"uses": _uses("actions/checkout"), "with": {"persist-credentials": False}}


def _install(plan: Plan) -> dict[str, Any]:
    return {"name": "wheelproof", "run": "\n".join([*in_venv(_WHEELPROOF, plan.install), ""])}


def _cell_steps(plan: Plan) -> list[dict[str, Any]]:
    return [
        _checkout(),
        {
            "name": "The artifact",
            "if": "inputs.artifact != ''",
            "uses": _uses("actions/download-artifact"),
            "with": {"name": "${{ inputs.artifact }}", "path": "dist"},
        },
        _install(plan),  # by the runner's python3: the cell's Python may be older than wheelproof takes
        {"uses": _uses("actions/setup-python"), "with": {"python-version": "${{ matrix.python }}"}},
        {
            "name": "The packages of the last run",
            "uses": _uses("actions/cache"),
            "with": {
                "path": "${{ runner.temp }}/cache/matrix/trees",
                "key": f"wheelproof-${{{{ matrix.id }}}}-${{{{ hashFiles('{plan.matrix}') }}}}",
                "restore-keys": "wheelproof-${{ matrix.id }}-",
            },
        },
        {
            "name": "The cell",
            "env": {"CELL": "${{ matrix.id }}", "WHEELPROOF_CACHE_DIR": "${{ runner.temp }}/cache"},
            "run": plan.run('"$CELL"', program=_PROGRAM),
        },
        {
            "name": "Its report",
            "if": "${{ !cancelled() }}",
            "uses": _uses("actions/upload-artifact"),
            "with": {
                "name": "wheelproof-cell-${{ matrix.id }}",
                "path": f"{RECORDS}/",
                "overwrite": True,
                "if-no-files-found": "ignore",
            },
        },
    ]


def _merge_steps(plan: Plan) -> list[dict[str, Any]]:
    merge = plan.merge("--also", "json=wheelproof.json", "--also", "markdown=wheelproof.md", program=_PROGRAM)
    return [
        _checkout(),
        _install(plan),
        {
            "name": "The reports of the cells",
            "uses": _uses("actions/download-artifact"),
            "with": {"pattern": "wheelproof-cell-*", "path": RECORDS, "merge-multiple": True},
        },
        {
            "id": "merge",
            "name": "One report",
            "run": "\n".join(
                [
                    f"mkdir -p {RECORDS}",
                    "status=0",
                    f"{merge} || status=$?",
                    "case $status in 0) verdict=pass ;; 1) verdict=fail ;; *) verdict=undecided ;; esac",
                    'echo "verdict=$verdict" >> "$GITHUB_OUTPUT"',
                    'if [ -f wheelproof.md ]; then cat wheelproof.md >> "$GITHUB_STEP_SUMMARY"; fi',
                    "exit $status",
                    "",
                ]
            ),
        },
        {
            "if": "${{ !cancelled() }}",
            "uses": _uses("actions/upload-artifact"),
            "with": {"name": "wheelproof-report", "path": "wheelproof.json", "overwrite": True},
        },
    ]
