"""``ci/kubernetes/doctor-job.yaml``: Kubernetes accepts it, and what it runs gives reports that merge."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import kubernetes_validate  # type: ignore[import-untyped]  # it comes without types
import pytest
import yaml

from tests.support.patience import PATIENCE

ROOT = Path(__file__).resolve().parents[2]
WHEELPROOF = (sys.executable, "-m", "wheelproof")


@pytest.fixture(scope="module")
def job() -> dict[str, Any]:
    document: dict[str, Any] = yaml.safe_load((ROOT / "ci/kubernetes/doctor-job.yaml").read_text())
    return document


def test_kubernetes_knows_every_field(job: dict[str, Any]) -> None:
    kubernetes_validate.validate(job, kubernetes_validate.latest_version(), strict=True)


def test_a_misspelt_field_is_noticed(job: dict[str, Any]) -> None:
    misspelt = {**job, "spec": {**job["spec"], "completion": 2}}
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(misspelt, kubernetes_validate.latest_version(), strict=True)


def test_the_pod_is_restricted(job: dict[str, Any]) -> None:
    """As the Pod Security Standards' profile "restricted" asks."""
    pod = job["spec"]["template"]["spec"]
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert not {"hostNetwork", "hostPID", "hostIPC"} & pod.keys()
    assert all(volume.keys() <= {"name", "emptyDir"} for volume in pod["volumes"])
    for container in pod["containers"]:
        context = container["securityContext"]
        assert context["allowPrivilegeEscalation"] is False
        assert context["capabilities"] == {"drop": ["ALL"]}
        assert "privileged" not in context


def test_the_number_of_nodes_is_set_as_the_comment_says(job: dict[str, Any]) -> None:
    text = (ROOT / "ci/kubernetes/doctor-job.yaml").read_text()
    set_to = subprocess.run(["sed", "s/[0-9]* # nodes/72/"], input=text, capture_output=True, text=True, check=True)
    spec = yaml.safe_load(set_to.stdout)["spec"]
    assert (spec["completions"], spec["parallelism"]) == (72, 72)
    assert job["spec"]["completions"] == job["spec"]["parallelism"]


def test_the_logs_of_the_pods_merge(job: dict[str, Any], tmp_path: Path) -> None:
    container = job["spec"]["template"]["spec"]["containers"][0]
    start = tmp_path / "wheelproof"
    start.write_text(f'#!/bin/sh\nexec {shlex.join(WHEELPROOF)} "$@"\n')
    start.chmod(0o755)
    path = os.pathsep.join([str(tmp_path), os.environ["PATH"]])
    logs = ""
    for node in ("gpu-1", "gpu-2"):
        ended = subprocess.run(
            [*container["command"], *container["args"]],
            env={**os.environ, "PATH": path, "NODE_NAME": node, "MESSAGE": str(tmp_path / "message")},
            capture_output=True,
            text=True,
            check=True,
            timeout=PATIENCE,
        )
        logs += ended.stdout

    merged = subprocess.run(
        [*WHEELPROOF, "report", "merge", "-", "--expect-hosts", "gpu-1,gpu-2"],
        input=logs,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )

    # The Python of these pods has no torch: each doctor says so, and both hosts are there.
    assert "2 hosts: 2 hosts fail (gpu-1, gpu-2)" in merged.stdout, merged.stdout + merged.stderr
    assert merged.returncode == 1
