"""Which environments --fix leaves to their owners, its message, and causes that bring a fault back."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.hosts import healthy, replaced
from wheel_checks.facts.host.facts import HostFacts
from wheel_checks.facts.host.software import IndexSetting
from wheel_checks.fixes.commands import Command, Export, NoCommand, Options, Pipe, Step, Unset, WriteFile
from wheel_checks.fixes.goal import Goal
from wheel_checks.model import CheckResult, Fix, Outcome, Severity, Unavailable
from wheelproof.doctor.diagnosis import Diagnosis
from wheelproof.doctor.repair.permission import refusal
from wheelproof.doctor.repair.project_files import bring_it_back
from wheelproof.doctor.repair.session import Session
from wheelproof.doctor.repair.why_not import why_not


@pytest.fixture
def host(tmp_path: Path) -> HostFacts:
    """A healthy host whose environment is a folder of this user."""
    site = tmp_path / "env" / "lib" / "python3.12" / "site-packages"
    site.mkdir(parents=True)
    return replaced(healthy(), "interpreter", prefix=str(tmp_path / "env"), purelib=str(site))


def test_a_virtual_environment_of_this_user_may_be_changed(host: HostFacts) -> None:
    assert refusal(host) == ""


def test_an_environment_of_another_is_left_to_that_user(host: HostFacts, monkeypatch: pytest.MonkeyPatch) -> None:
    own = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: own + 4242)

    message = refusal(host)
    assert message.startswith(f"{host.interpreter.prefix} belongs to ")  # type: ignore[union-attr]  # it is known
    assert "wheelproof doctor --python" in message
    assert message.endswith("--fix")


def test_a_read_only_environment_is_left(host: HostFacts, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)

    assert refusal(host).endswith("cannot be written: it is read-only here")


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"prefix": "/usr", "base_prefix": "/usr", "externally_managed": True}, "(EXTERNALLY-MANAGED)"),
        ({"prefix": "/usr/local", "base_prefix": "/usr/local"}, "/usr/local is not a virtual environment"),
        ({"fault": "it hangs"}, "does not run"),
        ({"prefix": "/dev/null/env"}, "cannot be read"),
    ],
)
def test_no_other_python_is_changed(host: HostFacts, fields: dict[str, object], says: str) -> None:
    assert says in refusal(replaced(host, "interpreter", **fields))
    assert refusal(replace(host, interpreter=Unavailable("it hangs"))) == "the interpreter is unknown"


def test_what_conda_keeps_account_of_is_left_to_conda(host: HostFacts, tmp_path: Path) -> None:
    (tmp_path / "env" / "conda-meta").mkdir()

    assert "only conda may change it" in refusal(host)
    assert "only conda may change it" in refusal(replaced(healthy(), "installed", conda={"pytorch": "cuda"}))


@pytest.mark.parametrize(
    ("step", "reason"),
    [
        (Unset(("CUDA_VISIBLE_DEVICES",)), "it sets something in your shell: unset CUDA_VISIBLE_DEVICES"),
        (Export("TRITON_CACHE_DIR", "/tmp/triton"), "it sets something in your shell"),
        (Pipe((("dmesg",), ("grep", "xid"))), "it needs a shell"),
        (WriteFile("/etc/modprobe.d/uvm.conf", ("options",)), "it writes a file"),
        (Options(("docker", "run"), ("--gpus", "all")), "it changes your own command"),
        (NoCommand("the path is unknown"), "no command is safe to run"),
        (Command(("sudo", "reboot")), "it needs root: sudo reboot"),
        (Command(("uv", "pip", "install", "x"), note="else"), "it requires a choice"),
        (Command(("uv", "pip", "install", "--no-binary=x", "x")), "it builds from source, which runs code"),
        (
            Command(("uv", "pip", "install", "--torch-backend=xpu", "torch==2.11.0")),
            "this kind of install is not supported",
        ),
        (Command(("mv", "a", "b")), "it changes more than the packages of this environment: mv a b"),
    ],
)
def test_why_a_fix_without_a_goal_is_not_run(step: Step, reason: str) -> None:
    assert why_not(found("DOC601", Fix("", (step,))), healthy()).startswith(
        f"--fix does not run the fix of DOC601: {reason}"
    )


def found(rule: str, fix: Fix | None = None, severity: Severity = Severity.ERROR) -> CheckResult:
    return CheckResult(rule, "", Outcome.FAIL, severity, "", fix=fix)


def session(diagnosis: Diagnosis, facts: HostFacts | None = None) -> Session:
    return Session(facts or healthy(), diagnosis, {}, Path("/nonexistent"))


def test_nothing_is_planned_without_a_goal() -> None:
    hidden = session(Diagnosis(("cuda:100",), found("DOC601", Fix("", (Unset(("X",)),)))))
    nothing = session(Diagnosis(()))

    assert (hidden.plan(), nothing.plan()) == (None, None)
    assert hidden.notes == ["--fix does not run the fix of DOC601: it sets something in your shell: unset X"]
    assert nothing.notes == ["nothing to fix"]


def test_a_refused_environment_gets_no_plan() -> None:
    system = replaced(healthy(), "interpreter", prefix="/usr", base_prefix="/usr")
    one = session(Diagnosis(("torch:import",), found("DOC202", Fix("", (), Goal(intact=("torch",))))), system)

    assert one.plan() is None
    assert one.notes == ["--fix changes nothing: /usr is not a virtual environment"]


@pytest.mark.parametrize(
    ("after", "says"),
    [
        (Diagnosis(("torch:import",), found("DOC202")), "DOC202 is still found"),
        (Diagnosis((), others=(found("DOC202", severity=Severity.NOTE),)), ""),
        (Diagnosis(("torch:import",), found("DOC203")), ""),  # another cause comes to light
        (Diagnosis(("torch:import",), replace(found("DOC202"), message="of another")), ""),
        (Diagnosis(("torch:missing",), found("DOC002")), "torch now fails earlier: torch:missing"),
        (Diagnosis(("kernel:failed",)), ""),
    ],
)
def test_whether_a_repair_made_anything_better(after: Diagnosis, says: str) -> None:
    before = Diagnosis(("torch:import",), found("DOC202", Fix("", (), Goal(intact=("torch",)))))

    assert session(before).judge(after) == says


def test_project_files_that_bring_a_cpu_build_back_are_named(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[[tool.uv.index]]\nname = "x"\nurl = "https://u:secret@x.org/whl/cpu"\n')
    (tmp_path / "uv.toml").write_text('torch-backend = "cpu"\n')
    (tmp_path / "requirements-dev.txt").write_text("numpy\ntorch==2.11.0+cpu\n")
    (tmp_path / "requirements.txt").write_text("torch==2.11.0\n")
    os.mkfifo(tmp_path / "uv.lock")
    setting = IndexSetting("pip", "index", "https://x.org/whl/cpu", "PIP_INDEX_URL")
    message = list(bring_it_back(replace(healthy(), indexes=(setting,)), tmp_path))

    assert message[0] == "PIP_INDEX_URL still selects CPU builds (https://x.org/whl/cpu): correct it"
    assert [line.partition(" ")[0] for line in message[1:]] == [
        f"{tmp_path}/pyproject.toml:3",
        f"{tmp_path}/requirements-dev.txt:2",
        f"{tmp_path}/uv.toml:1",
    ]
    assert "secret" not in " ".join(message)
