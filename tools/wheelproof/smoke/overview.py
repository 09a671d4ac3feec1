"""The run for people: one sentence with the verdict, a table of every kernel, and how to repeat it."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from wheel_checks.commands import in_words
from wheel_checks.facts.kernels.facts import (
    COMPILE,
    INTERPRET,
    MUTANTS,
    CaseRun,
    Compilation,
    Ending,
    KernelFacts,
    NoDocument,
    SmokeDocument,
    SpeedRun,
    TargetFacts,
)
from wheel_checks.facts.kernels.gpus import Calibration, GpuFacts, Rates
from wheel_checks.model import Overview, Table
from wheel_checks.phrases import plural, summarised
from wheelproof.smoke.request import SmokeRequest

MOST_MISSED = 3  # mutants that a row names
_GOOD = (Ending.PASS, Ending.SKIP)


def overview(
    request: SmokeRequest,
    outcome: SmokeDocument | NoDocument,
    kernels: Sequence[KernelFacts],
    targets: Sequence[TargetFacts],
) -> Overview:
    """Everything but the findings."""
    if isinstance(outcome, NoDocument):
        return Overview(f"{request.python}: {outcome.what}")
    result = _compiled_phrase(targets) if outcome.mode == COMPILE else _run_phrase(outcome, kernels)
    if outcome.mode == MUTANTS:
        result = _mutants_phrase(outcome, kernels)
    of_kernels = _mutant_table if outcome.mode == MUTANTS else _kernel_table
    tables = [
        *([_gpu_table(outcome, kernels)] if len(outcome.environment.gpus) > 1 and outcome.mode != MUTANTS else []),
        *([of_kernels(kernels)] if kernels else []),
        *([_target_table(targets)] if targets else []),
    ]
    inputs = f"seed {outcome.seed}; the same inputs " if outcome.cases or outcome.mutants else ""
    notes = (
        *_rates_sentences(outcome),
        *_skips(outcome),
        *_families(outcome),
        *left_out_sentences(outcome),
        f"{inputs}again: {in_words(request.replay(outcome.seed))}",
    )
    partial = f"partial, {outcome.partial}: " if outcome.partial else ""
    return Overview(f"{environment_phrase(outcome)}: {partial}{result}", tuple(tables), notes)


def environment_phrase(document: SmokeDocument) -> str:
    """Such as ``NVIDIA H200, torch 2.11.0+cu130, triton 3.6.0``."""
    environment = document.environment
    counts = Counter(gpu.name for gpu in environment.gpus)
    where = [f"{count} x {name}" if count > 1 else name for name, count in counts.items()]
    if document.mode == COMPILE:
        where = []
    elif document.device == INTERPRET:
        where = ["Triton's interpreter"]
    versions = (("torch", environment.torch), ("triton", environment.triton))
    found = [f"{name} {version}" if version else f"no {name}" for name, version in versions]
    return ", ".join([*(where or ["no GPU"] * (document.mode != COMPILE)), *found])


def kernel_headline(kernel: KernelFacts) -> str:
    """Such as ``12 cases, 1.04 of the floor``; of several timed runs the one that is nearest to its bar."""
    if kernel.mutants:
        return f"{kernel.score[0]} of {plural(kernel.score[1], 'mutant')} caught"
    told = plural(len(kernel.cases), "case")
    worst = kernel.worst_speed
    return f"{told}, {worst.ratio:.2f} of {worst.versus or 'the floor'}" if worst else told


def gpu_headline(facts: GpuFacts) -> str:
    """Such as ``4.25 TB/s, 746 TF bf16``."""
    return ", ".join(_rates(facts.reading.calibration)) or "nothing measured"


def target_headline(target: TargetFacts) -> str:
    """Such as ``15 of 17 compile, 2 cannot or in part``."""
    told = f"{len(target.sound)} of {len(target.kernels)} compile"
    return told + (f", {len(target.impossible)} cannot or in part" if target.impossible else "")


def _run_phrase(document: SmokeDocument, kernels: Sequence[KernelFacts]) -> str:
    """``17 kernels correct, 20 of 20 within their bars (4.27 TB/s, 746 TF bf16)``."""
    tried = {k.name for k in kernels if not all(case.ending is Ending.SKIP for case in k.cases)}
    if not tried:
        return document.message or "nothing was checked"
    incorrect = {k.name for k in kernels if not _is_correct(k)}
    phrase = f"{plural(len(tried), 'kernel')} correct"
    if tried & incorrect:
        phrase = f"{len(tried - incorrect)} of {phrase}"
    if len({k.gpu for k in kernels}) > 1:
        phrase += f" on each of {len({k.gpu for k in kernels})} GPUs"
    met, above, timed = _within(document.speeds)
    if timed:
        phrase += f", {met} of {timed} within their bars"
    if above:
        phrase += f", {above} within the allowance for noise"
    rates = "" if len(document.environment.gpus) > 1 else ", ".join(_rates(document.calibration))
    return f"{phrase} ({rates})" if rates else phrase


def _within(speeds: Iterable[SpeedRun]) -> tuple[int, int, int]:
    """How many of ``speeds`` are within their bar, how many only within its allowance, how many were timed."""
    timed = [speed for speed in speeds if speed.ending is not Ending.SKIP]
    passed = [speed for speed in timed if speed.ending is Ending.PASS]
    met = sum(speed.bar_met for speed in passed)
    return met, len(passed) - met, len(timed)


def _mutants_phrase(document: SmokeDocument, kernels: Sequence[KernelFacts]) -> str:
    """``14 of 16 mutants of 3 kernels caught``."""
    caught, judged = (sum(kernel.score[place] for kernel in kernels) for place in (0, 1))
    if not judged:
        return document.message or "no mutant was judged"
    return f"{caught} of {plural(judged, 'mutant')} of {plural(sum(k.score[1] > 0 for k in kernels), 'kernel')} caught"


def _is_correct(kernel: KernelFacts) -> bool:
    """Whether nothing of it is wrong, also not in the shapes that are timed."""
    timed_wrong = any(speed.ending is Ending.WRONG for speed in kernel.speeds)
    return not timed_wrong and all(case.ending in _GOOD for case in kernel.cases)


def _rates(calibration: Calibration | None) -> Iterator[str]:
    if calibration and calibration.bandwidth:
        yield f"{calibration.bandwidth / 1e12:.2f} TB/s"
    if calibration and calibration.bf16:
        yield f"{calibration.bf16 / 1e12:,.0f} TF bf16"
    if calibration and calibration.fp8:
        yield f"{calibration.fp8 / 1e12:,.0f} TF fp8"


def _compiled_phrase(targets: Sequence[TargetFacts]) -> str:
    """``17 kernels compile for sm_90, sm_100``, or how many for each target when they differ."""
    if not targets:
        return "nothing was compiled"
    count = len(targets[0].kernels)
    if all(target.sound == target.kernels and len(target.kernels) == count for target in targets):
        compile_ = "kernel compiles" if count == 1 else "kernels compile"
        return f"{count} {compile_} for {', '.join(target.target for target in targets)}"
    return "; ".join(f"{target.target}: {target_headline(target)}" for target in targets)


def _gpu_table(document: SmokeDocument, kernels: Sequence[KernelFacts]) -> Table:
    """One row for each GPU."""
    rates = {reading.gpu: reading.calibration for reading in document.readings}
    rows = []
    for gpu in document.environment.gpus:
        own = [kernel for kernel in kernels if kernel.gpu == gpu]
        met, above, timed = _within(speed for kernel in own for speed in kernel.speeds)
        within = f"{met} of {timed}" + f", {above} within the allowance" * bool(above) if timed else ""
        correct = f"{sum(map(_is_correct, own))} of {len(own)}" if own else "none ran"
        measured = ", ".join(_rates(rates.get(gpu.uuid)))
        rows.append((str(gpu.index), gpu.name, gpu.uuid, correct, within, measured))
    columns = ("GPU", "product", "UUID", "kernels correct", "within their bars", "measured")
    return Table("GPUs", columns, tuple(rows), frozenset({"GPU"}))


def _over_gpus(kernels: Sequence[KernelFacts]) -> list[KernelFacts]:
    """Each kernel once, with the cases of all GPUs, and of each timed run the one that is furthest above its bar."""
    found = []
    for name in dict.fromkeys(kernel.name for kernel in kernels):
        same = [kernel for kernel in kernels if kernel.name == name]
        speeds = [speed for kernel in same for speed in kernel.speeds]
        worst = {speed.case: speed for speed in speeds}  # in the order of the first GPU
        worst |= {speed.case: speed for speed in sorted(speeds, key=lambda s: (s.ending not in _GOOD, s.ratio or 0.0))}
        cases = tuple(case for kernel in same for case in kernel.cases)
        found.append(KernelFacts(name, cases, tuple(worst.values())))
    return found


def _kernel_table(every: Sequence[KernelFacts]) -> Table:
    """One row for each timed run, one for a kernel without any; of several GPUs the worst counts."""
    kernels = _over_gpus(every)
    if not any(kernel.speeds for kernel in kernels):
        plain = tuple((kernel.name, _cases(kernel), _verdict(kernel.cases)) for kernel in kernels)
        return Table("Kernels", ("kernel", "cases", "verdict"), plain)
    columns = ("kernel", "cases", "timed run", "us", "floor us", "of floor", "ratio", "bar", "verdict")
    numbers = frozenset({"us", "floor us", "of floor", "ratio"})
    rows = tuple(
        (kernel.name, _cases(kernel), *cells, _verdict([*kernel.cases, *([speed] if speed else [])]))
        for kernel in kernels
        for speed in (kernel.speeds or [None])
        for cells in [_speed_cells(speed)]
    )
    return Table("Kernels, and their times compared to the limits of this GPU", columns, rows, numbers)


def _mutant_table(kernels: Sequence[KernelFacts]) -> Table:
    """One row for each kernel: of the mutants that could be run, how many were caught, and which were not."""
    rows = tuple(
        (
            kernel.name,
            *map(str, kernel.score),
            f"{kernel.score[0] / kernel.score[1]:.0%}" if kernel.score[1] else "",
            summarised([m.mutant for m in kernel.mutants if m.ending is Ending.MISSED], MOST_MISSED),
        )
        for kernel in kernels
    )
    columns = ("kernel", "caught", "of", "score", "missed")
    return Table("Mutants: faults seeded into the kernels", columns, rows, frozenset(columns[1:4]))


def _speed_cells(speed: SpeedRun | None) -> tuple[str, ...]:
    """Timed run, us, floor us, of floor, ratio, bar."""
    if speed is None:
        return ("",) * 6
    share = f"{speed.floor / speed.time:.0%}" if speed.floor and speed.time else ""
    bar = f"{speed.bar:.2f} of {speed.versus or 'floor'}" if speed.bar else ""
    times = (f"{speed.time:,.1f}" if speed.time else "", f"{speed.floor:,.1f}" if speed.floor else "")
    return (speed.case, *times, share, f"{speed.ratio:.2f}" if speed.ratio else "", bar)


def _cases(kernel: KernelFacts) -> str:
    passed = sum(case.ending is Ending.PASS for case in kernel.cases)
    skipped = sum(case.ending is Ending.SKIP for case in kernel.cases)
    tried = len(kernel.cases) - skipped
    told = str(tried) if passed == tried else f"{passed} of {tried}"
    return f"{told}, {skipped} skipped" if skipped else told


def _verdict(runs: Iterable[CaseRun | SpeedRun]) -> str:
    """What is wrong, in the suite's words; "above the bar" for a time that only the allowance for noise excuses."""
    runs = list(runs)
    bad = dict.fromkeys(str(run.ending) for run in runs if run.ending not in _GOOD)
    if bad:
        return ", ".join(bad)
    if all(run.ending is Ending.SKIP for run in runs):
        return "skipped"
    return "above the bar" if any(isinstance(run, SpeedRun) and not run.bar_met for run in runs) else "pass"


def _target_table(targets: Sequence[TargetFacts]) -> Table:
    """One row for each kernel and target: the most that any of its functions takes."""
    counts = ("functions", "registers", "spills", "shared memory")
    rows = tuple(
        (target.target, kernel, *_code_cells(target.of(kernel)), _code_verdict(target, kernel))
        for target in targets
        for kernel in target.kernels
    )
    columns = ("target", "kernel", *counts, "matrix instructions", "verdict")
    title = "Machine code: the maximum over the functions of a kernel, in bytes"
    return Table(title, columns, rows, frozenset(counts))


def _code_cells(compiled: Sequence[Compilation]) -> tuple[str, ...]:
    """Functions, registers, spills, shared memory, matrix instructions."""
    functions = sum(c.made for c in compiled)
    instructions = dict.fromkeys(name for c in compiled for name in c.instructions)
    most = (
        [c.registers for c in compiled if c.registers is not None],
        [c.spill_bytes for c in compiled if c.spill_bytes is not None],
        [c.shared_bytes for c in compiled if c.shared_bytes is not None],
    )
    return (
        str(functions) if functions else "",
        *(f"{max(values):,}" if values else "" for values in most),
        ", ".join(instructions),
    )


def _code_verdict(target: TargetFacts, kernel: str) -> str:
    bad = dict.fromkeys(str(c.ending) for c in target.of(kernel) if c.ending not in _GOOD)
    if bad:
        return ", ".join(bad)
    if kernel in target.impossible:
        return "in part" if any(c.made for c in target.of(kernel)) else "not possible"
    return "pass"


def _rates_sentences(document: SmokeDocument) -> Iterator[str]:
    """Copies, calls from Python and sustained load, a sentence for each GPU."""
    for reading in document.readings:
        said = [*(_copies_and_calls(reading.rates) if reading.rates else ())]
        if soak := reading.soak:
            change = f"from {soak.first / 1e12:.0f} to {soak.last / 1e12:.0f} TF bf16"
            right = f"{soak.compared - soak.wrong} of {soak.compared} right"
            said.append(f"{soak.asked_seconds:g} s of load: {change}, {right}")
        if said:
            yield f"{document.label(reading.gpu) or 'measured'}: {', '.join(said)}"


def _copies_and_calls(rates: Rates) -> Iterator[str]:
    for label, rate in (("host to GPU", rates.host_to_device), ("GPU to host", rates.device_to_host)):
        if rate:
            yield f"{label} {rate / 1e9:.1f} GB/s"
    if calls := rates.launch_microseconds:
        least, most = (choose(calls, key=lambda kernel: calls[kernel]) for choose in (min, max))
        yield f"a call from Python takes {calls[least]:.0f} us ({least}) to {calls[most]:.0f} us ({most})"


def left_out_sentences(document: SmokeDocument) -> Iterator[str]:
    """What the level of the run does not run, one sentence for each level that does."""
    left_out = document.left_out if document.cases else ()  # where nothing ran, what is said is why
    for level in dict.fromkeys(record.level for record in left_out):
        records = [record for record in left_out if record.level == level]
        whole = [record.kernel for record in records if not record.cases]
        some = [record for record in records if record.cases]
        said = [f"all cases of {', '.join(whole)}"] if whole else []
        if some:
            count = plural(sum(len(record.cases) for record in some), "case")
            said.append(f"{count} of {plural(len(some), 'other kernel' if whole else 'kernel')}")
        yield f"omitted at level {document.level}, run by --level {level}: {'; '.join(said)}"


def _families(document: SmokeDocument) -> Iterator[str]:
    """Where the kernels from outside come from, one sentence for each source."""
    for family in document.families:
        yield f"from {family.label or family.source}: {', '.join(kernel.name for kernel in family.kernels)}"


def _skips(document: SmokeDocument) -> Iterator[str]:
    """What was skipped, one sentence for each reason."""
    skipped: dict[str, dict[str, None]] = {}
    told = [(probe.name, probe.ending, probe.message) for probe in document.probes]
    told += [(run.kernel, run.ending, run.message) for run in (*document.runs, *document.mutants)]
    for name, ending, message in told:
        if ending is Ending.SKIP:
            skipped.setdefault(message, {})[name] = None
    for reason, names in skipped.items():
        yield f"skipped: {', '.join(names)}: {reason}"
