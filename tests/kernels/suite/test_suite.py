"""The suite distinguishes crash, hang and wrong result, continues after them, and can be repeated."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from kernels_smoke.suite import cli, registry
from kernels_smoke.suite.advice import shown
from kernels_smoke.suite.processes.silence import descendants
from tests.support.patience import has_ended, wait_until

PYTHON = os.environ.get("WHEELPROOF_KERNELS_PYTHON", "")
ROOT = Path(__file__).resolve().parents[3]


def smoke(*arguments: str, python: str = PYTHON, **environment: str) -> tuple[int, dict[str, Any]]:
    """The exit code and the document of one run."""
    done = subprocess.run(
        [python, "-m", "kernels_smoke", "--format", "json", *arguments],
        env=os.environ | {"PYTHONPATH": str(ROOT)} | environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout, parse_constant=pytest.fail)


@pytest.fixture(scope="module")
def run_with_faults(tmp_path_factory: pytest.TempPathFactory) -> tuple[int, dict[str, Any]]:
    """A run of each fault and of a sound kernel, without a seed; several tests look at it."""
    home = str(tmp_path_factory.mktemp("home"))
    return smoke("--device", "interpret", "--only", "faults,fused_add_rms_norm", "--patience", "2", HOME=home)


@pytest.mark.kernels
def test_crash_hang_and_wrong_result_are_distinguished_and_the_rest_still_runs(
    run_with_faults: tuple[int, dict[str, Any]],
) -> None:
    code, document = run_with_faults
    outcomes = {(record["kernel"], record["case"]): record["outcome"] for record in document["cases"]}
    assert code == 1
    assert document["verdict"] == "fail"
    assert {outcome for (kernel, _), outcome in outcomes.items() if kernel == "reads_out_of_bounds"} == {"crash"}
    assert {outcome for (kernel, _), outcome in outcomes.items() if kernel == "hangs"} == {"hang"}
    assert {outcome for (kernel, _), outcome in outcomes.items() if kernel == "is_wrong"} == {"wrong"}
    assert {outcome for (kernel, _), outcome in outcomes.items() if kernel == "fused_add_rms_norm"} == {"pass"}


@pytest.mark.kernels
def test_a_crash_comes_with_its_signal_and_its_last_words(run_with_faults: tuple[int, dict[str, Any]]) -> None:
    first = next(record for record in run_with_faults[1]["cases"] if record["kernel"] == "reads_out_of_bounds")
    assert first["message"] == "the process that ran it: it was killed by SIGSEGV"
    assert "Segmentation fault" in first["evidence"]["last words"]


@pytest.mark.kernels
def test_a_seed_repeats_the_inputs_and_without_one_they_are_new(run_with_faults: tuple[int, dict[str, Any]]) -> None:
    def errors(document: dict[str, Any]) -> list[float]:
        norms = (record for record in document["cases"] if record["kernel"] == "fused_add_rms_norm")
        return [record["outputs"]["normed"]["error"] for record in norms]

    def run(*arguments: str) -> list[float]:
        return errors(smoke("--device", "interpret", "--only", "norm", *arguments)[1])

    seeded = run("--seed", "7")
    assert seeded
    assert seeded == run("--seed", "7")
    assert run() != errors(run_with_faults[1])


@pytest.mark.kernels
def test_every_mutant_of_a_kernel_is_listed_with_the_case_that_caught_it() -> None:
    code, document = smoke("--device", "interpret", "--only", "fused_add_rms_norm", "--mutants")
    assert code == 0
    caught = [record for record in document["mutants"] if record["outcome"] == "caught"]
    assert len(caught) >= 5
    assert all(record["caught_by"] for record in caught)
    assert all(record["message"] for record in document["mutants"] if record["outcome"] == "skip")
    assert {record["outcome"] for record in document["mutants"]} <= {"caught", "skip"}


@pytest.mark.kernels
def test_a_mutant_that_shows_nothing_is_not_caught() -> None:
    code, document = smoke("--device", "interpret", "--only", "is_right", "--mutants", "--patience", "3")
    assert code == 1
    found = {record["mutant"]: (record["outcome"], record["caught_by"]) for record in document["mutants"]}
    assert found == {
        "wrong": ("caught", "first"),
        "dead": ("caught", "the end of its process"),
        "silent": ("caught", "the end of its process"),
        "killed by someone else": ("error", ""),
        "does not compile": ("error", ""),
        "the same": ("missed", ""),
    }


@pytest.mark.kernels
def test_mutants_of_a_kernel_that_is_wrong_itself_show_nothing() -> None:
    code, document = smoke("--device", "interpret", "--only", "is_wrong", "--mutants")
    assert code == 3
    (record,) = document["mutants"]
    assert (record["outcome"], record["caught_by"]) == ("error", "")
    assert record["message"].startswith("the kernel itself is not right: ")


def suite_that_hangs(output: Path) -> subprocess.Popen[bytes]:
    """A run that has passed a case, which ``output`` shows, and then hangs."""
    command = [PYTHON, "-m", "kernels_smoke", "--device", "interpret", "--only", "hangs,mul_sum_add"]
    command += ["--patience", "1000", "--format", "json", "--output", str(output)]
    suite = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_until(lambda: output.exists() and '"outcome": "pass"' in output.read_text().partition('"cases"')[2])
    return suite


@pytest.mark.kernels
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends children with their parent")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_what_is_interrupted_leaves_its_report_and_no_child(tmp_path: Path, number: signal.Signals) -> None:
    output = tmp_path / "report.json"
    with suite_that_hangs(output) as suite:
        left = descendants(suite.pid)
        assert len(left) >= 2
        suite.send_signal(number)
    killed = number == signal.SIGKILL
    assert suite.returncode == (-number if killed else 128 + number)
    report = json.loads(output.read_text())
    assert report["partial"] == ("the suite has not ended" if killed else f"interrupted by {number.name}")
    assert report["verdict"] == "undecided"
    assert {record["kernel"] for record in report["cases"] if record["outcome"] == "pass"} == {"mul_sum_add"}
    wait_until(lambda: all(map(has_ended, left)))


@pytest.mark.kernels
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends children with their parent")
def test_a_foreman_that_is_killed_takes_its_children_along() -> None:
    command = [PYTHON, "-m", "kernels_smoke", "--device", "interpret", "--only", "hangs", "--patience", "100"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as suite:
        foreman = wait_for_child(suite.pid)
        child = wait_for_child(foreman)
        os.kill(foreman, signal.SIGKILL)
        assert suite.wait(timeout=20) == 3  # long before the child's patience ends
    deadline = time.monotonic() + 20
    while (state := state_of(child)) not in {"", "Z"}:
        assert time.monotonic() < deadline, state
        time.sleep(0.05)


def wait_for_child(parent: int) -> int:
    """The first child of a process, as soon as it has one."""
    deadline = time.monotonic() + 60
    while not (children := Path(f"/proc/{parent}/task/{parent}/children").read_text().split()):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return int(children[0])


def state_of(process: int) -> str:
    """The letter of its state, such as Z for a zombie; nothing when it is gone."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return ""


def test_without_torch_it_could_not_check_and_says_what_finds_the_build_that_fits() -> None:
    code, document = smoke("--device", "interpret", python=sys.executable)
    assert code == 3
    torch = next(probe for probe in document["probes"] if probe["name"] == "torch")
    assert torch["outcome"] == "error"
    assert "not installed" in torch["message"]
    assert shown(torch["fix"][0]) == f"wheelproof doctor --python {sys.executable}"


def test_a_torch_that_breaks_on_import_is_not_one_that_is_missing(tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("raise ImportError('libcudart.so.13: cannot open shared object file')\n")
    code, document = smoke("--device", "interpret", python=sys.executable, PYTHONPATH=f"{ROOT}{os.pathsep}{tmp_path}")
    torch = next(probe for probe in document["probes"] if probe["name"] == "torch")
    assert code == 3
    assert "cannot be imported" in torch["message"]
    assert "libcudart.so.13" in torch["message"]


def test_a_torch_that_kills_the_interpreter_on_import_is_an_answer_with_its_signal(tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)\n")
    code, document = smoke("--device", "interpret", python=sys.executable, PYTHONPATH=f"{ROOT}{os.pathsep}{tmp_path}")
    assert code == 3
    assert "SIGSEGV" in document["message"]


@pytest.mark.kernels
@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--only", "nothing_like_it"), "no kernel and no family is called 'nothing_like_it'"),
        (("--compile-only",), "--compile-only needs a --target"),
        (("--target", "sm_90"), "--target is for --compile-only"),
        (("--level", "extreme"), "invalid choice"),
    ],
)
def test_wrong_usage_exits_with_2_and_says_what_is_wrong(arguments: tuple[str, ...], says: str) -> None:
    done = subprocess.run(
        [PYTHON, "-m", "kernels_smoke", *arguments],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert says in done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--patience", "0"], "--patience must be more than 0 and at most 1e+06, not 0"),
        (["--patience", "inf"], "--patience must be more than 0 and at most 1e+06, not inf"),
        (["--slowness", "-1"], "--slowness must be more than 0 and at most 1e+06, not -1"),
        (["--slowness", "nan"], "--slowness must be more than 0 and at most 1e+06, not nan"),
        (["--output", "/no/such/report.txt"], "--output: there is no folder /no/such"),
        (["--output", "/"], "--output: / is a folder"),
        (["--compile-only", "--target", "sm_90", "--mutants"], "choose one of the two"),
        (["--only", "scaled_mm,is_wron"], "no kernel and no family is called 'is_wron'"),
    ],
)
def test_options_that_make_no_sense_are_refused_before_anything_runs(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as end:
        cli.main(["--device", "interpret", *arguments])
    assert end.value.code == 2
    assert message in capsys.readouterr().err


def test_the_name_of_a_kernel_is_that_kernel_alone_and_a_beginning_is_no_fault_by_design() -> None:
    assert [entry.name for entry in registry.select(("scaled_mm",))] == ["scaled_mm"]
    assert [entry.name for entry in registry.select(("scaled",))] == ["scaled_mm", "scaled_mm_blockwise"]
    assert {entry.family for entry in registry.select(("r",))} == {"quantization"}
    assert {entry.family for entry in registry.select(("faults", "norm"))} == {"faults", "norm"}
    with pytest.raises(LookupError, match="'hang'"):
        registry.select(("hang",))


def test_a_report_replaces_a_file_whole_goes_through_a_link_and_into_a_pipe(tmp_path: Path) -> None:
    report, link, pipe = (tmp_path / name for name in ("report", "link", "pipe"))
    report.write_text("old")
    report.chmod(0o600)
    link.symlink_to(report)
    cli.write(str(link), "new")
    assert (link.is_symlink(), report.read_text(), report.stat().st_mode & 0o777) == (True, "new", 0o600)
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    cli.write(str(pipe), "through")
    assert (os.read(reader, 100), pipe.is_fifo()) == (b"through", True)
    os.close(reader)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "pipe", "report"]


@pytest.mark.parametrize("arguments", [["--output", "/dev/full"], []])
def test_a_report_that_cannot_be_written_is_no_finding(arguments: list[str]) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "kernels_smoke", "--device", "interpret", *arguments],
            cwd=ROOT, stdout=full, stderr=subprocess.PIPE, text=True, check=False, timeout=600,
        )  # fmt: skip
    assert done.returncode == 3
    assert done.stderr == "the report could not be written: No space left on device\n"


@pytest.mark.kernels
def test_the_report_is_json_also_where_an_error_is_infinite(run_with_faults: tuple[int, dict[str, Any]]) -> None:
    wrong = [record for record in run_with_faults[1]["cases"] if record["kernel"] == "is_wrong"]
    assert None in [output["error"] for record in wrong for output in record["outputs"].values()]


def test_listing_and_selecting_need_no_torch() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "kernels_smoke", "--list"],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "fused_add_rms_norm" in done.stdout
    code = "import sys, kernels_smoke.suite.cli; sys.exit(bool({'torch', 'triton', 'numpy'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0
