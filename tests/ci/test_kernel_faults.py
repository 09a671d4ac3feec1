"""The faults that are seeded in the kernels: each changes one line, and a compile error is not a catch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ci.kernel_faults import LIST, Fault, healthy_but_bad, read, result_of, rounds, seed_faults, summary

PACKAGE = Path(__file__).resolve().parents[2] / "kernels_smoke"
FAULT = Fault("norm", "norm.py", "rows from 2,000 on", "a", "b", ("user",))


def record(outcome: str, kernel: str = "norm", words: str = "") -> dict[str, Any]:
    known = {"kernel": kernel, "case": "wide", "outcome": outcome, "message": "far off"}
    return known | {"evidence": {"last words": words}}


def report(*cases: dict[str, Any], speeds: tuple[dict[str, Any], ...] = ()) -> dict[str, Any]:
    return {"cases": list(cases), "speeds": list(speeds)}


@pytest.mark.parametrize(
    ("name", "least"), [("kernel_faults", 40), ("kernel_faults_blind", 20), ("kernel_faults_held_back", 20)]
)
def test_every_fault_changes_one_place_of_its_kernel_and_two_of_a_round_do_not_meet(
    name: str, least: int, tmp_path: Path
) -> None:
    faults = read(LIST.with_name(f"{name}.toml"))
    assert len(faults) >= least
    assert len({fault.name for fault in faults}) == len(faults)
    for number, some in enumerate(rounds(faults)):
        folder = tmp_path / str(number)
        seed_faults(PACKAGE, folder, some)
        kernels = [name for fault in some for name in {fault.kernel, *fault.also}]
        assert len(kernels) == len(set(kernels))
        for fault in some:
            changed = (folder / "kernels_smoke" / fault.file).read_text()
            assert fault.text in changed
            assert "smid(" not in changed
            compile(changed, fault.file, "exec")


def test_a_text_that_does_not_stand_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=r"'nowhere' stands 0 times in fused_add_rms_norm.py"):
        seed_faults(PACKAGE, tmp_path, [Fault("norm", "norm/fused_add_rms_norm.py", "none", "nowhere", "b")])


@pytest.mark.parametrize(
    ("found", "says"),
    [
        (report(record("pass"), record("wrong")), "caught: wide: far off"),
        (report(record("crash", words="Segmentation fault")), "caught: wide: far off"),
        (report(record("crash", words="LLVM ERROR: no such instruction")), "refused: wide: far off"),
        (report(record("refused"), record("refused")), "refused: wide: far off"),
        (report(record("refused"), record("wrong")), "caught: wide: far off"),
        (report(record("pass"), speeds=(record("slow"),)), "missed"),
        (report(record("pass"), speeds=(record("wrong"),)), "caught: wide: far off"),
        (report(record("wrong", "other")), "missed"),
    ],
)
def test_what_becomes_of_a_fault(found: dict[str, Any], says: str) -> None:
    assert result_of(found, FAULT) == says


def test_what_is_wrong_without_a_fault_is_shown() -> None:
    found = report(record("wrong"), record("wrong", "user"), record("wrong", "other"))
    assert list(healthy_but_bad(found, [FAULT])) == ["other / wide: far off"]


def test_the_summary_counts_by_level_and_names_what_was_not_caught() -> None:
    other = Fault("mm", "mm.py", "one tile", "a", "b")
    found = {"full": {FAULT.name: "caught: wide", other.name: "missed"}}
    assert list(summary([FAULT, other], ("full", "deep"), found)) == [
        "level full: of 2 faults 1 caught, 1 missed",
        "  missed   mm: one tile",
        "level deep: of 2 faults none was tried",
    ]
