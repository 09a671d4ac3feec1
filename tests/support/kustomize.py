"""The part of kustomize that our folders use: resources, components, and patches as JSON Patch (RFC 6902).

documents = rendered(ROOT / "ci/kubernetes/overlays/dra")
documents = rendered(ROOT / "ci/kubernetes/overlays/dra", ROOT / "ci/kubernetes/components/privileged")

Where kubectl is installed, a test compares it with `kubectl kustomize`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml


def rendered(folder: Path, *components: Path) -> list[dict[str, Any]]:
    """The documents of a folder with a kustomization.yaml, and of these components."""
    kustomization = yaml.safe_load((folder / "kustomization.yaml").read_text())
    documents: list[dict[str, Any]] = []
    for name in kustomization.get("resources", ()):
        place = folder / name
        documents += rendered(place) if place.is_dir() else yaml.safe_load_all(place.read_text())
    for component in [*(folder / name for name in kustomization.get("components", ())), *components]:
        _patch(documents, yaml.safe_load((component / "kustomization.yaml").read_text()))
    _patch(documents, kustomization)
    return documents


def _patch(documents: list[dict[str, Any]], kustomization: dict[str, Any]) -> None:
    for patch in kustomization.get("patches", ()):
        target = patch["target"]
        (document,) = (d for d in documents if (d["kind"], d["metadata"]["name"]) == (target["kind"], target["name"]))
        for operation in yaml.safe_load(patch["patch"]):
            _apply(document, operation)


def _apply(document: Any, operation: dict[str, Any]) -> None:
    *path, last = (part.replace("~1", "/").replace("~0", "~") for part in operation["path"][1:].split("/"))
    place = document
    for part in path:
        place = place[int(part)] if isinstance(place, list) else place[part]
    if isinstance(place, list):
        assert (operation["op"], last) == ("add", "-"), operation
        place.append(operation["value"])
        return
    assert operation["op"] in {"add", "replace"}, operation
    assert operation["op"] == "add" or last in place, operation
    place[last] = operation["value"]
