"""Indexed Jobs for Kubernetes: a pod for each cell, and a suspended Job that merges."""

import shlex
from collections.abc import Sequence
from typing import Any

from wheelproof.matrix.model import Cell
from wheelproof.matrix.plans.model import Plan, container_image, groups, in_venv, minutes
from wheelproof.matrix.plans.yaml import to_yaml

_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}  # kubernetes.io/docs/reference/labels-annotations-taints
_TMP, _CELLS, _RECORDS = "/tmp", "/cells", "/records"  # noqa: S108  # in the container
_WHEELPROOF = f"{_TMP}/wheelproof"
_PROGRAM = f"{_WHEELPROOF}/bin/wheelproof"
_MATRIX = f"{_CELLS}/matrix.json"
_NOTES = """\
#
#   kubectl apply -f FILE
#   kubectl wait --for=condition=complete --timeout=4h job -l app.kubernetes.io/component=cells
#   kubectl patch job wheelproof-merge --type=merge -p '{"spec":{"suspend":false}}'
#   kubectl wait --for=condition=complete --timeout=15m job/wheelproof-merge
#   kubectl logs job/wheelproof-merge
#
# The cells are in the ConfigMap: no pod needs the project, unless a cell has a wheel by its path, or a command that
# reads files. Then name an image that contains them in its working directory. All pods write to one volume: its storage
# class must know ReadWriteMany. To continue after a stop, delete the Jobs and apply this file again: a cell whose
# report is in the volume, complete and of the same inputs, is not run again.
"""
_RUN = """\
set -eu
{install}
set -- {cells}
shift "$JOB_COMPLETION_INDEX"
status=0
{run} || status=$?
# What the cell found is in its report: a pod fails, and is tried again, only if none exists
[ "$status" -le 1 ] || [ -e {records}/"$1".json ] || exit "$status"
"""


def write(plan: Plan) -> str:
    """The manifests."""
    volume = {
        "accessModes": ["ReadWriteMany"],
        "resources": {"requests": {"storage": "1Gi"}},
    }
    objects = [
        _object("v1", "ConfigMap", "wheelproof-cells") | {"data": {"matrix.json": plan.document}},
        _object("v1", "PersistentVolumeClaim", "wheelproof-records") | {"spec": volume},
        *(_job(plan, name, cells) for name, cells in groups(plan, by_image=True)),
        _merge(plan),
    ]
    return plan.header + _NOTES + "---\n" + "---\n".join(map(to_yaml, objects))


def _object(version: str, kind: str, name: str, component: str = "") -> dict[str, Any]:
    labels = {"app.kubernetes.io/name": "wheelproof"}
    labels |= {"app.kubernetes.io/component": component} if component else {}
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name, "labels": labels}}


def _job(plan: Plan, name: str, cells: Sequence[Cell]) -> dict[str, Any]:
    run = _RUN.format(
        install="\n".join(in_venv(_WHEELPROOF, plan.install)),
        cells=" ".join(shlex.quote(cell.id) for cell in cells),
        run=plan.run('"$1"', program=_PROGRAM, matrix=_MATRIX, records=_RECORDS),
        records=_RECORDS,
    )
    selector = {"kubernetes.io/arch": _ARCHITECTURES[cells[0].platform]}
    selector |= dict(label.partition("=")[::2] for label in plan.labels(cells[0], needed=False))
    gpu = {"nvidia.com/gpu": 1} if cells[0].needs_gpu else {}
    pod = _pod(container_image(cells[0]), run, max(map(minutes, cells)), gpu) | {"nodeSelector": selector}
    if gpu:
        pod["tolerations"] = [{"key": "nvidia.com/gpu", "operator": "Exists"}]
    spec = {
        "completionMode": "Indexed",
        "completions": len(cells),
        "parallelism": len(cells),
        "backoffLimitPerIndex": 1,
        "ttlSecondsAfterFinished": 86400,
        "template": {"metadata": {"labels": {"app.kubernetes.io/name": "wheelproof"}}, "spec": pod},
    }
    return _object("batch/v1", "Job", f"wheelproof-{name}", "cells") | {"spec": spec}


def _merge(plan: Plan) -> dict[str, Any]:
    """The Job that waits, suspended, until someone knows that the others are done."""
    merge = plan.merge(program=_PROGRAM, matrix=_MATRIX, records=_RECORDS)
    # A finding is not a failure of the pod: its log is the report
    script = "\n".join(["set -eu", *in_venv(_WHEELPROOF, plan.install), f"{merge} || [ $? -ne 2 ]", ""])
    pod = _pod("python:3.13-slim-trixie", script, 15, {})
    spec = {
        "suspend": True,
        "backoffLimit": 1,
        "ttlSecondsAfterFinished": 86400,
        "template": {"metadata": {"labels": {"app.kubernetes.io/name": "wheelproof"}}, "spec": pod},
    }
    return _object("batch/v1", "Job", "wheelproof-merge", "merge") | {"spec": spec}


def _pod(image: str, script: str, limit: int, more: dict[str, Any]) -> dict[str, Any]:
    """A pod as the Pod Security Standards' profile "restricted" asks, for at most ``limit`` minutes."""
    return {
        "restartPolicy": "Never",
        "activeDeadlineSeconds": 60 * limit,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": 65532,
            "runAsGroup": 65532,
            "fsGroup": 65532,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [
            {
                "name": "wheelproof",
                "image": image,
                "command": ["/bin/sh", "-c"],
                "args": [script],
                "env": [{"name": "HOME", "value": _TMP}],
                "resources": {
                    "requests": {"cpu": "1", "memory": "4Gi"},
                    "limits": {"memory": "16Gi"} | more,
                },
                "securityContext": {
                    "allowPrivilegeEscalation": False,
                    "readOnlyRootFilesystem": True,
                    "capabilities": {"drop": ["ALL"]},
                },
                "volumeMounts": [
                    {"name": "tmp", "mountPath": _TMP},
                    {"name": "cells", "mountPath": _CELLS, "readOnly": True},
                    {"name": "records", "mountPath": _RECORDS},
                ],
            }
        ],
        "volumes": [
            {"name": "tmp", "emptyDir": {}},
            {"name": "cells", "configMap": {"name": "wheelproof-cells"}},
            {"name": "records", "persistentVolumeClaim": {"claimName": "wheelproof-records"}},
        ],
    }
