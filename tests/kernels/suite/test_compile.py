"""Compilation for GPUs that are not here: each fault, provoked with the real compilers, and sound code."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import pytest

from kernels_smoke.suite import registry
from kernels_smoke.suite.advice import shown

PYTHON = os.environ.get("WHEELPROOF_KERNELS_PYTHON", "")
ROOT = Path(__file__).resolve().parents[3]
PROGRAM = "faulty_compilations.py"
pytestmark = pytest.mark.kernels

Record = dict[str, Any]

SUBJECTS = (
    ("sound", "sm_90"),
    ("sound", "gfx942"),
    ("spills", "sm_90"),
    ("spills_as_recorded", "sm_90"),
    ("spills_in_a_case", "sm_90"),
    ("has_a_local_array", "sm_90"),
    ("takes_too_much_shared_memory", "sm_90"),
    ("multiplies_nothing", "sm_90"),
    ("multiplies_exactly", "sm_90"),
    ("small_tiles", "sm_90"),
    ("small_tiles", "sm_75"),
    ("second_function_multiplies_nothing", "sm_90"),
    ("fp8", "sm_80"),
    ("fp8", "sm_90"),
    ("fp8", "gfx942"),
    ("sound", "sm_999"),
    ("sound", "gfx9999"),
    ("bad_assembly", "sm_90"),
    ("three_cases_of_two_kinds", "sm_90"),
)


Run = tuple[tuple[tuple[str, str], ...], dict[str, str]]  # subjects, and more variables of the environment
Runs = list[tuple[int, list[Record]]]  # exit code and records of each
SOUND, SLOWER, DIES, WITHOUT_CUOBJDUMP = range(4)
MISSING = "/no/such/cuobjdump"


def compile_faulty(*runs: Run, cache: Path, folder: Path = ROOT) -> Runs:
    """Exit code and records of each run of ``faulty_compilations.py``, all of them children of one process.

    The program is taken from the copy of ours in ``folder``. Each run has its own cache below ``cache``.
    """
    requested = [
        (subjects, {"TRITON_CACHE_DIR": str(cache / str(number)), **environment})
        for number, (subjects, environment) in enumerate(runs)
    ]
    with (
        tempfile.TemporaryFile() as words
    ):  # where the compilers write must be a file that can be read, as in the suite
        done = subprocess.run(
            [PYTHON, str(folder / "tests/kernels/suite" / PROGRAM), json.dumps(requested)],
            env=os.environ | {"PYTHONPATH": str(folder)},
            stdout=subprocess.PIPE,
            stderr=words,
            check=True,
            timeout=300,
        )
    found: Runs = []
    records: list[Record] = []
    for record in map(json.loads, done.stdout.splitlines()):
        if record["kind"] == "exit":
            found.append((record["code"], records))
            records = []
        else:
            records.append(record)
    return found


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    """Every subject, and those that need a process or their own variables."""
    cache = tmp_path_factory.mktemp("cache")
    return compile_faulty(
        (SUBJECTS, {}),
        ((("sound", "sm_90"),), {"DISABLE_MMA_V3": "1"}),
        ((("sound", "sm_90"), ("unknown_register", "sm_90")), {}),
        ((("spills", "sm_90"),), {"TRITON_CUOBJDUMP_PATH": MISSING}),
        cache=cache,
    )


@pytest.fixture(scope="module")
def records(runs: Runs) -> dict[tuple[str, str], list[Record]]:
    """The "compiled" records of every subject."""
    code, all_records = runs[SOUND]
    assert code == 0
    found: dict[tuple[str, str], list[Record]] = {subject: [] for subject in SUBJECTS}
    for record in all_records:
        if record["kind"] == "compiled":
            found[record["kernel"], record["target"]].append(record)
    return found


Records = dict[tuple[str, str], list[Record]]


def the_fault(record: Record) -> Record:
    (fault,) = record["faults"]
    return dict(fault)


def test_what_is_sound_passes_with_its_figures(records: Records) -> None:
    (record,) = records["sound", "sm_90"]
    assert (record["outcome"], record["faults"], record["function"]) == ("pass", [], "_multiply_kernel")
    assert record["instructions"] == ["HGMMA"]
    assert 24 < record["registers"] <= 255
    assert (record["spill_bytes"], record["stack_bytes"], record["warps"]) == (0, 0, 4)
    assert record["shared_bytes"] == 2 * 128 * 64 * 2 * 3  # two tiles of bfloat16 in each of three stages
    assert len(record["sha256"]) == 64
    assert record["seconds"] > 0


def test_amd_is_compiled_too_and_has_matrix_instructions(records: Records) -> None:
    (record,) = records["sound", "gfx942"]
    assert record["outcome"] == "pass"
    assert all(name.startswith("v_mfma_f32_") for name in record["instructions"])
    assert record["instructions"]
    assert record["registers"] > 24


def test_fp8_that_the_target_multiplies_as_wider_numbers_is_reported(records: Records) -> None:
    (record,) = records["fp8", "gfx942"]
    assert record["outcome"] == "pass"
    converts, _, why = record["message"].partition(": ")
    assert converts.endswith("converts fp8 (e4m3) operands to 16 bits for gfx942")
    assert why == "its matrix units multiply e4m3fnuz, another format of 8 bits"
    assert records["fp8", "sm_90"][0]["message"] == records["sound", "gfx942"][0]["message"] == ""


def test_registers_that_do_not_suffice_spill(records: Records) -> None:
    (record,) = records["spills", "sm_90"]
    assert record["outcome"] == "fail"
    assert the_fault(record)["fault"] == "spills"
    assert record["registers"] <= 32
    assert record["spill_bytes"] >= 4 * (4096 // 32 - 32)  # a thread has 128 values to keep, and 32 registers


def test_spills_that_are_recorded_are_accepted(records: Records) -> None:
    (record,) = records["spills_as_recorded", "sm_90"]
    assert (record["outcome"], record["spill_bytes"] > 0) == ("pass", True)


def test_spills_count_where_speed_does(records: Records) -> None:
    timed, other = records["spills_in_a_case", "sm_90"]
    assert (timed["case"], timed["spill_bytes"]) == ("timed", 0)
    assert (other["case"], other["spill_bytes"] > 0, other["outcome"]) == ("case 1", True, "pass")


def test_a_local_array_is_no_spill(records: Records) -> None:
    (record,) = records["has_a_local_array", "sm_90"]
    assert (record["outcome"], record["spill_bytes"]) == ("pass", 0)
    assert record["stack_bytes"] in {32, 0}  # 0 since Triton 3.9, which keeps the array of the sine in registers


def test_more_shared_memory_than_a_block_can_have_is_found_without_a_launch(records: Records) -> None:
    (record,) = records["takes_too_much_shared_memory", "sm_90"]
    assert the_fault(record)["fault"] == "shared_memory"
    assert record["shared_bytes"] == 2 * 128 * 128 * 2 * 5
    assert "232,448" in the_fault(record)["message"]
    assert "H200" in the_fault(record)["message"]


def test_a_matrix_kernel_without_a_product_is_found(records: Records) -> None:
    (record,) = records["multiplies_nothing", "sm_90"]
    assert the_fault(record)["fault"] == "matrix_instructions"
    assert "no tl.dot" in record["message"]


def test_a_product_without_matrix_instructions_is_found(records: Records) -> None:
    (record,) = records["small_tiles", "sm_75"]  # Triton has no matrix instructions for bfloat16 there
    assert the_fault(record)["fault"] == "matrix_instructions"
    assert record["instructions"] == []


def test_matrix_instructions_are_not_asked_of_exact_products_small_tiles_and_other_functions(records: Records) -> None:
    (exact,) = records["multiplies_exactly", "sm_90"]
    (small,) = records["small_tiles", "sm_90"]
    product, other = records["second_function_multiplies_nothing", "sm_90"]
    assert [record["outcome"] for record in (exact, small, product, other)] == ["pass"] * 4
    assert [record["instructions"] for record in (exact, small, product, other)] == [[], ["HMMA"], ["HGMMA"], []]


def test_a_slower_matrix_instruction_than_the_target_has_is_found(runs: Runs) -> None:
    _, found = runs[SLOWER]
    (record,) = (record for record in found if record["kind"] == "compiled")
    assert the_fault(record)["fault"] == "matrix_instructions"
    assert record["message"] == (
        "a product of tiles of 128 x 128 x 64 (half) is made of HMMA; sm_90 has HGMMA, which is faster"
    )


def test_an_architecture_without_fp8_is_no_fault_of_the_installation(records: Records) -> None:
    assert {record["outcome"] for record in records["fp8", "sm_80"]} == {"skip"}
    assert the_fault(records["fp8", "sm_80"][0])["fault"] == "unsupported"
    assert records["fp8", "sm_80"][0]["message"] == "sm_80 (A100, A30) has no fp8 (e4m3) arithmetic"
    assert [record["instructions"] for record in records["fp8", "sm_90"]] == [["QGMMA"]]


@pytest.mark.parametrize("target", ["sm_999", "gfx9999"])
def test_an_architecture_that_the_compiler_does_not_know_is_one_finding_with_its_fix(
    target: str, records: Records
) -> None:
    (record,) = records["sound", target]
    assert record["outcome"] == "fail"
    assert the_fault(record)["fault"] == "unknown_to_ptxas"
    assert f"does not know {target}" in record["message"]
    assert shown(the_fault(record)["fix"][0]).endswith("-m pip install --upgrade triton")
    if target == "sm_999":
        assert "TRITON_PTXAS_BLACKWELL_PATH" in the_fault(record)["fix"][1]


def test_what_ptxas_refuses_is_reported_in_its_own_words(records: Records) -> None:
    record = records["bad_assembly", "sm_90"][0]
    assert (record["outcome"], the_fault(record)["fault"]) == ("fail", "refused")
    assert record["message"] == "it does not compile: Unknown modifier '.nonsense'"
    assert "Ptx assembly aborted" in record["evidence"]["compiler"]


def test_cases_that_are_specialised_alike_are_compiled_once(records: Records) -> None:
    found = records["three_cases_of_two_kinds", "sm_90"]
    assert [record["case"] for record in found] == ["case 0", "case 2"]
    assert found[0]["sha256"] != found[1]["sha256"]


def test_a_compiler_that_ends_the_process_is_blamed_on_the_right_case_and_one_that_goes_on_is_not_believed(
    runs: Runs,
) -> None:
    code, found = runs[DIES]
    if code:  # LLVM exits
        assert found[-1] == {"kind": "begin", "kernel": "unknown_register", "case": "timed", "target": "sm_90"}
    else:  # since Triton 3.9, LLVM writes an error, and Triton uses the output as code
        record = next(r for r in found if r["kind"] == "compiled" and r["kernel"] == "unknown_register")
        assert the_fault(record)["fault"] == "refused"
        assert "allocate output register" in record["message"]


def test_without_cuobjdump_the_compilation_is_reported_and_the_rest_is_not_claimed(runs: Runs) -> None:
    _, found = runs[WITHOUT_CUOBJDUMP]
    (record,) = (record for record in found if record["kind"] == "compiled")
    assert (record["outcome"], record["registers"], record["spill_bytes"]) == ("skip", None, None)
    assert MISSING in record["message"]


def test_the_machine_code_is_the_same_whatever_the_folder_and_the_cache(tmp_path: Path) -> None:
    copy = tmp_path / "another" / "folder"
    shutil.copytree(ROOT / "kernels_smoke", copy / "kernels_smoke", ignore=shutil.ignore_patterns("__pycache__"))
    (copy / "tests/kernels/suite").mkdir(parents=True)
    shutil.copy(ROOT / "tests/kernels/suite" / PROGRAM, copy / "tests/kernels/suite")

    def made(folder: Path, cache: Path, *line_infos: str) -> list[tuple[list[str], bool]]:
        """For each run the hashes, and whether the name of ``folder`` is in the machine code."""
        subjects = (("small_tiles", "sm_90"), ("small_tiles", "gfx942"))
        runs = [(subjects, {"TRITON_DISABLE_LINE_INFO": line_info}) for line_info in line_infos]
        answers = []
        for number, (_, found) in enumerate(compile_faulty(*runs, cache=cache, folder=folder)):
            own = cache / str(number)
            binaries = [path.read_bytes() for path in (*own.rglob("*.cubin"), *own.rglob("*.hsaco"))]
            named = any(str(folder).encode() in binary for binary in binaries)
            answers.append(([record["sha256"] for record in found if record["kind"] == "compiled"], named))
        return answers

    (here,) = made(ROOT, tmp_path / "one", "1")
    there, with_lines = made(copy, tmp_path / "two", "1", "0")
    assert here == there
    assert len(set(here[0])) == 2
    assert not here[1]
    assert with_lines[1]


def test_the_command_compiles_a_kernel_for_several_targets(tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    arguments = ("--only", "fused_add_rms_norm", "--target", "sm_90,gfx942,sm_999", "--format", "json")
    done = subprocess.run(
        [PYTHON, "-m", "kernels_smoke", "--compile-only", *arguments, "--output", str(report)],
        env=os.environ | {"PYTHONPATH": str(ROOT), "TRITON_CACHE_DIR": str(tmp_path / "cache")},
        check=False,
        timeout=300,
    )
    document = json.loads(report.read_text())
    outcomes = {(record["target"], record["outcome"]) for record in document["compiled"]}
    assert done.returncode == 1
    assert outcomes == {("sm_90", "pass"), ("gfx942", "pass"), ("sm_999", "fail")}
    assert not (tmp_path / "cache").exists()  # the user's cache is left alone


def test_precompiling_fills_the_cache_with_what_a_run_will_ask_for(tmp_path: Path) -> None:
    code = (
        "from kernels_smoke.suite.compiling.compilations import precompile\n"
        "precompile(lambda record: None, kernel='fused_add_rms_norm', target='sm_90', level='quick')\n"
    )
    environment = os.environ | {"PYTHONPATH": str(ROOT), "TRITON_CACHE_DIR": str(tmp_path)}
    subprocess.run([PYTHON, "-c", code], env=environment, check=True, timeout=300)
    assert list(tmp_path.rglob("_fused_add_rms_norm_kernel.cubin"))


def test_nothing_is_left_to_compile_when_a_large_case_runs(tmp_path: Path) -> None:
    code = """
from pathlib import Path
import sys
from kernels_smoke.suite import registry
from kernels_smoke.suite.compiling.compilations import fill_cache, precompile

precompile(lambda record: None, kernel="cross_entropy", target="sm_90", level="full")
before = list(Path(sys.argv[1]).rglob("*.cubin"))
kernel = registry.load(registry.entry("cross_entropy"))
large = [case for case in kernel.cases if not case.checked]
for case in large:
    fill_cache(kernel, case, "sm_90")
print(len(large), len(before), len(list(Path(sys.argv[1]).rglob("*.cubin"))))
"""
    environment = os.environ | {"PYTHONPATH": str(ROOT), "TRITON_CACHE_DIR": str(tmp_path)}
    command = [PYTHON, "-c", code, str(tmp_path)]
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True, timeout=300)
    large, before, after = map(int, done.stdout.split())
    assert large
    assert after == before > 0


def test_children_share_what_is_to_be_compiled_and_compile_nothing_twice(tmp_path: Path) -> None:
    code = """
import os, sys
from kernels_smoke.suite.compiling.compilations import precompile
from triton.runtime.cache import FileCacheManager

put_group = FileCacheManager.put_group

def noted(self, *arguments):
    with open(sys.argv[1], "a") as file:
        file.write(f"{os.getpid()} {self.key}\\n")
    return put_group(self, *arguments)

FileCacheManager.put_group = noted
for share in range(2):
    if os.fork() == 0:
        options = dict(target="sm_90", level="full", share=share, shares=2)
        precompile(lambda record: None, kernel="mul_sum_add", **options)
        os._exit(0)
for _ in range(2):
    assert os.wait()[1] == 0
"""
    noted = tmp_path / "noted"
    environment = os.environ | {"PYTHONPATH": str(ROOT), "TRITON_CACHE_DIR": str(tmp_path / "cache")}
    subprocess.run([PYTHON, "-c", code, str(noted)], env=environment, check=True, timeout=300)
    processes, keys = zip(*(line.split() for line in noted.read_text().splitlines()), strict=True)
    assert len(set(processes)) == 2
    assert len(set(keys)) == len(keys)
    command = [PYTHON, "-m", "kernels_smoke", "--compile-only", "--target", "sm_90", "--level", "full"]
    command += ["--only", "mul_sum_add", "--format", "json"]
    alone = subprocess.run(command, env=environment, check=True, capture_output=True, timeout=300)
    assert len(json.loads(alone.stdout)["compiled"]) == len(keys)


def test_a_process_that_warmed_up_spares_its_children_the_hashing_of_triton() -> None:
    code = (
        "from kernels_smoke.suite.compiling.ahead_of_time import warm_up\n"
        "from triton.runtime.cache import triton_key\n"
        "assert triton_key.cache_info().currsize == 0\n"
        "warm_up()\n"
        "assert triton_key.cache_info().currsize == 1\n"
    )
    subprocess.run([PYTHON, "-c", code], env=os.environ | {"PYTHONPATH": str(ROOT)}, check=True, timeout=300)


KEYS = """
import importlib, sys
from triton.runtime.jit import JITFunction
from kernels_smoke.suite import registry
for name in sys.argv[1:]:
    module = importlib.import_module(registry.load(registry.entry(name)).module)
    for function in vars(module).values():
        if isinstance(function, JITFunction) and function.fn.__module__ == module.__name__:
            print(name, function.fn.__name__, function.cache_key)
"""


def test_the_key_of_a_kernel_in_the_cache_does_not_depend_on_what_was_compiled_before_it() -> None:
    """Otherwise another process compiles again (Triton before 3.9 hashes helpers in order)."""
    names = [entry.name for entry in registry.ENTRIES]

    def keys(order: list[str]) -> set[str]:
        environment = os.environ | {"PYTHONPATH": str(ROOT)}
        command = [PYTHON, "-c", KEYS, *order]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        return set(done.stdout.splitlines())

    in_order = keys(names)
    assert len(in_order) >= len(names)
    assert in_order == keys(names[::-1])
