"""Of several findings, the root, its confidence, and its consequences."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.support.hosts import cuda_fails, grace, healthy, hgx, kernel_fails, with_cpu_torch, without_gpu
from wheel_checks.facts.host.facts import HostFacts
from wheel_checks.facts.host.log.symptoms import symptoms
from wheel_checks.facts.host.probes import Counterfactual
from wheel_checks.model import CheckResult, Evidence, Outcome, Severity
from wheel_checks.rules.host.cause import Cause, Layer
from wheelproof.doctor.diagnosis import Diagnosis, diagnose, observed_symptoms

CAUSES = {
    "FABRIC": Cause("D01", Layer.FABRIC, ("cuda:802",)),
    "KERNEL": Cause("C08", Layer.KERNEL, ("cuda:*",)),
    "INFERRED": Cause("C22", Layer.KERNEL, ("cuda:802", "cuda:999"), certain=False),
    "VARIABLE": Cause("F01", Layer.VISIBILITY, ("cuda:100", "cuda:no-device")),
    "WHEEL": Cause("A01", Layer.WHEEL, ("torch:cpu-build", "torch:unavailable", "triton:missing")),
    "BUILD": Cause("A02", Layer.WHEEL, ("torch:cpu-build",)),
    "DRIVER-FOR-WHEEL": Cause("A05", Layer.WHEEL, ("torch:unavailable",)),
    "TRITON": Cause("H01", Layer.TRITON, ("kernel:failed",)),
    "SILENT": Cause("B02", Layer.FILES, ("torch:import",)),
}
PROOF = Counterfactual("CUDA_VISIBLE_DEVICES", "", before=(100, 0), after=(0, 1))


def found(rule: str, message: str = "", severity: Severity = Severity.ERROR) -> CheckResult:
    return CheckResult(rule, "a title", Outcome.FAIL, severity, message or f"because of {rule}")


def diagnosis(facts: HostFacts, *results: CheckResult | str) -> Diagnosis:
    return diagnose(facts, [found(r) if isinstance(r, str) else r for r in results], CAUSES)


def rules(results: tuple[CheckResult, ...]) -> list[str]:
    return [result.rule for result in results]


@pytest.mark.parametrize("facts", [healthy(), grace(), hgx(), without_gpu(healthy())])
def test_a_healthy_host_has_no_symptoms(facts: HostFacts) -> None:
    assert diagnosis(facts) == Diagnosis(())


def test_a_torch_for_the_cpu_is_right_where_there_is_no_gpu() -> None:
    facts = without_gpu(with_cpu_torch(healthy()))

    assert "torch:cpu-build" in symptoms(facts)
    assert observed_symptoms(facts) == ()


def test_the_one_finding_that_explains_the_symptom_is_the_root() -> None:
    found = diagnosis(cuda_fails(healthy(), 802), "FABRIC", "TRITON", "WHEEL")

    assert found.root
    assert found.root.rule == "FABRIC"
    assert found.cause == CAUSES["FABRIC"]
    assert found.unexplained == ()  # that torch sees no GPU follows


def test_of_two_that_explain_it_the_deeper_one_is_the_root() -> None:
    found = diagnosis(cuda_fails(healthy(), 802), "FABRIC", "KERNEL")

    assert found.root
    assert found.root.rule == "KERNEL"
    assert rules(found.consequences) == ["FABRIC"]


def test_what_was_observed_comes_before_what_was_concluded() -> None:
    found = diagnosis(cuda_fails(healthy(), 802), "INFERRED", "FABRIC")

    assert found.root
    assert found.root.rule == "FABRIC"
    assert rules(found.consequences) == ["INFERRED"]  # its layer is deeper, and a better explanation exists


def test_the_root_is_looked_for_where_the_chain_begins() -> None:
    facts = with_cpu_torch(cuda_fails(healthy(), 802))
    found = diagnosis(facts, "WHEEL", "FABRIC")

    assert found.root
    assert found.root.rule == "FABRIC"
    assert rules(found.others) == ["WHEEL"]  # a CPU build does not come from a fabric manager


def test_what_torch_cannot_do_follows_from_what_cuda_cannot() -> None:
    found = diagnosis(cuda_fails(healthy(), 802), "DRIVER-FOR-WHEEL", "FABRIC")

    assert rules(found.consequences) == ["DRIVER-FOR-WHEEL"]


def test_an_experiment_that_proves_a_variable_beats_every_layer() -> None:
    facts = replace(cuda_fails(healthy(), 100), counterfactuals=(PROOF,))
    found = diagnose(
        facts,
        [
            CheckResult("KERNEL", "", Outcome.FAIL, Severity.ERROR, "a module"),
            CheckResult("VARIABLE", "", Outcome.FAIL, Severity.ERROR, "CUDA_VISIBLE_DEVICES is empty"),
        ],
        CAUSES,
    )

    assert found.root
    assert (found.root.rule, found.confidence) == ("VARIABLE", "proven")
    assert found.proof == (Evidence("without CUDA_VISIBLE_DEVICES", "cuInit 0, 1 device (with it: 100)", ""),)
    assert rules(found.others) == ["KERNEL"]


def test_an_experiment_that_changes_nothing_proves_nothing() -> None:
    innocent = replace(PROOF, after=(100, 0))
    facts = replace(cuda_fails(healthy(), 100), counterfactuals=(innocent,))
    found = diagnosis(
        facts, "KERNEL", CheckResult("VARIABLE", "", Outcome.FAIL, Severity.ERROR, "CUDA_VISIBLE_DEVICES")
    )

    assert found.root
    assert found.root.rule == "KERNEL"


@pytest.mark.parametrize(
    ("rule", "code", "confidence"),
    [("FABRIC", 802, "proven"), ("KERNEL", 999, "certain"), ("INFERRED", 999, "likely")],
)
def test_how_sure_it_is(rule: str, code: int, confidence: str) -> None:
    """An error code with one meaning is a proof; a cause that fits any code was at least observed."""
    assert diagnosis(cuda_fails(healthy(), code), rule).confidence == confidence


def test_what_nothing_explains_is_reported_and_not_guessed() -> None:
    found = diagnosis(cuda_fails(healthy(), 719), "FABRIC", "SILENT")

    assert found.root is None
    assert found.unexplained == ("cuda:719",)  # the rest follows from it
    assert rules(found.others) == ["FABRIC", "SILENT"]


def test_what_explains_only_the_end_of_the_chain_is_no_root() -> None:
    found = diagnosis(cuda_fails(healthy(), 719), "DRIVER-FOR-WHEEL")

    assert found.root is None
    assert found.unexplained == ("cuda:719",)
    assert rules(found.others) == ["DRIVER-FOR-WHEEL"]


def test_a_root_does_not_hide_what_it_cannot_explain() -> None:
    facts = kernel_fails(with_cpu_torch(healthy()), "no compiler")
    found = diagnosis(facts, "BUILD")

    assert found.root
    assert found.unexplained == ("triton:missing",)


def test_a_finding_without_a_symptom_stands_for_itself() -> None:
    found = diagnosis(healthy(), "SILENT")

    assert found.root is None
    assert rules(found.others) == ["SILENT"]
    assert found.unexplained == ()


def test_two_findings_of_one_layer_do_not_follow_from_each_other() -> None:
    facts = cuda_fails(healthy(), 802)
    found = diagnosis(facts, found_twice("nccl"), found_twice("cudnn"))

    assert found.root
    assert found.root.message == "nccl"
    assert [result.message for result in found.others] == ["cudnn"]


def found_twice(message: str) -> CheckResult:
    return found("FABRIC", message)


def test_a_note_is_a_root_only_when_there_is_nothing_worse() -> None:
    facts = cuda_fails(healthy(), 802)
    note = found("KERNEL", severity=Severity.NOTE)

    with_error, alone = diagnosis(facts, note, "FABRIC"), diagnosis(facts, note)

    assert with_error.root
    assert with_error.root.rule == "FABRIC"
    assert alone.root
    assert alone.root.rule == "KERNEL"


def test_harmless_things_are_neither_cause_nor_consequence() -> None:
    harmless = found("KERNEL", "harmless: LD_LIBRARY_PATH is set, and loses", Severity.NOTE)
    diagnosed = diagnosis(cuda_fails(healthy(), 802), harmless)

    assert diagnosed.root is None
    assert diagnosed.harmless == (harmless,)


def test_passed_and_skipped_rules_say_nothing() -> None:
    results = [replace(found("FABRIC"), outcome=outcome) for outcome in (Outcome.PASS, Outcome.SKIP, Outcome.ERROR)]

    assert diagnose(cuda_fails(healthy(), 802), results, CAUSES).root is None
