"""What does not stop an installation, a load or a kernel is a warning for an installer, in a line after the verdict."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Run, Wheelproof
from tests.support.range_server import RangeServer
from tests.support.simple_index import simple_index
from tests.support.wheels import WheelBuilder, torch_like

STARTS = WheelBuilder("starts").add("starts.pth", "import os; exec('1')\n")
STARTS_TOO = WheelBuilder("other").metadata(requires=["starts"]).add("other.pth", "import os; exec('2')\n")
TORCH = torch_like("cpu", "2.11.0", "x86_64").metadata()
INTO_TORCH = WheelBuilder("evil").metadata(requires=["torch"]).add("torch/_tensor.py", "")
ALONE = WheelBuilder("alone").add("torch/_tensor.py", "")
MODULE = WheelBuilder("nvidia_ml_py").add("pynvml.py", "")
FOLDER = WheelBuilder("pynvml").metadata(requires=["nvidia-ml-py"]).add("pynvml/__init__.py", "")
SOUND = WheelBuilder("soundfile").add("soundfile.py", "")
OLD_SOUND = WheelBuilder("PySoundFile").metadata(requires=["soundfile"]).add("soundfile.py", "")
LENIENT = WheelBuilder("lenient").metadata(requires=["PyYAML (>=5.1.*)"])
STRICT = WheelBuilder("strict").metadata(requires=["PyYAML ()"])
YAML = WheelBuilder("pyyaml", "6.0")
EVERY = (STARTS, STARTS_TOO, TORCH, INTO_TORCH, ALONE, MODULE, FOLDER, SOUND, OLD_SOUND, LENIENT, STRICT, YAML)
FILES = simple_index(*EVERY)
FILES |= {name.lower().replace("_", "-"): page for name, page in FILES.items() if name.startswith("/simple/")}
TARGET = ("--platform", "x86_64", "--python", "3.12")


def stack(wheelproof: Wheelproof, *arguments: str) -> Run:
    with RangeServer(FILES) as server:
        return wheelproof("stack", "--index-url", server.url("/simple"), *TARGET, *arguments)


def deciding(run: Run) -> dict[str, str]:
    """The severity of each finding of the security and metadata rules, by rule."""
    report: dict[str, Any] = json.loads(run.out)
    results = [result for subject in report["subjects"] for result in subject["results"]]
    return {r["rule"]: r["severity"] for r in results if r["outcome"] == "fail" and r["rule"] in ("SEC005", "WHL107")}


def test_code_at_start_up_has_a_line_after_the_verdict(wheelproof: Wheelproof) -> None:
    run = stack(wheelproof, "other")
    first, verdict, also, *_ = run.out.splitlines()
    assert (run.status, first[:8]) == (0, "installs")
    assert (verdict.startswith("PASS  other"), also) == (True, "also: 2 packages run code at start-up")
    run = stack(wheelproof, "starts", "--format", "json")
    assert json.loads(run.out)["summary"]["also"] == ["starts runs code at start-up"]
    assert stack(wheelproof, "other", "--fail-on", "warning").status == 1


def test_nothing_else_was_found(wheelproof: Wheelproof) -> None:
    assert "also" not in stack(wheelproof, "pyyaml").out


@pytest.mark.parametrize(
    ("package", "status", "severity"),
    [
        ("evil", 1, "error"),  # torch is in the stack, and has that package
        ("alone", 0, "warning"),  # torch is not
        ("pysoundfile", 1, "error"),  # the same module
        ("pynvml", 0, "warning"),  # a package and a module of one name
    ],
)
def test_files_in_a_package_of_the_stack_decide(
    wheelproof: Wheelproof, package: str, status: int, severity: str
) -> None:
    run = stack(wheelproof, package, "--format", "json")
    assert (run.status, deciding(run)) == (status, {"SEC005": severity})
    claims = {claim["name"]: claim["verdict"] for claim in json.loads(run.out)["summary"]["answers"][0]["claims"]}
    assert claims["installs"] == ("fail" if status else "pass")


def lock(folder: Path, server: RangeServer, *wheels: WheelBuilder) -> Path:
    rows = [
        f'[[package]]\nname = "{wheel.name}"\nversion = "{wheel.version}"\n'
        f'source = {{ registry = "{server.url("/simple")}" }}\nwheels = [{{ url = '
        f'"{server.url(f"/files/{wheel.file_name}")}", hash = "sha256:{digest(wheel)}" }}]\n'
        for wheel in wheels
    ]
    edges = ", ".join(f'{{ name = "{wheel.name}" }}' for wheel in wheels)
    root = f'[[package]]\nname = "mine"\nversion = "1"\nsource = {{ virtual = "." }}\ndependencies = [{edges}]\n'
    path = folder / "uv.lock"
    path.write_text("\n".join(['version = 1\nrevision = 3\nrequires-python = ">=3.11"\n', *rows, root]))
    return path


def digest(wheel: WheelBuilder) -> str:
    return hashlib.sha256(wheel.build()).hexdigest()


@pytest.mark.parametrize(
    ("wheel", "by_uv", "by_pip"), [(LENIENT, (0, "note"), (1, "error")), (STRICT, (1, "error"), (0, "note"))]
)
def test_the_installer_of_a_lock_is_the_one_that_is_meant(
    wheelproof: Wheelproof, tmp_path: Path, wheel: WheelBuilder, by_uv: tuple[int, str], by_pip: tuple[int, str]
) -> None:
    hashed = tmp_path / "requirements.txt"
    hashed.write_text("".join(f"{w.name}=={w.version} --hash=sha256:{digest(w)}\n" for w in (wheel, YAML)))
    with RangeServer(FILES) as server:
        where = ("--index-url", server.url("/simple"), *TARGET, "--format", "json")
        of_uv = wheelproof("stack", str(lock(tmp_path, server, wheel, YAML)), *where)
        of_pip = wheelproof("stack", "-r", str(hashed), *where)
        hashed.write_text(f"# This file was autogenerated by uv via the following command:\n{hashed.read_text()}")
        of_either = wheelproof("stack", "-r", str(hashed), *where)
    assert (of_uv.status, deciding(of_uv)) == (by_uv[0], {"WHL107": by_uv[1]})
    assert (of_pip.status, deciding(of_pip)["WHL107"]) == (by_pip[0], by_pip[1])
    assert (of_either.status, deciding(of_either)["WHL107"]) == (0, "warning")


def test_what_one_of_two_installers_refuses_is_a_warning_that_names_it(wheelproof: Wheelproof) -> None:
    run = stack(wheelproof, "lenient")
    assert (run.status, "cannot be parsed by pip" in run.out) == (0, True)
    assert "also: lenient states requirements that not every installer reads" in run.out


def test_a_wheel_for_a_target_is_for_an_installer(wheelproof: Wheelproof, tmp_path: Path) -> None:
    path = tmp_path / STARTS.file_name
    path.write_bytes(STARTS.build())
    assert wheelproof("verify", str(path)).status == 1
    run = wheelproof("verify", str(path), *TARGET)
    assert (run.status, "also: starts runs code at start-up" in run.out) == (0, True)
