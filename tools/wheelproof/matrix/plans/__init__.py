"""Cells for the engines that people have: ``matrix plan`` writes their own files, and starts nothing itself."""

from collections.abc import Callable, Mapping

from wheelproof.matrix.plans import github, gitlab, kubernetes, shell, slurm
from wheelproof.matrix.plans.model import Plan

ENGINES: Mapping[str, Callable[[Plan], str]] = {
    "github": github.write,
    "gitlab": gitlab.write,
    "slurm": slurm.write,
    "kubernetes": kubernetes.write,
    "shell": shell.write,
}
