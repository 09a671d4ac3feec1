"""A script for Slurm: an array with a task for each cell, and the merge after it."""

import shlex
from collections.abc import Iterator, Sequence

from wheelproof.matrix.model import Cell
from wheelproof.matrix.plans.model import MARGIN, RECORDS, Plan, groups, minutes

SCRIPT = """\
#!/bin/sh
#SBATCH --job-name=wheelproof
#SBATCH --array=0-{last}
#SBATCH --ntasks=1
#SBATCH --time={minutes}
#SBATCH --output=wheelproof-%A_%a.log
{header}#
#   sh FILE       submits an array of the cells for each kind of machine, and the merge, which begins after the last
#   sbatch FILE   submits one array of all cells, for a cluster whose nodes are all of one kind
#   sh FILE merge the merge alone
#
# The nodes share this folder, have wheelproof on PATH, and the Pythons of their cells. A cell whose report is in
# {records} already, complete and of the same inputs, is not run again.
set -u

if [ "${{1:-}}" = merge ]; then
    exec {merge}
fi

if [ -n "${{SLURM_ARRAY_TASK_ID:-}}" ]; then
    set -- {cells}
    shift "$SLURM_ARRAY_TASK_ID"
    exec {run}
fi

jobs=
submit() {{
    job=$(sbatch --parsable "$@") || exit 1
    jobs=$jobs:${{job%%;*}}
}}
{submits}
sbatch --array=0 --dependency="afterany$jobs" --time={margin} --output=wheelproof-merge-%A.log "$0" merge
"""


def write(plan: Plan) -> str:
    """The script."""
    places = {cell.id: number for number, cell in enumerate(plan.cells)}
    return SCRIPT.format(
        last=len(plan.cells) - 1,
        minutes=max(map(minutes, plan.cells)),
        margin=MARGIN,
        header=plan.header,
        records=RECORDS,
        merge=plan.merge(),
        cells=" \\\n        ".join(shlex.quote(cell.id) for cell in plan.cells),
        run=plan.run('"$1"'),
        submits="\n".join(
            shlex.join(["submit", f"--array={_ranges([places[cell.id] for cell in cells])}", *_options(plan, cells[0])])
            + ' "$0"'
            for _, cells in groups(plan)
        ),
    )


def _options(plan: Plan, cell: Cell) -> Iterator[str]:
    """The options of sbatch for the nodes of a cell: NAME=VALUE is one, any other label is a feature of the nodes."""
    labels = plan.labels(cell, needed=False)
    features = [label for label in labels if "=" not in label]
    yield from (f"--{label}" for label in labels if "=" in label)
    if features or (not labels and len({other.platform for other in plan.cells}) > 1):
        yield f"--constraint={'&'.join(features or [cell.platform])}"
    if cell.needs_gpu and not any(label.startswith(("gpus", "gres")) for label in labels):
        yield "--gpus=1"


def _ranges(numbers: Sequence[int]) -> str:
    """Such as ``0-3,7``."""
    found: list[list[int]] = []
    for number in numbers:
        if found and number == found[-1][-1] + 1:
            found[-1].append(number)
        else:
            found.append([number])
    return ",".join(f"{run[0]}-{run[-1]}" if len(run) > 1 else str(run[0]) for run in found)
