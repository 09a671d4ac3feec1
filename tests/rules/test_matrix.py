"""A step that was not carried out is undecided; impossible comparisons of two cells are skipped with the reason."""

from __future__ import annotations

from tests.rules.matrix_cases import CPU, beside, cell, made
from tests.support.wheel_facts import judged
from wheel_checks.facts.kernels.facts import SmokeDocument
from wheel_checks.facts.matrix import Step, compare_code, machine_code
from wheel_checks.model import Evidence, Fix, Outcome, Unavailable


def test_a_step_that_was_not_carried_out_is_undecided_with_its_log() -> None:
    done = Step("resolve", "2026-11-20T09:00:00Z", 2.0)
    hung = Step(
        "import", failure=Unavailable("the cell timed out after 900 s", "--deadline gives it more"), log="/w/log"
    )
    (result,) = judged("MTX001", cell(steps=(done, hung)))

    assert (result.outcome, result.message) == (Outcome.ERROR, "import: the cell timed out after 900 s")
    assert (result.evidence, result.fix) == ((Evidence("log", "/w/log"),), Fix("--deadline gives it more"))


def test_a_cell_that_went_the_whole_way_passes() -> None:
    (result,) = judged("MTX001", cell(steps=(Step("resolve"), Step("import", kept=True))))

    assert result.outcome is Outcome.PASS


def test_what_there_was_nothing_of_is_skipped_with_its_reason() -> None:
    nothing = cell(wheel=Unavailable("not read"), imported=Unavailable("not imported"))
    other_triton = beside(("mm", "aa"), there=made(("mm", "bb"), triton="3.7.0"))
    other_gpus = beside(("mm", "aa"), there=made(("mm", "aa"), targets=("sm_103", "sm_90")))
    told = [
        ("MTX101", nothing, "not read"),
        ("MTX102", cell(), "the matrix declares no deviation for this cell"),
        ("MTX103", nothing, "not imported"),
        ("MTX104", cell(CPU), "torch is CPU only (2.11.0+cpu)"),
        ("MTX104", cell(targets=("gfx942",)), "the cell names no NVIDIA GPU"),
        ("MTX105", cell(), "the cell requests no smoke test, or did not reach it"),
        ("MTX107", cell(), "the cell requests none, or did not reach it"),
        ("MTX108", cell(), "the cell requests none, or did not reach it"),
        ("MTX106", cell(), "no kernels were compiled"),
        ("MTX106", cell(smoke={"compile": made(("mm", "aa"))}), "no other cell compiles the same kernels"),
        ("MTX106", other_gpus, "x86_64-cell compiles for other GPUs: sm_103, sm_90"),
        ("MTX106", other_triton, "Triton is 3.6.0 here, and 3.7.0 in x86_64-cell"),
    ]

    for rule, facts, reason in told:
        (result,) = judged(rule, facts)
        assert (result.rule, result.outcome, result.message) == (rule, Outcome.SKIP, reason)


def test_code_is_compared_function_by_function_whatever_the_order() -> None:
    here = machine_code(made(("mm", "b"), ("mm", "a"), ("norm", "c"), ("sum", "d")))
    there = machine_code(made(("mm", "a"), ("mm", "b"), ("norm", "x"), ("dot", "e")))
    assert not isinstance(here, Unavailable)
    assert not isinstance(there, Unavailable)
    compared = compare_code(here, there)

    assert [kernel for _, kernel, _, _ in compared.equal] == ["mm"]
    assert [kernel for _, kernel, _, _ in compared.different] == ["norm"]
    assert [kernel for _, kernel, _, _ in compared.here_only] == ["sum"]
    assert [kernel for _, kernel, _, _ in compared.there_only] == ["dot"]


def test_what_was_not_compiled_has_no_machine_code() -> None:
    nothing: SmokeDocument = made()

    assert machine_code(nothing) == Unavailable("the smoke test generated no machine code")
