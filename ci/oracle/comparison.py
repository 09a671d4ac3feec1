"""An answer of wheelproof against the truth: right, wrong or undecided, and why."""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

from ci.oracle.answers import CAPABILITIES, GPUS
from ci.oracle.summary import Truth, from_source, of_row

Outcome = Literal["right", "wrong", "undecided", "unchecked"]
_ORDER: tuple[Outcome, ...] = ("wrong", "undecided", "right")  # the worst first


@dataclass(frozen=True)
class Judgement:
    """The result of one row; ``why`` has a sentence for each thing that is wrong or undecided."""

    outcome: Outcome
    why: tuple[str, ...] = ()


def judge(answer: dict[str, Any], truth: dict[str, Any] | None, other: dict[str, Any] | None = None) -> Judgement:
    """Compare the file, the accelerator, the major versions of CUDA, and the code for each GPU.

    ``other`` is the truth about the same package on the other machine, to know a silent CPU build by.
    """
    if truth is None:
        return Judgement("unchecked", ("no truth is known",))
    if from_source(truth):
        return _without_wheel(answer)
    if answer["file"] != truth["wheel"]:
        outcome: Outcome = "wrong" if answer["exit"] != 3 else "undecided"
        return Judgement(outcome, (f"pip takes {truth['wheel']}, wheelproof {answer['file'] or answer.get('said')}",))
    facts = of_row(truth, sorted(set(CAPABILITIES.values())))
    found = [*_accelerator(answer, facts), *_cuda(answer, facts)]
    for gpu in GPUS[answer["machine"]]:
        found += _code(answer, facts, gpu)
    found += [*_exit(answer, facts), *_silent(answer, facts, other)]
    if not found:
        return Judgement("right")
    return Judgement(min((outcome for outcome, _why in found), key=_ORDER.index), tuple(why for _outcome, why in found))


def exit_code(judgements: Iterable[Judgement]) -> int:
    """1 when one is wrong, 3 when one is undecided, else 0."""
    found = {judgement.outcome for judgement in judgements}
    return 1 if "wrong" in found else 3 if found & {"undecided", "unchecked"} else 0


def totals(judgements: Iterable[Judgement]) -> Counter[str]:
    """How many rows came out how."""
    return Counter(judgement.outcome for judgement in judgements)


@cache
def _by_hand() -> dict[tuple[str, str, str], str]:
    """Decisions by people for packages whose own libraries differ, with the reason in the file."""
    return {(row["package"], row["machine"], row["capability"]): row["how"] for row in _decided()["row"]}


def _accelerator_by_hand(package: str) -> str:
    """A decision by people for a package without a section or needed library that shows it; "" for all others."""
    rows = _decided()["accelerator"]
    return next((row["is"] for row in rows if row["package"] == package), "")


@cache
def _decided() -> dict[str, list[dict[str, str]]]:
    return tomllib.loads(Path(__file__).with_name("by_hand.toml").read_text())


def _without_wheel(answer: dict[str, Any]) -> Judgement:
    """PASS is wrong if pip chooses no wheel of the newest release."""
    if answer["exit"] == 0:
        return Judgement("wrong", (f"pip takes no wheel, and wheelproof passes {answer['file']}",))
    return Judgement("right")


def _accelerator(answer: dict[str, Any], facts: Truth) -> list[tuple[Outcome, str]]:
    got, shown = answer["accelerator"], _accelerator_by_hand(answer["package"]) or facts.accelerator
    if got == shown or (shown == "none" and (got in {"cpu", "none", facts.loaded} or not facts.native)):
        return []
    if shown == "none" and got == "cuda" and facts.hinted:
        return []
    outcome: Outcome = "undecided" if got in {"", "unknown"} else "wrong"
    return [
        (outcome, f"accelerator: wheelproof says {got or 'not known'} ({answer['headline']}), content shows {shown}")
    ]


def _cuda(answer: dict[str, Any], facts: Truth) -> list[tuple[Outcome, str]]:
    got = {version.split(".")[0] for version in answer["cuda"]}
    shown = set(facts.cuda)
    if facts.accelerator != "cuda" or answer["accelerator"] != "cuda" or got == shown or (got and not shown):
        return []
    if not shown:
        return []
    outcome: Outcome = "undecided" if not got else "wrong"
    return [(outcome, f"CUDA: wheelproof says {sorted(got) or 'no version'}, sonames show {sorted(shown)}")]


def _code(answer: dict[str, Any], facts: Truth, gpu: str) -> list[tuple[Outcome, str]]:
    capability = CAPABILITIES[gpu]
    shown, got = _shown(answer, facts, capability), answer["runs"].get(gpu, "")
    if shown == "mixed":
        details = ", ".join(f"{path} {how}" for path, how in facts.libraries[capability].items())
        return [("undecided", f"{gpu}: own libraries differ, decide by hand; wheelproof says {got}: {details[:400]}")]
    if got in shown.split(" or ") or (shown == "no code" and got in {"", "none"}) or shown == "either":
        return []
    outcome: Outcome = "undecided" if got in {"", "unknown"} else "wrong"
    return [(outcome, f"{gpu}: wheelproof says {got or 'nothing'}, cuobjdump shows {shown}")]


def _shown(answer: dict[str, Any], facts: Truth, capability: str) -> str:
    """How the code runs by the truth, and by hand where libraries differ."""
    shown = facts.how[capability]
    by_hand = _by_hand().get((answer["package"], answer["machine"], capability), shown)
    return by_hand if shown == "mixed" else shown


def _exit(answer: dict[str, Any], facts: Truth) -> list[tuple[Outcome, str]]:
    """Exit code 0 is a proof: every GPU runs the code, or there is no code to run."""
    hows = {_shown(answer, facts, CAPABILITIES[gpu]) for gpu in GPUS[answer["machine"]]}
    if answer["exit"] == 0 and "none" in hows:
        return [("wrong", "exit code 0, and there is no code for a GPU that was asked for")]
    if answer["exit"] == 0 and facts.accelerator in {"rocm", "xpu"}:
        return [("wrong", f"exit code 0 for a GPU of NVIDIA, and content shows {facts.accelerator}")]
    if answer["exit"] == 3:
        return [("undecided", f"exit code 3: {'; '.join(answer['said'][:2])}")]
    if answer["exit"] == 1 and hows <= {"native", "jit", "native or jit"}:
        return [("wrong", f"exit code 1, and there is code for every GPU: {'; '.join(answer['said'][:2])}")]
    return []


def _silent(answer: dict[str, Any], facts: Truth, other: dict[str, Any] | None) -> list[tuple[Outcome, str]]:
    """A wheel without an accelerator, of a package that has one on the other machine, must not pass silently."""
    if facts.accelerator != "none" or facts.loaded or not other or not other["wheel"]:
        return []
    there = of_row(other, ()).accelerator
    if there == "none" or answer["exit"] == 1 or any(got.startswith("WHL203") for got in answer["said"]):
        return []
    return [("wrong", f"a silent CPU build is not named: the wheel for the other machine is {there}")]
