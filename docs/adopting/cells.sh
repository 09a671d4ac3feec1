#!/bin/sh
# Made by `wheelproof matrix plan --to shell`.
# After a change of the matrix, make it again.
#
#   sh FILE          the cells one after another, then the merge
#   sh FILE 4        four at a time
#   sh FILE run ID   one cell
#   sh FILE merge    the merge alone
#
# A cell whose report is in wheelproof-records already, complete and of the same inputs, is not run again: so the script
# continues where it was stopped, here or where the folder was copied to. wheelproof is on PATH.
set -u

run() {
    wheelproof matrix run --matrix ci/matrix.toml --executor docker --cell "$1" --records wheelproof-records --quiet
}

case ${1:-1} in
run) run "$2" ;;
merge) wheelproof matrix merge wheelproof-records --matrix ci/matrix.toml ;;
*)
    # The exit code is that of the merge: what a cell found is in its report
    printf '%s\n' x86_64-py3.12-torch2.11.0 \
        x86_64-py3.13-torch2.11.0 \
        aarch64-py3.12-torch2.11.0 \
        aarch64-py3.13-torch2.11.0 \
        x86_64-py3.13-torch2.11.0-gpu |
        xargs -n 1 -P "${1:-1}" sh "$0" run
    wheelproof matrix merge wheelproof-records --matrix ci/matrix.toml
    ;;
esac
