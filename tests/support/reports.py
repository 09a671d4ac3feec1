"""Reports to render: small ones to read, a hostile one, an empty one, a big one."""

from __future__ import annotations

from typing import Any

from wheel_checks.fixes.commands import Command
from wheel_checks.model import (
    CheckResult,
    Evidence,
    FailOn,
    Fix,
    Location,
    Outcome,
    Overview,
    Report,
    Severity,
    Subject,
    Table,
)

ESC = "\x1b[31mred\x1b[0m"
HOSTILE = (
    f"{ESC} [bold]x[/bold] <script>alert(1)</script> a|b `c` ``` & \"q\" 'q' ]]> ::error::x ##[error]y %0A,: "
    "\r\n::warning::z\n\x00\x08\ud800\udc80\ufffe\u202egpj.exe\u2028 {0} "
    "[link](https://example.test) @team é 漢 \U0001f525"
)
"""Everything at once that a wheel could put into a member name to attack a terminal, a page, a log or a parser."""
ARGUMENT = HOSTILE.replace("\x00", "").encode("utf-8", "ignore").decode()
"""The part of it that fits into an argument of a command."""


def result(
    rule: str = "WHL001",
    outcome: Outcome = Outcome.PASS,
    message: str = "all is well",
    *,
    title: str = "Names agree",
    severity: Severity = Severity.ERROR,
    **more: Any,
) -> CheckResult:
    return CheckResult(rule, title, outcome, severity, message, **{"seconds": 0.001, **more})


def wheel(
    version: str = "2.11.0",
    machine: str = "aarch64",
    python: str = "cp312",
    *,
    accelerator: str = "cuda",
    accelerator_version: str = "13.0",
    size: int = 419_731_115,
    results: tuple[CheckResult, ...] = (),
    name: str = "torch",
) -> Subject:
    platform = f"manylinux_2_28_{machine}"
    tag = f"{python}-{python}-{platform}"
    facts: dict[str, Any] = {
        "name": name,
        "version": version,
        "build": "",
        "tags": [tag],
        "size": size,
        "sha256": "ab" * 32,
        "accelerator": accelerator,
        "accelerator_version": accelerator_version,
        "local_version": f"{version}+cu130" if accelerator == "cuda" else f"{version}+cpu",
        "python": python,
        "platform": platform,
        "machine": machine,
        "bytes_read": 1_213_871,
        "requests": 3,
        "seconds": 0.21,
        "certainty": {"accelerator": "exact"},
    }
    if accelerator == "cuda":
        facts["cuda"] = accelerator_version
    headline = f"CUDA {accelerator_version}" if accelerator == "cuda" else "CPU only"
    return Subject(f"{name}-{version}-{tag}.whl", "wheel", headline, facts, results)


EXPECTED_CUDA = result(
    "WHL101",
    Outcome.FAIL,
    "expected CUDA, but this is a CPU wheel (2.10.0+cpu)",
    title="The wheel is for the expected accelerator",
    evidence=(
        Evidence("members", "no CUDA library among 12,204 members", "central directory"),
        Evidence("version.py", "2.10.0+cpu", "torch/version.py"),
        Evidence("requirements", "none of nvidia's is active on aarch64", "torch-2.10.0.dist-info/METADATA"),
    ),
    fix=Fix("ask for the first release with CUDA on aarch64", (Command(("pip", "install", "torch>=2.11")),)),
)
TOO_LARGE = result(
    "WHL501",
    Outcome.FAIL,
    "the wheel is 419.7 MB, above the limit of 400 MB",
    title="The wheel is within its size limit",
    severity=Severity.WARNING,
    evidence=(Evidence("size", "419,731,115 bytes"),),
)
BAD_MEMBER = result(
    "WHL301",
    Outcome.FAIL,
    "a member climbs out of the wheel",
    title="Member names are safe",
    severity=Severity.ERROR,
    location=Location(member="../evil.py", line=3),
)
SKIPPED = result("WHL401", Outcome.SKIP, "RECORD was not read (--depth links reads it)", title="RECORD is complete")
CRASHED = result(
    "WHL601",
    Outcome.ERROR,
    "the check itself crashed; please report this as a bug",
    title="Siblings agree",
    evidence=(Evidence("exception", "KeyError: 'x'", "siblings.py:12 in check"),),
)
PASSED = result("WHL001", Outcome.PASS, "Names agree")


def report(*subjects: Subject, fail_on: FailOn = FailOn.ERROR, **more: Any) -> Report:
    values = {"seconds": 0.41, "bytes_read": 1_214_003, "requests": 3, **more}
    return Report("verify", "0.1.0", "2026-11-20T09:00:00Z", subjects=subjects, fail_on=fail_on, **values)


def passing() -> Report:
    return report(wheel(results=(PASSED, SKIPPED)))


def mixed() -> Report:
    """Three subjects: a CPU wheel that should be CUDA, a large one with a warning, one with a crashed check."""
    return report(
        wheel(
            "2.10.0",
            accelerator="cpu",
            accelerator_version="",
            size=145_996_088,
            results=(PASSED, BAD_MEMBER, EXPECTED_CUDA, SKIPPED),
        ),
        wheel(results=(PASSED, TOO_LARGE, SKIPPED)),
        wheel(machine="x86_64", size=530_712_279, results=(PASSED, CRASHED)),
    )


def empty() -> Report:
    return report(seconds=0.02, bytes_read=0, requests=0)


def missing_wheel() -> Report:
    """A requirement for which the index has no wheel: hardly any facts."""
    problem = result("WHL901", Outcome.FAIL, "the index has no wheel for this target", title="A wheel exists")
    return report(Subject("torch==9.9 for aarch64", "requirement", "no wheel", {"machine": "aarch64"}, (problem,)))


def hostile() -> Report:
    """Every string that can come from a wheel is ``HOSTILE``; facts are odd as well."""
    bad = result(
        "WHL301",
        Outcome.FAIL,
        HOSTILE,
        title=HOSTILE,
        evidence=(Evidence(HOSTILE, HOSTILE, HOSTILE), Evidence("", "")),
        fix=Fix(HOSTILE, (Command(("rm", ARGUMENT)),)),
        location=Location(member=HOSTILE, line=1),
    )
    crashed = result("WHL302", Outcome.ERROR, HOSTILE, title=HOSTILE, location=Location(path=f"/tmp/{HOSTILE}", line=1))
    facts: dict[str, Any] = {
        "version": HOSTILE,
        "size": "large",
        "sha256": HOSTILE,
        "accelerator": HOSTILE,
        HOSTILE: [HOSTILE, {"a": HOSTILE}],
    }
    facts |= {"seconds": float("nan"), "machine": None, "tags": []}
    return report(Subject(HOSTILE, "wheel", HOSTILE, facts, (bad, crashed, result("WHL303", Outcome.SKIP, HOSTILE))))


def own_overview(text: str = "GPU, torch 2.11.0: 2 kernels correct") -> Report:
    """Two subjects, one with a finding, in a report with its own overview, in which every string is ``text``."""
    table = Table(text, ("kernel", "us"), (("norm", "130.0"), (text, "5.1")), frozenset({"us"}))
    subjects = (
        Subject("norm", "kernel", "12 cases", results=(PASSED,)),
        Subject("scaled_mm", "kernel", "9 cases", results=(TOO_LARGE,)),
    )
    overview = Overview(text, (table,), (text,))
    return report(*subjects, bytes_read=0, requests=0, overview=overview)


def forty() -> Report:
    """Every wheel of four releases for two architectures and five Pythons; aarch64 is CPU up to 2.10.0."""
    subjects = []
    for minor in (8, 9, 10, 11):
        for machine in ("x86_64", "aarch64"):
            for python in ("cp310", "cp311", "cp312", "cp313", "cp314"):
                cpu = machine == "aarch64" and minor < 11
                checks = [result(f"WHL{n}01", title=f"Rule number {n}") for n in range(2, 10)]
                if cpu:
                    checks.insert(0, EXPECTED_CUDA)
                if minor == 8 and python == "cp314":
                    checks.append(CRASHED)
                subjects.append(
                    wheel(
                        f"2.{minor}.0",
                        machine,
                        python,
                        accelerator="cpu" if cpu else "cuda",
                        accelerator_version="" if cpu else "13.0" if minor == 11 else "12.8",
                        size=146_000_000 if cpu else 530_000_000 + 1_000_000 * minor,
                        results=(*checks, SKIPPED),
                    )
                )
    return report(*subjects, seconds=2.31, bytes_read=48_113_004, requests=124)
