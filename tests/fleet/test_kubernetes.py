"""``ci/kubernetes``: Kubernetes accepts it, it asks for GPUs as clusters give them, and its reports merge."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import kubernetes_validate  # type: ignore[import-untyped]  # it comes without types
import pytest
import yaml

from tests.rules.host.fabric_cases import rack
from tests.support.hosts import cuda_fails, healthy, in_container, replaced
from tests.support.kustomize import rendered
from tests.support.patience import PATIENCE
from tests.support.wheel_facts import judged
from wheel_checks.facts.host.facts import HostFacts
from wheel_checks.fixes.commands import NoCommand

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "ci/kubernetes"
OVERLAYS = ("device-plugin", "dra", "gb200")
COMPONENTS = ("privileged", "runtime-class")
WHEELPROOF = (sys.executable, "-m", "wheelproof")


def overlay(name: str, *components: str) -> list[dict[str, Any]]:
    return rendered(FOLDER / "overlays" / name, *(FOLDER / "components" / component for component in components))


def job_of(documents: list[dict[str, Any]]) -> dict[str, Any]:
    (job,) = (document for document in documents if document["kind"] == "Job")
    return job


def pod_of(documents: list[dict[str, Any]]) -> dict[str, Any]:
    pod: dict[str, Any] = job_of(documents)["spec"]["template"]["spec"]
    return pod


@pytest.mark.parametrize("components", [(), ("privileged",), ("runtime-class",), ("privileged", "runtime-class")])
@pytest.mark.parametrize("name", OVERLAYS)
def test_kubernetes_knows_every_field(name: str, components: tuple[str, ...]) -> None:
    for document in overlay(name, *components):
        if document["kind"] != "ComputeDomain":  # NVIDIA's own kind, of which there is no schema here
            kubernetes_validate.validate(document, kubernetes_validate.latest_version(), strict=True)


def test_a_misspelt_field_is_noticed() -> None:
    job = job_of(overlay("dra"))
    misspelt = {**job, "spec": {**job["spec"], "completion": 2}}
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(misspelt, kubernetes_validate.latest_version(), strict=True)


def test_the_domain_of_an_imex_channel() -> None:
    """The fields that NVIDIA's documentation of ComputeDomains has."""
    (domain,) = (document for document in overlay("gb200") if document["kind"] == "ComputeDomain")
    assert domain["apiVersion"] == "resource.nvidia.com/v1beta1"
    assert domain["spec"] == {"numNodes": 0, "channel": {"resourceClaimTemplate": {"name": "wheelproof-imex-channel"}}}
    (claim,) = pod_of(overlay("gb200"))["resourceClaims"]
    assert claim["resourceClaimTemplateName"] == "wheelproof-imex-channel"


@pytest.mark.parametrize("name", OVERLAYS)
def test_a_gpu_is_requested_and_no_variable_is_relied_on(name: str) -> None:
    pod = pod_of(overlay(name))
    (container,) = pod["containers"]
    claimed = {claim["name"] for claim in container["resources"].get("claims", ())}
    assert claimed == {claim["name"] for claim in pod.get("resourceClaims", ())}
    assert "gpus" in claimed or int(container["resources"]["limits"]["nvidia.com/gpu"]) > 0
    assert not any(variable["name"].startswith("NVIDIA_") for variable in container["env"])
    assert "runtimeClassName" not in pod


@pytest.mark.parametrize("name", OVERLAYS)
def test_the_pod_is_restricted(name: str) -> None:
    """As the Pod Security Standards' profile "restricted" asks."""
    pod = pod_of(overlay(name))
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert not {"hostNetwork", "hostPID", "hostIPC"} & pod.keys()
    assert all(volume.keys() <= {"name", "emptyDir"} for volume in pod["volumes"])
    for container in pod["containers"]:
        context = container["securityContext"]
        assert context["allowPrivilegeEscalation"] is False
        assert context["capabilities"] == {"drop": ["ALL"]}
        assert "privileged" not in context


def test_a_pod_is_privileged_only_where_the_user_asks() -> None:
    pod = pod_of(overlay("device-plugin", "privileged"))
    assert pod["containers"][0]["securityContext"] == {"privileged": True}
    assert pod["hostPID"] is True


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")
@pytest.mark.parametrize("component", ["", *COMPONENTS])
@pytest.mark.parametrize("name", OVERLAYS)
def test_kustomize_says_the_same(name: str, component: str, tmp_path: Path) -> None:
    shutil.copytree(FOLDER, tmp_path / "kubernetes")
    own = tmp_path / "kubernetes/overlays/own"
    own.mkdir()
    text: dict[str, Any] = {"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization"}
    text |= {"resources": [f"../{name}"], "components": [f"../../components/{component}"] if component else []}
    (own / "kustomization.yaml").write_text(json.dumps(text))
    kustomized = subprocess.run(
        ["kubectl", "kustomize", str(own)], capture_output=True, text=True, check=True, timeout=PATIENCE
    )

    def by_kind(documents: Any) -> list[str]:
        return sorted(json.dumps(document, sort_keys=True) for document in documents)

    assert by_kind(yaml.safe_load_all(kustomized.stdout)) == by_kind(overlay(name, *filter(None, [component])))


def test_the_numbers_are_set_as_the_page_says() -> None:
    page = (ROOT / "docs/fleet.md").read_text()
    (expression,) = re.findall(r'sed -E "(.*)" \|', page)
    expression = expression.replace("$count", "72").replace("$gpus", "4").replace("\\\\1", "\\1")
    text = yaml.safe_dump_all(overlay("device-plugin"))
    set_to = subprocess.run(["sed", "-E", expression], input=text, capture_output=True, text=True, check=True)
    job = job_of(list(yaml.safe_load_all(set_to.stdout)))
    assert (job["spec"]["completions"], job["spec"]["parallelism"]) == (72, 72)
    assert pod_of([job])["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] == 4


def test_the_logs_of_the_pods_merge(tmp_path: Path) -> None:
    container = pod_of(overlay("dra"))["containers"][0]
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


def gb200_pod() -> HostFacts:
    return in_container(rack(), "kubernetes")


def pod_without_uvm() -> HostFacts:
    facts = replaced(cuda_fails(healthy(), 999), "driver", modules=("nvidia",))
    return in_container(facts, "kubernetes")


@pytest.mark.parametrize(("rule", "facts"), [("DOC407", gb200_pod), ("DOC308", pod_without_uvm)])
def test_the_advice_in_a_pod_starts_no_container_of_docker(rule: str, facts: Callable[[], HostFacts]) -> None:
    (result,) = judged(rule, facts())
    assert result.fix is not None
    assert "docker" not in str(result.fix)
    assert all(isinstance(step, NoCommand) for step in result.fix.commands), result.fix
