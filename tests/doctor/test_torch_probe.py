"""torch, imported in a child. Most tests import a module of that name that acts as a variable says."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.support.patience import PATIENCE, in_time
from tests.support.probing import probe
from tests.support.stub_driver import build, variables
from wheel_checks.facts.host.facts import HostFacts
from wheel_checks.facts.host.log.symptoms import symptoms
from wheel_checks.facts.host.probes import ChildEnd, KernelProbe, TorchProbe
from wheel_checks.model import Unavailable, Verdict
from wheelproof.doctor import children
from wheelproof.doctor.child_output import INSIDE
from wheelproof.doctor.diagnosis import diagnose
from wheelproof.doctor.probes import dangerous
from wheelproof.doctor.probes.dangerous import Answers
from wheelproof.doctor.verdict import answer_host

PYTHON = os.environ.get("WHEELPROOF_KERNELS_PYTHON", "")  # read now: tests run without it in their environment

# A variable controls a step: "hang", "crash", "exit", or the message of an exception.
ACT = """
import ctypes, os, time

def act(step):
    what = os.environ.get("FAKE_" + step, "")
    if what == "hang":
        time.sleep(600)
    if what == "crash":
        ctypes.string_at(0)
    if what == "exit":
        os._exit(7)
    if what:
        raise RuntimeError(what)
"""
TORCH = """
import os
import warnings
from act import act

act("IMPORT")
warnings.warn("Can't initialize NVML", UserWarning)
__version__ = "2.11.0+cu130"


class version:
    cuda, hip = "13.0", None


class cuda:
    def is_available():
        act("AVAILABLE")
        return "FAKE_INIT" not in os.environ

    def init():
        act("INIT")

    def device_count():
        return int(os.environ.get("FAKE_COUNT", 1))


class Numbers:
    def __getattr__(self, name):
        return lambda *_: self

    def cuda(self):
        act("COMPUTE")
        return self

    def to(self, device):
        if device == os.environ.get("FAKE_SLOW"):
            act("SLOW_GPU")
        return self

    def __mod__(self, other):
        return self

    __matmul__ = __sub__ = __mod__

    def item(self):
        return float(os.environ.get("FAKE_DIFFERENCE", 0))


def arange(*_):
    return Numbers()
"""
TRITON = """
import os
from act import act
print("a module may print", os.environ["TRITON_CACHE_DIR"])
act("TRITON")
"""
BUSY = "CUDA error: CUDA-capable device(s) is/are busy or unavailable"


@pytest.fixture
def modules(tmp_path: Path) -> Path:
    folder = tmp_path / "modules"
    folder.mkdir()
    for name, text in (("act", ACT), ("torch", TORCH), ("triton", TRITON)):
        (folder / f"{name}.py").write_text(text, encoding="utf-8")
    return folder


def ask(modules: Path, *, seconds: float = 60, **changed: str) -> Answers:
    return probe(variables(modules, PYTHONPATH=str(modules), **changed), seconds=seconds)


def torch(answers: Answers) -> TorchProbe:
    assert isinstance(answers.torch, TorchProbe)
    return answers.torch


def kernel(answers: Answers) -> KernelProbe:
    assert isinstance(answers.kernel, KernelProbe)
    return answers.kernel


def seen(answers: Answers) -> tuple[str, ...]:
    return symptoms(HostFacts(torch=answers.torch, kernel=answers.kernel))


def test_a_torch_that_works(modules: Path) -> None:
    answers = ask(modules)
    answer = torch(answers)

    assert (answer.imported, answer.version, answer.cuda) == (True, "2.11.0+cu130", "13.0")
    assert answer.path == str(modules / "torch.py")
    assert (answer.available, answer.devices, answer.computes, answer.init_error) == (True, 1, "", "")
    assert answer.warnings == ("Can't initialize NVML",)
    assert (answer.end.exit_code, answer.error, answer.trace, answer.failed_at) == (0, "", "", "")
    assert list(answer.steps)[:2] == ["import torch", "torch.cuda.is_available()"]
    assert seen(answers) == ("kernel:failed",)  # the module triton is not Triton


def test_nothing_is_written(modules: Path) -> None:
    before = sorted(modules.rglob("*"))

    ask(modules)

    assert sorted(modules.rglob("*")) == before


def test_an_import_that_fails_tells_what_and_where(modules: Path) -> None:
    (modules / "torch.py").write_text("import ctypes\nctypes.CDLL('libcudnn.so.9')\n", encoding="utf-8")

    answers = ask(modules)
    answer = torch(answers)

    message = "OSError: libcudnn.so.9: cannot open shared object file: No such file or directory"
    assert (answer.imported, answer.available, answer.error) == (False, None, message)
    assert f'File "{modules}/torch.py", line 2, in <module>' in answer.trace
    assert answers.kernel == Unavailable("torch did not reach that step")
    assert seen(answers) == ("torch:import",)


def test_a_module_that_exits_is_an_import_that_fails(modules: Path) -> None:
    (modules / "torch.py").write_text("raise SystemExit('no torch for you')\n", encoding="utf-8")

    assert torch(ask(modules)).error == "SystemExit: no torch for you"


def test_what_hides_torch_in_the_working_folder_is_not_imported(
    modules: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may be anybody's; that it hides torch is seen from the files (DOC208)."""
    for name in ("torch.py", "json.py", "sitecustomize.py"):
        (tmp_path / name).write_text(f"open({str(tmp_path / 'witness')!r}, 'a').write('{name}')\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)

    assert torch(probe(variables(modules, PYTHONPATH=f"{modules}::."), seconds=60)).imported
    assert not (tmp_path / "witness").exists()


def test_modules_next_to_the_programs_hide_nothing(modules: Path) -> None:
    """The programs are in a folder with names such as ``cuda``, which torch imports, too."""
    (modules / "torch.py").write_text("import importlib.util\nassert not importlib.util.find_spec('nvml')\n", "utf-8")

    assert "AssertionError" not in torch(ask(modules)).error


def test_an_import_that_hangs_is_ended_and_tells_where(modules: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def hang(seconds: float) -> Answers:
        monkeypatch.setattr(dangerous, "TORCH_STEP_SECONDS", seconds / 4)
        return ask(modules, seconds=dangerous.RESERVE + seconds, FAKE_IMPORT="hang")

    answers = in_time(
        hang, lambda answers: isinstance(answers.torch, TorchProbe) and "act.py" in answers.torch.trace, 1.0
    )
    answer = torch(answers)

    assert (answer.end.hang, answer.imported, answer.failed_at) == (True, False, "import torch")
    assert answer.trace.splitlines()[0] == f'File "{modules}/act.py", line 7 in act'
    assert f'File "{modules}/torch.py", line 6 in <module>' in answer.trace
    assert seen(answers) == ("torch:hang",)


def test_time_that_is_over_at_the_third_of_eight_gpus_is_no_hang(modules: Path) -> None:
    """The step had less than its own time: that it did not end proves nothing."""

    def slow(seconds: float) -> Answers:
        return ask(
            modules,
            seconds=dangerous.RESERVE + seconds,
            FAKE_COUNT="8",
            FAKE_SLOW="cuda:2",
            FAKE_SLOW_GPU="hang",
        )

    answers = in_time(slow, lambda answers: torch(answers).computed == 2, 1.0)
    answer = torch(answers)

    assert (answer.hurried, answer.end.hang, answer.failed_at) == (True, False, "a product on the GPU 2")
    assert (answer.devices, answer.computes) == (8, "")
    assert answers.kernel == Unavailable("torch did not reach that step")
    assert seen(answers) == ()
    facts = HostFacts(torch=answers.torch)
    verdict = answer_host(facts, diagnose(facts, ()), (), None)
    assert (verdict.verdict, verdict.reasons) == (Verdict.UNDECIDED, ("computed on 2 of 8",))


def test_time_that_is_over_before_the_gpu_is_no_hang(modules: Path) -> None:
    def slow(seconds: float) -> Answers:
        return ask(modules, seconds=dangerous.RESERVE + seconds, FAKE_AVAILABLE="hang")

    answers = in_time(slow, lambda answers: torch(answers).imported, 1.0)
    facts = HostFacts(torch=answers.torch)
    verdict = answer_host(facts, diagnose(facts, ()), (), None)

    assert (torch(answers).hurried, seen(answers)) == (True, ())
    assert "timed out during torch.cuda.is_available() (--timeout)" in verdict.reasons


def test_a_gpu_that_hangs_is_reported(modules: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dangerous, "TORCH_STEP_SECONDS", 2.0)

    answers = ask(modules, FAKE_COUNT="8", FAKE_SLOW="cuda:2", FAKE_SLOW_GPU="hang")

    assert (torch(answers).hurried, torch(answers).end.hang, torch(answers).computed) == (False, True, 2)
    assert seen(answers) == ("torch:hang",)


def test_a_step_that_hangs_does_not_use_up_the_time(modules: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def hang(seconds: float) -> Answers:
        monkeypatch.setattr(dangerous, "TORCH_STEP_SECONDS", seconds)
        return ask(modules, seconds=PATIENCE, FAKE_AVAILABLE="hang")

    answers = in_time(hang, lambda answers: torch(answers).failed_at.endswith("is_available()"))
    answer = torch(answers)

    assert (answer.end.hang, answer.imported, answer.available) == (True, True, None)
    assert answer.failed_at == "torch.cuda.is_available()"
    assert answers.kernel == Unavailable("torch did not reach that step")


def test_a_crash_tells_its_signal_its_step_and_its_place(modules: Path) -> None:
    answers = ask(modules, FAKE_IMPORT="crash")
    answer = torch(answers)

    assert (answer.end.signal, answer.failed_at, answer.imported) == ("SIGSEGV", "import torch", False)
    assert f'File "{modules}/act.py", line 9 in act' in answer.trace
    assert seen(answers) == ("torch:signal",)


def test_a_process_that_ends_by_itself_is_an_import_that_fails(modules: Path) -> None:
    answers = ask(modules, FAKE_IMPORT="exit")

    assert torch(answers).error.startswith("the process exited with code 7")
    assert seen(answers) == ("torch:import",)


def test_a_process_that_ends_by_itself_later_is_an_initialization_that_fails(modules: Path) -> None:
    answers = ask(modules, FAKE_AVAILABLE="exit")

    assert torch(answers).init_error.startswith("the process exited with code 7")
    assert torch(answers).failed_at == "torch.cuda.is_available()"
    assert seen(answers) == ("torch:init",)


def test_a_torch_that_sees_no_gpu_says_why(modules: Path) -> None:
    answers = ask(modules, FAKE_INIT="No CUDA GPUs are available")
    answer = torch(answers)

    assert (answer.available, answer.devices, answer.computes) == (False, 0, None)
    assert answer.init_error == "RuntimeError: No CUDA GPUs are available"
    assert answers.kernel == Unavailable("torch sees no GPU")
    assert seen(answers) == ("torch:unavailable", "torch:init")


@pytest.mark.parametrize(
    ("variable", "value", "says"),
    [
        ("FAKE_COMPUTE", BUSY, f"RuntimeError: {BUSY}"),
        ("FAKE_DIFFERENCE", "2", "the product of two matrices is wrong by 2"),
    ],
)
def test_a_gpu_that_cannot_compute(modules: Path, variable: str, value: str, says: str) -> None:
    answers = ask(modules, seconds=60, **{variable: value})

    assert torch(answers).computes == says
    assert "torch:compute" in seen(answers)


def test_a_kernel_without_triton(modules: Path) -> None:
    (modules / "triton.py").unlink()

    answers = ask(modules)

    assert kernel(answers).error == "ModuleNotFoundError: No module named 'triton'"
    assert "kernel.py" in kernel(answers).trace
    assert (torch(answers).trace, torch(answers).end.exit_code) == ("", 0)


def test_a_kernel_that_hangs_is_not_held_against_torch(modules: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dangerous, "TORCH_STEP_SECONDS", 1.0)

    answers = ask(modules, FAKE_TRITON="hang")

    assert (torch(answers).end.hang, torch(answers).computes) == (False, "")
    assert kernel(answers).end.hang
    assert f'File "{modules}/triton.py", line 5 in <module>' in kernel(answers).trace
    assert seen(answers) == ("kernel:hang",)


def test_a_kernel_that_crashes_is_not_held_against_torch(modules: Path) -> None:
    answers = ask(modules, FAKE_TRITON="crash")

    assert torch(answers).end.signal == ""
    assert kernel(answers).end.signal == "SIGSEGV"
    assert seen(answers) == ("kernel:signal",)


def test_triton_gets_an_empty_cache_next_to_the_users_that_vanishes(modules: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / ".triton" / "cache").mkdir(parents=True)
    (modules / "triton.py").write_text(
        "import os\nfolder = os.environ['TRITON_CACHE_DIR']\nraise OSError(folder, os.listdir(folder))\n", "utf-8"
    )

    error = kernel(ask(modules, HOME=str(home))).error

    assert f"{home}/.triton/cache/wheelproof-" in error
    assert error.endswith("[]")
    assert list((home / ".triton" / "cache").iterdir()) == []


def test_a_cache_that_does_not_exist_is_not_made(modules: Path, tmp_path: Path) -> None:
    (modules / "triton.py").write_text("import os\nraise OSError(os.environ['TRITON_CACHE_DIR'])\n", "utf-8")

    error = kernel(ask(modules, TRITON_CACHE_DIR=str(tmp_path / "deep" / "cache"))).error

    assert f"OSError: {tmp_path}/wheelproof-" in error
    assert not (tmp_path / "deep").exists()


def test_a_cache_that_cannot_be_written_is_left_to_triton(modules: Path) -> None:
    (modules / "triton.py").write_text("import os\nraise OSError(os.environ['TRITON_CACHE_DIR'])\n", "utf-8")

    assert kernel(ask(modules, TRITON_CACHE_DIR="/proc/cache")).error == "OSError: /proc/cache"


def test_torch_is_imported_without_a_gpu_too(modules: Path) -> None:
    """One that cannot be imported would not work with a GPU either."""
    answers = probe(variables(modules, PYTHONPATH=str(modules)), gpu=False)

    assert torch(answers).imported
    assert isinstance(answers.cuda, Unavailable)  # that there is no driver is not a fault anyway


def test_all_steps_start_at_once(modules: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each begins when all of them are there: one after another they would wait in vain."""
    together, run_child = threading.Barrier(3, timeout=PATIENCE), children.run_child

    def run(command: Sequence[str], **options: Any) -> tuple[ChildEnd, bytes]:
        together.wait()
        return run_child(command, **options)

    monkeypatch.setattr(dangerous, "run_child", run)
    monkeypatch.setattr(dangerous, "CUDA_SECONDS", 0.5)
    monkeypatch.setattr(dangerous, "NVML_SECONDS", 0.5)
    monkeypatch.setattr(dangerous, "TORCH_STEP_SECONDS", 0.5)
    monkeypatch.setattr(dangerous, "SUSPECTS", ())
    driver = build(tmp_path / "driver")

    answers = probe(
        variables(driver, PYTHONPATH=str(modules), STUB_HANG="cuInit", FAKE_AVAILABLE="hang"), seconds=PATIENCE
    )

    assert torch(answers).end.hang


@pytest.mark.kernels
def test_a_real_torch_for_the_cpu(tmp_path: Path) -> None:
    answers = probe(variables(tmp_path), python=PYTHON)
    answer = torch(answers)

    assert (answer.imported, answer.cuda, answer.available) == (True, "", False)
    assert (answer.init_error, answer.computes) == ("", None)  # it is not a fault of a build for the CPU
    assert answer.path.endswith("/torch/__init__.py")
    assert answers.kernel == Unavailable("torch sees no GPU")


@pytest.mark.kernels
@pytest.mark.parametrize(
    ("body", "says"), [("", "''"), ("tl.store(out + place, value)", "'the kernel wrote after the end of its output'")]
)
def test_the_kernel_by_tritons_interpreter(tmp_path: Path, body: str, says: str) -> None:
    """Right as it is; a store without its mask is seen."""
    text = (INSIDE / "kernel.py").read_text(encoding="utf-8")
    (tmp_path / "kernel.py").write_text(
        text.replace("    tl.store", f"    {body}\n    tl.store") if body else text, encoding="utf-8"
    )

    script = "import kernel, torch; print(repr(kernel.check(torch, 'cpu')))"
    environment = {**variables(tmp_path), "TRITON_INTERPRET": "1"}
    ended = subprocess.run(
        [PYTHON, "-B", "-c", script], env=environment, cwd=tmp_path, capture_output=True, check=True, text=True
    )

    assert ended.stdout.startswith(says)
