"""Which doctor names the cause: broken installations by tool, in one run.

usage: python benchmarks/doctor.py [--only TEXT] [--keep FOLDER]

Each rival gets its requirements: it is installed into the broken environment (ours inspects it from outside), with a
driver of stubs that answers NVML, CUDA and `nvidia-smi`. "right" means that the cause was named, "wrong" that another
one was, "undecided" that the tool reports an unknown cause, "silent" that it names none. torch's collect_env reports
and does not diagnose: it is right when its report shows the cause. ``--keep`` keeps the output of the tools in a
folder, to check verdicts.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks.doctor_scenarios import SCENARIOS, TORCH, NotMadeError, Patient, Scenario

VERDICTS = ("right", "wrong", "undecided", "silent", "crashed", "hung")
DEADLINE = 90.0  # seconds after which a tool counts as hung
RIGHT, WRONG, UNDECIDED, SILENT, CRASHED, HUNG = VERDICTS


@dataclass(frozen=True)
class Ended:
    """The output and exit status of a tool."""

    text: str
    status: int
    seconds: float
    hung: bool = False


@dataclass(frozen=True)
class Tool:
    """``packages`` are its requirements in the environment; ``complains`` matches a named cause, ``admits`` an unknown
    one.
    """

    name: str
    packages: tuple[str, ...]
    command: Callable[[Patient], list[str]]
    complains: str = ""
    admits: str = ""

    def verdict(self, scenario: Scenario, ended: Ended) -> str:
        """Whether the tool named the cause."""
        if ended.hung:
            return HUNG
        if self.name == "wheelproof" and ended.text.startswith("{"):
            return ours(scenario, ended)
        broke = ended.status < 0 or "Traceback (most recent call last)" in ended.text or not ended.text.strip()
        if broke or self.name == "wheelproof":
            return CRASHED
        text = " ".join(ended.text.split())
        if re.search(scenario.words, text, re.IGNORECASE):
            return RIGHT
        if self.admits and re.search(self.admits, text):
            return UNDECIDED
        return WRONG if self.complains and re.search(self.complains, text) else SILENT


def ours(scenario: Scenario, ended: Ended) -> str:
    """By the root of the JSON report."""
    facts = json.loads(ended.text)["subjects"][0]["facts"]
    found = {facts["root"] or "healthy"}
    if not facts["root"]:
        found |= set(facts["others"])
    if scenario.truth & found:
        return RIGHT
    if facts["unexplained"] and not facts["root"]:
        return UNDECIDED
    return WRONG if facts["root"] or facts["others"] else SILENT


def module(*arguments: str) -> Callable[[Patient], list[str]]:
    """A command that is run by the patient's own interpreter; with -P as the program of a package is."""
    return lambda patient: [str(patient.python), *arguments]


def wheelproof(patient: Patient) -> list[str]:
    """Ours, which looks at the patient from outside, by its program as users start it."""
    program = Path(sys.executable).with_name("wheelproof")
    return [str(program), "doctor", "--python", str(patient.python), "--format", "json"]


TOOLS = (
    Tool("wheelproof", (), wheelproof),
    Tool(
        "env-doctor 0.3.5",
        ("env-doctor==0.3.5", "nvidia-ml-py"),
        module("-P", "-c", "from env_doctor.cli import main; main()", "check"),
        complains="❌ (?!tensorflow|jax)|⚠️ +No NVIDIA",
    ),
    Tool(
        "cuda-doctor 0.2.0",
        ("cuda-doctor==0.2.0",),
        module("-P", "-c", "from cuda_doctor.cli import main; main()", "diagnose"),
        complains="Cause: (?!UNKNOWN)",
        admits="Cause: UNKNOWN",
    ),
    Tool("torch.utils.collect_env", (), module("-m", "torch.utils.collect_env")),
)


def main() -> int:
    """Run everything and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="scenarios whose name contains this")
    parser.add_argument("--keep", type=Path, help="where to leave what the tools wrote")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="doctor-") as folder:
        root = Path(folder)
        driver = stub_driver(root / "driver")
        environments = {tool.name: prepared(root / f"base-{index}", tool) for index, tool in enumerate(TOOLS)}
        print("| scenario | " + " | ".join(tool.name for tool in TOOLS) + " |")
        print("| --- " * (len(TOOLS) + 1) + "|", flush=True)
        score: Counter[tuple[str, str]] = Counter()
        for scenario in (scenario for scenario in SCENARIOS if arguments.only in scenario.name):
            cells = []
            for tool in TOOLS:
                try:
                    ended = examined(tool, scenario, environments[tool.name], root / "patient", driver)
                except NotMadeError as reason:
                    cells.append(f"not made: {reason}")
                    continue
                verdict = tool.verdict(scenario, ended)
                score[tool.name, verdict] += 1
                cells.append(f"{verdict}, {ended.seconds:.1f} s")
                if arguments.keep:
                    keep(arguments.keep, scenario, tool, ended)
            print(f"| {scenario.name} | " + " | ".join(cells) + " |", flush=True)
        counts = [", ".join(f"{score[t.name, v]} {v}" for v in VERDICTS if score[t.name, v]) for t in TOOLS]
        print("| **in all** | " + " | ".join(counts) + " |")
    return 0


def stub_driver(folder: Path) -> Path:
    """The libraries of the driver, and an nvidia-smi that answers as they do."""
    from tests.support.stub_driver import build  # needs gcc

    build(folder)
    shutil.copy(Path(__file__).with_name("stub_nvidia_smi.py"), folder / "nvidia-smi")
    (folder / "nvidia-smi").chmod(0o755)
    return folder


def prepared(folder: Path, tool: Tool) -> Path:
    """An environment with torch for CUDA and the tool."""
    uv = [sys.executable, "-m", "uv"]
    subprocess.run([*uv, "venv", "--quiet", str(folder)], check=True)
    install = [*uv, "pip", "install", "--quiet", "--python", str(folder / "bin" / "python")]
    subprocess.run([*install, *TORCH, *tool.packages], check=True)
    return folder


def examined(tool: Tool, scenario: Scenario, environment: Path, folder: Path, driver: Path) -> Ended:
    """The output of a tool for a copy of the environment broken by the scenario."""
    patient = Patient(folder / "venv", folder / "work")
    patient.work.mkdir(parents=True)
    subprocess.run(["cp", "-al", str(environment), str(patient.environment)], check=True)
    try:
        added = scenario.harm(patient) or {}
        return started(tool.command(patient), variables(scenario, added, driver, patient), patient.work)
    finally:
        shutil.rmtree(folder)


def variables(scenario: Scenario, added: Mapping[str, str], driver: Path, patient: Patient) -> dict[str, str]:
    """The variables of this process without those for GPUs, with the scenario's."""
    clean = {n: v for n, v in os.environ.items() if not n.startswith(("CUDA", "NVIDIA", "LD_", "STUB_", "PYTHON"))}
    path = f"{patient.environment / 'bin'}:{added.get('PATH', clean['PATH'])}"
    changed = {**clean, **scenario.variables, **added, "VIRTUAL_ENV": str(patient.environment), "COLUMNS": "200"}
    if scenario.stub is None:
        return {**changed, "PATH": path}
    libraries = ":".join(filter(None, (added.get("LD_LIBRARY_PATH", ""), str(driver))))
    return {**changed, **scenario.stub, "PATH": f"{driver}:{path}", "LD_LIBRARY_PATH": libraries}


def started(command: list[str], environment: Mapping[str, str], folder: Path) -> Ended:
    """Run a tool, and kill it with all that it started when it does not end."""
    start = time.perf_counter()
    process = subprocess.Popen(
        command,
        env=environment,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    try:
        output, errors = process.communicate(timeout=DEADLINE)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return Ended("", -signal.SIGKILL, time.perf_counter() - start, hung=True)
    crash = errors if process.returncode and "Traceback" in errors else ""
    return Ended(output + crash, process.returncode, time.perf_counter() - start)


def keep(folder: Path, scenario: Scenario, tool: Tool, ended: Ended) -> None:
    """Write the output of a tool to a file."""
    folder.mkdir(parents=True, exist_ok=True)
    name = re.sub(r"\W+", "-", f"{scenario.name} {tool.name}")
    (folder / f"{name}.txt").write_text(f"exit code {ended.status}, {ended.seconds:.1f} s\n{ended.text}")


if __name__ == "__main__":
    sys.exit(main())
