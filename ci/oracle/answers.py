"""Run wheelproof on a package for a machine, and read its JSON report."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from typing import Any

from ci.oracle.summary import from_source

GPUS = {"x86_64": ("H100", "B200"), "aarch64": ("GH200", "GB200")}
CAPABILITIES = {"H100": "9.0", "GH200": "9.0", "B200": "10.0", "GB200": "10.0"}
_RULES = "WHL2,WHL6"  # the accelerator and the GPU code; how a wheel was packed is another question


def ask(package: str, machine: str, truth: dict[str, Any] | None) -> dict[str, Any]:
    """Judge the newest release, or the one of the truth, so that both read the same file."""
    version = truth["wheel"].split("-")[1] if truth and not from_source(truth) else ""
    requirement = f"{package}=={version}" if version else package
    options = ["--platform", machine, "--python", "3.12", "--gpu", ",".join(GPUS[machine])]
    command = [sys.executable, "-m", "wheelproof", "verify", requirement, *options, "--select", _RULES]
    run = subprocess.run([*command, "--format", "json"], capture_output=True, text=True, check=False)
    row: dict[str, Any] = {"package": package, "machine": machine, "requirement": requirement, "exit": run.returncode}
    try:
        return row | _read(json.loads(run.stdout))
    except ValueError:
        return row | {"file": "", "said": [run.stderr.strip()[-300:]]}


def _read(report: dict[str, Any]) -> dict[str, Any]:
    subject = next((subject for subject in report["subjects"] if subject["kind"] == "wheel"), None)
    results = [result for subject in report["subjects"] for result in subject["results"]]
    row: dict[str, Any] = {
        "file": "",
        "verdict": report["summary"]["verdict"],
        "bytes": report["summary"]["bytes_read"],
        "seconds": round(report["seconds"], 2),
        "said": [
            f"{result['rule']} {result['outcome']}: {result['message']}"
            for result in results
            if result["outcome"] == "error" or (result["outcome"] == "fail" and result["severity"] != "note")
        ],
    }
    if subject is None:
        return row
    facts = subject["facts"]
    code = facts.get("gpu_code") or {}
    return row | {
        "file": subject["id"],
        "version": facts.get("version", ""),
        "headline": subject.get("headline", ""),
        "accelerator": facts.get("accelerator", ""),
        "cuda": facts.get("cuda_majors") or re.findall(r"\d+(?:\.\d+)?", str(facts.get("cuda", ""))),
        "certainty": code.get("certainty", ""),
        "runs": {product["name"]: product["runs"] for product in code.get("products", [])},
        "why": {product["name"]: product["why"] for product in code.get("products", [])},
    }
