"""Kernels of other packages are found, judged, compiled and mutated as ours are; a broken file is an error."""

from __future__ import annotations

import ast
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from kernels_smoke.suite.own.mutations import mutations, spread, without_decorators
from tests.kernels.suite.test_suite import smoke
from tests.support.torch_worker import found

FILE = Path(__file__).with_name("own_kernels.py")
RIGHT = {"right", "with_gradients", "two_results", "changes_its_argument", "may_spoil", "lenient", "launches_nothing"}
RIGHT |= {"list_of_tensors"}
HEAD = "from kernels_smoke.suite.model import Function, case, here\n"
MINE = HEAD + "import torch\nKERNELS = [Function(torch.sin, lambda draw: {}, torch.sin, [here('one')], name='NAME')]\n"

# A file's content, and the message of its probe.
BROKEN = {
    "syntax": ("def f(:\n", "syntax.py cannot be imported: SyntaxError: "),
    "raising": (f"{HEAD}\n1 / 0\n", "raising.py cannot be imported: ZeroDivisionError: division by zero (line 3)"),
    "missing": ("import not_a_package\n", "missing.py cannot be imported: ModuleNotFoundError: No module named"),
    "leaving": ("import sys\nsys.exit(0)\n", "leaving.py cannot be imported: SystemExit: 0 (line 2)"),
    "exiting": ("import os\nos._exit(0)\n", "exiting.py: its import: it ended with exit code 0"),
    "aborting": ("import os\nos.abort()\n", "aborting.py: its import: it was killed by SIGABRT"),
    "endless": ("while True: pass\n", "endless.py: its import did not end within 4 s"),
    "empty": ("KERNELS = []\n", "empty.py has no list KERNELS of kernels_smoke.suite.model.Function"),
    "strange": ("KERNELS = [print]\n", "strange.py: KERNELS[0] is a builtin_function_or_method; expected a Function"),
    "nameless": (MINE.replace("NAME", "a b"), "nameless.py: KERNELS[0]: 'a b' is not a valid kernel name"),
    "caseless": (MINE.replace("[here('one')]", "None"), "caseless.py: KERNELS[0]: 'NoneType' object is not iterable"),
    "twice": (MINE.replace("]\n", "] * 2\n"), "twice.py has two kernels called NAME; give one of them another name="),
    "ours": (MINE.replace("NAME", "scaled_mm"), "has a kernel scaled_mm, which is the name of one of wheelproof"),
    "unknown_word": (MINE.replace("'one'", "'one', rows=3"), "KERNELS[0]: NAME: one: inputs() has no argument rows"),
}  # fmt: skip


def probes(document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {Path(p["name"]).stem: p for p in document["probes"] if p["name"].startswith("kernels ")}


@pytest.fixture(scope="module")
def interpreted() -> tuple[int, dict[str, Any]]:
    """Every function of the file, in the interpreter."""
    return smoke("--device", "interpret", "--kernels", str(FILE), "--only", "own_kernels")


@pytest.mark.kernels
def test_each_kind_of_function_is_judged(interpreted: tuple[int, dict[str, Any]]) -> None:
    code, document = interpreted
    outcomes = {record["kernel"]: record["outcome"] for record in document["cases"]}
    messages = {record["kernel"]: record["message"] for record in document["cases"]}
    assert code == 1
    assert {name for name, outcome in outcomes.items() if outcome == "pass"} == RIGHT
    assert messages["wrong_way_back"].startswith("gradient of x: relative error 0.25 ")
    assert messages["changes_it_wrongly"].startswith("x: relative error 0.333 ")
    assert messages["spoils"] == "the input x was changed"
    assert messages["leaves_a_hole"] == "out: 127 of 635 elements are not finite, the first in row 4"
    assert messages["unsteady"] == "out: relative error 0.5 instead of at most 1e-05, at a second launch"
    assert messages["unsteady_within_tolerance"] == "out: a second launch wrote other bits"
    assert messages["writes_behind"] == "memory around a tensor of (5, 127) was written"
    assert messages["operator_writes_behind"] == "memory around a tensor of (5, 127) was written"
    assert messages["flags_but_one"] == "out: 1 of 635 elements differ"
    assert messages["strict"].startswith("out: relative error 5e-06 instead of at most 1e-07")


@pytest.mark.kernels
def test_what_an_author_got_wrong_is_an_error_and_no_finding(interpreted: tuple[int, dict[str, Any]]) -> None:
    records = {record["kernel"]: record for record in interpreted[1]["cases"]}
    messages = {name: (records[name]["outcome"], records[name]["message"]) for name in records}
    assert messages["inputs_break"] == ("error", "inputs() raised KeyError: 'weights'")
    assert messages["reference_breaks"] == ("error", "reference() raised ZeroDivisionError: division by zero")
    assert messages["two_results_for_one"] == ("error", "the function gives out 0, out 1; the reference gives out")
    assert messages["raises"] == ("refused", "RuntimeError: no kernel image for (5, 127)")


@pytest.mark.kernels
def test_what_is_not_triton_is_not_interpreted_and_the_report_says_so(interpreted: tuple[int, dict[str, Any]]) -> None:
    (record,) = [record for record in interpreted[1]["cases"] if record["kernel"] == "not_triton"]
    assert record["outcome"] == "skip"
    assert record["message"] == "it is not written in Triton, so Triton's interpreter cannot run it"


@pytest.mark.kernels
def test_the_document_says_which_file_each_kernel_is_from(interpreted: tuple[int, dict[str, Any]]) -> None:
    (family,) = interpreted[1]["families"]
    assert (family["source"], family["family"]) == (str(FILE), "own_kernels")
    assert {kernel["name"]: kernel["triton"] for kernel in family["kernels"]}["not_triton"] is False


@pytest.mark.kernels
def test_broken_files_are_errors_with_their_names_and_the_others_still_run(tmp_path: Path) -> None:
    for name, (text, _) in BROKEN.items():
        (tmp_path / f"{name}.py").write_text(text)
    shutil.copy(FILE, tmp_path / "good.py")
    (tmp_path / "late.py").write_text(MINE.replace("NAME", "two_results"))
    (tmp_path / "folder.py").mkdir()
    os.mkfifo(tmp_path / "pipe.py")
    names = ["good", *BROKEN, "late", "folder", "pipe", "absent"]
    sources = [argument for name in names for argument in ("--kernels", str(tmp_path / f"{name}.py"))]
    code, document = smoke("--device", "interpret", "--only", "two_results", "--patience", "2", *sources)

    found = probes(document)
    assert code == 3
    assert {name: probe["outcome"] for name, probe in found.items()} == {
        name: "pass" if name == "good" else "error" for name in names
    }
    for name, (_, message) in BROKEN.items():
        assert message in found[name]["message"]
    late = f"has a kernel two_results, which is the name of one of {tmp_path}/good.py; none of it is run"
    assert found["late"]["message"] == f"{tmp_path}/late.py {late}"
    assert found["folder"]["message"].endswith("folder.py is not a regular file; expected a Python file")
    assert found["pipe"]["message"].endswith("pipe.py is not a regular file; expected a Python file")
    assert found["absent"]["message"].endswith("absent.py cannot be read: No such file or directory")
    assert "line 3" in found["raising"]["evidence"]["last words"]
    assert [record["outcome"] for record in document["cases"] if record["kernel"] == "two_results"] == ["pass"]


@pytest.mark.kernels
def test_entry_points_are_read_only_when_plugins_are_wanted(tmp_path: Path) -> None:
    shutil.copy(FILE, tmp_path / "plugged.py")
    (tmp_path / "mine-1.0.dist-info").mkdir()
    (tmp_path / "mine-1.0.dist-info/METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1.0\n")
    (tmp_path / "mine-1.0.dist-info/entry_points.txt").write_text("[wheelproof.kernels]\nmine = plugged\n")
    place = {"PYTHONPATH": f"{FILE.parents[3]}{os.pathsep}{tmp_path}"}
    options = ("--device", "interpret", "--only", "right,mul_sum_add")
    code, document = smoke(*options, "--plugins", **place)

    assert code == 0
    assert probes(document)["kernels entry point mine of mine (plugged)"]["outcome"] == "pass"
    assert {record["kernel"] for record in document["cases"]} == {"right", "mul_sum_add"}
    with pytest.raises(AssertionError, match="no kernel and no family is called 'right'"):
        smoke(*options, **place)


@pytest.mark.kernels
def test_a_faulty_plugin_is_named_in_time_and_the_others_still_run(tmp_path: Path) -> None:
    broken = ("endless", "raising", "exiting", "ours")
    for name in broken:
        (tmp_path / f"{name}.py").write_text(BROKEN[name][0])
    shutil.copy(FILE, tmp_path / "plugged.py")
    names = ["plugged", *broken]
    (tmp_path / "mine-1.0.dist-info").mkdir()
    (tmp_path / "mine-1.0.dist-info/METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1.0\n")
    points = "".join(f"{name} = {name}\n" for name in names)
    (tmp_path / "mine-1.0.dist-info/entry_points.txt").write_text(f"[wheelproof.kernels]\n{points}")
    place = {"PYTHONPATH": f"{FILE.parents[3]}{os.pathsep}{tmp_path}"}
    code, document = smoke("--device", "interpret", "--only", "right", "--plugins", "--patience", "2", **place)

    label = "entry point {0} of mine ({0})"
    found = {name: probe for name, probe in probes(document).items() if name.startswith("kernels entry point")}
    assert {name: probe["outcome"] for name, probe in found.items()} == {
        f"kernels {label.format(name)}": "pass" if name == "plugged" else "error" for name in names
    }
    messages = {name: found[f"kernels {label.format(name)}"]["message"] for name in names}
    assert messages["endless"] == f"{label.format('endless')}: its import did not end within 4 s"
    assert "raising cannot be imported: ZeroDivisionError: division by zero" in messages["raising"]
    assert messages["exiting"].startswith(f"{label.format('exiting')}: its import: it ended with exit code 0")
    assert messages["ours"].endswith(
        "has a kernel scaled_mm, which is the name of one of wheelproof; none of it is run"
    )
    assert code == 3
    assert [record["outcome"] for record in document["cases"]] == ["pass"]


@pytest.mark.kernels
def test_mutants_are_made_of_what_is_launched_and_scored() -> None:
    names = "right,not_triton,launches_nothing,spoils"
    code, document = smoke("--device", "interpret", "--kernels", str(FILE), "--only", names, "--mutants")
    by_kernel: dict[str, dict[str, str]] = {}
    for record in document["mutants"]:
        by_kernel.setdefault(record["kernel"], {})[record["mutant"]] = record["outcome"]

    right = by_kernel["right"]
    assert code == 3  # for the mutant that is not there, and the kernels of which none can be made
    assert (right.pop("no factor"), right.pop("not there")) == ("caught", "error")
    assert right == {
        "_scale_kernel: columns < width lets one more in, line 4": "caught",
        "_scale_kernel: columns < width leaves one out, line 4": "caught",
        "_scale_kernel: no mask of load(x + row * x_stride + columns), line 5": "missed",  # is not stored
        "_scale_kernel: no mask of store(out + row * out_stride + columns), line 6": "caught",
        "_scale_kernel: out_stride for x_stride, line 5": "caught",
        "_scale_kernel: x_stride for out_stride, line 6": "caught",
        "_scale_kernel: tl.program_id(0).to(tl.int64) in 32 bits, line 2": "skip",
    }
    assert by_kernel["not_triton"] == {"all": "skip"}
    assert by_kernel["launches_nothing"] == {"all": "error"}
    assert by_kernel["spoils"] == {"all": "error"}


@pytest.mark.kernels
def test_other_gpus_are_compiled_for_where_triton_compiles() -> None:
    options = ("--compile-only", "--target", "sm_100", "--kernels", str(FILE))
    code, document = smoke(*options, "--only", "right,not_triton,launches_nothing")
    outcomes = {(record["kernel"], record["outcome"]) for record in document["compiled"]}
    skipped = {record["name"]: record["message"] for record in document["probes"] if record["outcome"] == "skip"}

    assert code == 3
    assert outcomes == {("right", "pass"), ("launches_nothing", "error")}
    assert skipped == {
        "not_triton": "not_triton is not written in Triton, so it cannot be compiled for another GPU here"
    }


SOURCE = """\
    @triton.jit
    def kernel(x, n, stride, BLOCK: tl.constexpr):
        for block in range(0, tl.cdiv(n, BLOCK)):
            at = block.to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
            value = tl.load(x + at * stride, at < n, other=0.0)
            value = tl.where(value > 0.0, value, 0.0)
            tl.debug_barrier()
            tl.store(x + at * stride, value, mask=(at < n) & (block >= 1))
"""


def test_a_mutation_is_one_change_of_the_source() -> None:
    source = without_decorators(SOURCE)
    found = {mutation.name: mutation for mutation in mutations(source)}
    changed = {name: line(mutation.source, source) for name, mutation in found.items()}

    assert changed == {
        "range(0, tl.cdiv(n, BLOCK)) one round less, line 2": "for block in range(0, tl.cdiv(n, BLOCK) - 1):",
        "tl.cdiv(n, BLOCK) rounded down, line 2": "for block in range(0, tl.cdiv(n - BLOCK + 1, BLOCK)):",
        "block.to(tl.int64) in 32 bits, line 3": "at = block.to(tl.int32) * BLOCK + tl.arange(0, BLOCK)",
        "no mask of load(x + at * stride), line 4": "value = tl.load(x + at * stride)",
        "at < n lets one more in, line 4": "value = tl.load(x + at * stride, at - 1 < n, other=0.0)",
        "at < n leaves one out, line 4": "value = tl.load(x + at * stride, at + 1 < n, other=0.0)",
        "stride one too large, line 4": "value = tl.load(x + at * (stride + 1), at < n, other=0.0)",
        "no tl.debug_barrier(), line 6": "None",
        "no mask of store(x + at * stride), line 7": "tl.store(x + at * stride, value)",
        "at < n lets one more in, line 7": "tl.store(x + at * stride, value, mask=(at - 1 < n) & (block >= 1))",
        "at < n leaves one out, line 7": "tl.store(x + at * stride, value, mask=(at + 1 < n) & (block >= 1))",
        "block >= 1 lets one more in, line 7": "tl.store(x + at * stride, value, mask=(at < n) & (block + 1 >= 1))",
        "block >= 1 leaves one out, line 7": "tl.store(x + at * stride, value, mask=(at < n) & (block - 1 >= 1))",
        "stride one too large, line 7": "tl.store(x + at * (stride + 1), value, mask=(at < n) & (block >= 1))",
    }
    probe = line(found["at < n leaves one out, line 7"].probe, source, more=True)
    assert probe == "no_case_reaches_this"
    assert {name for name, mutation in found.items() if mutation.where == ("cuda",)} == {
        "block.to(tl.int64) in 32 bits, line 3",
        "no tl.debug_barrier(), line 6",
    }


def line(changed: str, source: str, *, more: bool = False) -> str:
    """The one line in which a changed source differs from the source, or that it has more."""
    before = ast.unparse(ast.parse(source)).splitlines()
    if more:
        (found,) = [each.strip() for each in changed.splitlines() if each not in before]
        assert [each for each in changed.splitlines() if each.strip() != found] == before
        return found
    (found,) = [new.strip() for old, new in zip(before, changed.splitlines(), strict=True) if old != new]
    return found


def test_many_mutations_are_spread_over_the_source() -> None:
    assert spread(list(range(10)), 20) == list(range(10))
    assert spread(list(range(10)), 5) == [0, 2, 4, 6, 8]


@pytest.mark.parametrize("source", ["x = 1", "lambda x: x", "def f(:"])
def test_what_is_no_function_has_no_mutations(source: str) -> None:
    with pytest.raises((ValueError, SyntaxError), match=r"."):
        list(mutations(source))


SPEED = """
from types import SimpleNamespace
from dataclasses import replace
from kernels_smoke.suite.own.sources import load
from kernels_smoke.suite.own.description import described
from kernels_smoke.suite.speed.speeds import run

kernels, answers = load({file!r}), []
functions = __import__("sys").modules[kernels["right"].module].KERNELS
for name, peer in {names}:
    function = next(each for each in functions if (each.name or each.call.__name__) == name)
    timed = replace(function, timed={{"rows": 8, "width": 1000}}, bar=1e9, peer=function.reference if peer else None)
    kernel = described(timed, kernels[name].module)
    gpu, rates = SimpleNamespace(read=dict), {{"bandwidth": 1e12, "bf16": 1e15, "fp8": None}}
    record = run(kernel, kernel.speeds[0], rates, 1, gpu, device="cpu")
    answers.append([name, record["outcome"], record["case"], record["bytes"], record["versus"], record["message"][:60]])
answer(answers)
"""


@pytest.mark.kernels
def test_what_is_timed_is_judged_and_counts_each_tensor_once() -> None:
    names = [("right", True), ("with_gradients", False), ("changes_its_argument", False), ("leaves_a_hole", False)]
    answers = found(SPEED.format(file=str(FILE), names=names))
    size = 8 * 1000 * 4

    assert [answer[:4] for answer in answers] == [
        ["right", "pass", "8 x 1000", 2 * size],
        ["with_gradients", "pass", "8 x 1000", 3 * size],  # the argument, the result, the gradient
        ["changes_its_argument", "pass", "8 x 1000", 2 * size],  # it is read, and written
        ["leaves_a_hole", "wrong", "8 x 1000", 0],
    ]
    assert [answer[4] for answer in answers] == ["its peer", "", "", ""]
    assert answers[3][5].startswith("what is timed is wrong")
