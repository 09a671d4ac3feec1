#!/bin/sh
#SBATCH --job-name=wheelproof
#SBATCH --array=0-4
#SBATCH --ntasks=1
#SBATCH --time=45
#SBATCH --output=wheelproof-%A_%a.log
# Made by `wheelproof matrix plan --to slurm --runner gpu=partition=gpu`.
# After a change of the matrix, make it again.
#
#   sh FILE       submits an array of the cells for each kind of machine, and the merge, which begins after the last
#   sbatch FILE   submits one array of all cells, for a cluster whose nodes are all of one kind
#   sh FILE merge the merge alone
#
# The nodes share this folder, have wheelproof on PATH, and the Pythons of their cells. A cell whose report is in
# wheelproof-records already, complete and of the same inputs, is not run again.
set -u

if [ "${1:-}" = merge ]; then
    exec wheelproof matrix merge wheelproof-records --matrix ci/matrix.toml
fi

if [ -n "${SLURM_ARRAY_TASK_ID:-}" ]; then
    set -- x86_64-py3.12-torch2.11.0 \
        x86_64-py3.13-torch2.11.0 \
        aarch64-py3.12-torch2.11.0 \
        aarch64-py3.13-torch2.11.0 \
        x86_64-py3.13-torch2.11.0-gpu
    shift "$SLURM_ARRAY_TASK_ID"
    exec wheelproof matrix run --matrix ci/matrix.toml --executor venv --cell "$1" --records wheelproof-records
fi

jobs=
submit() {
    job=$(sbatch --parsable "$@") || exit 1
    jobs=$jobs:${job%%;*}
}
submit --array=0-1 --constraint=x86_64 "$0"
submit --array=2-3 --constraint=aarch64 "$0"
submit --array=4 --partition=gpu --gpus=1 "$0"
sbatch --array=0 --dependency="afterany$jobs" --time=15 --output=wheelproof-merge-%A.log "$0" merge
