"""A script that runs the cells on this host, one after another or several at a time."""

import shlex

from wheelproof.matrix.plans.model import RECORDS, Plan

SCRIPT = """\
#!/bin/sh
{header}#
#   sh FILE          the cells one after another, then the merge
#   sh FILE 4        four at a time
#   sh FILE run ID   one cell
#   sh FILE merge    the merge alone
#
# A cell whose report is in {records} already, complete and of the same inputs, is not run again: so the script
# continues where it was stopped, here or where the folder was copied to. wheelproof is on PATH.
set -u

run() {{
    {run}
}}

case ${{1:-1}} in
run) run "$2" ;;
merge) {merge} ;;
*)
    # The exit code is that of the merge: what a cell found is in its report
    printf '%s\\n' {cells} |
        xargs -n 1 -P "${{1:-1}}" sh "$0" run
    {merge}
    ;;
esac
"""


def write(plan: Plan) -> str:
    """The script."""
    return SCRIPT.format(
        header=plan.header,
        records=RECORDS,
        run=plan.run('"$1"') + " --quiet",
        merge=plan.merge(),
        cells=" \\\n        ".join(shlex.quote(cell.id) for cell in plan.cells),
    )
