"""The report of a run for people: a table of cells, and one of their steps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from wheel_checks.facts.kernels.facts import Ending, SmokeDocument
from wheel_checks.facts.matrix import CellFacts, ImportProof, TestsRun, compare_code
from wheel_checks.model import Overview, Report, Table, Unavailable
from wheel_checks.phrases import plural

_GOOD = (Ending.PASS, Ending.SKIP)


def headline(cell: CellFacts) -> str:
    """Such as ``CUDA 13.0 (2.11.0+cu130), imported on aarch64, 12 functions for sm_90, sm_100``."""
    parts = ["the build of torch is unknown" if isinstance(cell.build, Unavailable) else cell.build.label]
    if isinstance(cell.imported, ImportProof):
        parts.append(f"imported on {cell.imported.machine}")
    parts += [_smoke_phrase(kind, document) for kind, document in cell.smoke.items()]
    return ", ".join(parts)


def overview(report: Report, cells: Sequence[CellFacts]) -> Overview:
    """The table of cells, the table of steps, and known or kept results."""
    verdicts = {subject.id: report.verdict_of(subject) for subject in report.subjects}
    passed = sum(verdict == "pass" for verdict in verdicts.values())
    headline = f"{passed} of {len(cells)} cells pass" if passed < len(cells) else f"all {len(cells)} cells pass"
    columns = ("cell", "torch", "GPU code", "imported on", "kernels", "machine code", "seconds", "verdict")
    rows = tuple((*_row(cell), str(verdicts[cell.id])) for cell in cells)
    states = {(number, len(columns) - 1): verdicts[cell.id] for number, cell in enumerate(cells)}
    names = tuple(dict.fromkeys(step.name for cell in cells for step in cell.steps))
    tables = (
        Table("Cells", columns, rows, frozenset({"seconds"}), states),
        Table("Seconds of each step", ("cell", *names), tuple(_step_row(cell, names) for cell in cells)),
    )
    return Overview(headline, tables, notes=tuple(_notes(cells)))


def _row(cell: CellFacts) -> tuple[str, ...]:
    build = "?" if isinstance(cell.build, Unavailable) else cell.build.label
    proof = cell.imported if isinstance(cell.imported, ImportProof) else None
    return (
        cell.id,
        build,
        " ".join(proof.gpu_code) or "none" if proof else "?",
        f"{proof.machine}, Python {proof.python}" if proof else "-",
        "; ".join(_smoke_phrase(kind, document) for kind, document in cell.smoke.items()) or "-",
        _code_phrase(cell),
        f"{sum(step.seconds for step in cell.steps if not step.kept):.0f}",
    )


def _step_row(cell: CellFacts, names: Iterable[str]) -> tuple[str, ...]:
    results = {
        step.name: "FAILED" if step.failure else f"{step.seconds:.1f}{' (kept)' * step.kept}" for step in cell.steps
    }
    return (cell.id, *(results.get(name, "-") for name in names))


def _smoke_phrase(kind: str, document: SmokeDocument) -> str:
    if document.compiled:
        good = sum(c.ending in _GOOD for c in document.compiled)
        targets = ", ".join(dict.fromkeys(c.target for c in document.compiled))
        count = f"{good} of {len(document.compiled)}" if good < len(document.compiled) else str(good)
        return f"{count} functions compile for {targets}"
    if not document.cases:
        return f"{kind}: {document.message}"
    kernels = {run.kernel for run in document.cases}
    bad = {run.kernel for run in document.cases if run.ending not in _GOOD}
    return f"{kind}: {len(kernels - bad)} of {len(kernels)} kernels right"


def _code_phrase(cell: CellFacts) -> str:
    here, there = cell.machine_code, cell.reference_code
    if isinstance(here, Unavailable):
        return "-"
    if isinstance(there, Unavailable) or not (compared := compare_code(here, there)).functions:
        return f"{len(here.digests)} functions"
    if len(compared.equal) == len(here.digests) == compared.functions:
        return f"equal to that of {there.machine}"
    return f"{len(compared.equal)} of {len(here.digests)} equal to {there.machine}"


def _notes(cells: Sequence[CellFacts]) -> Iterator[str]:
    for cell in cells:
        if cell.known is not None:
            yield f"{cell.id} is known to be {cell.known}: {cell.reason}"
        for wheel in cell.tested:
            yield f"{cell.id} tests {wheel.file}, sha256 {wheel.sha256}"
        yield from (f"{cell.id}: {_tests_phrase(tests)}" for tests in cell.tests if tests.cases)
        kept = [step for step in cell.steps if step.kept]
        if kept:
            names = ", ".join(step.name for step in kept)
            since = min(step.started for step in kept)
            yield f"{cell.id}: {names} kept since {since}; --fresh repeats everything"


def _tests_phrase(tests: TestsRun) -> str:
    """Such as ``14 tests in report.xml, 1 failed, 2 skipped; kept as /work/.../command-1.xml``."""
    counts = ((len(tests.failed), "failed"), (len(tests.cases) - tests.ran, "skipped"))
    parts = [f"{plural(len(tests.cases), 'test')} in {tests.file}", *(f"{n} {what}" for n, what in counts if n)]
    return f"{', '.join(parts)}; kept as {tests.path}"
