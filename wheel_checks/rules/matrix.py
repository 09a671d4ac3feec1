"""Is a cell of a matrix what it must be, and what the matrix knows it to be? MTX0xx and MTX1xx judge each cell."""

from collections.abc import Iterable, Iterator

from wheel_checks.commands import option, package, run
from wheel_checks.facts.expectations import Expectations
from wheel_checks.facts.gpu.targets import parse_gpu, runs_on
from wheel_checks.facts.kernels.facts import Ending, SmokeDocument
from wheel_checks.facts.matrix import CellFacts, Function, ImportProof, compare_code
from wheel_checks.model import Evidence, Finding, Fix, Severity, Unavailable, need
from wheel_checks.phrases import and_more, plural, summarised
from wheel_checks.registry import rules_of

KIND = "cell"
rule = rules_of(KIND)
MOST_SHOWN = 8
_LONGEST_LINE = 300  # characters of what a test says
_GOOD = (Ending.PASS, Ending.SKIP)


@rule(
    "MTX001",
    "every step of the cell completed",
    why="A cell that was not resolved, installed, imported or tested has proven nothing, and must not look like one "
    "that passed.",
    example="a cell for aarch64 on an x86_64 machine without emulation",
    fix="Follow the message, and run the same command again: completed steps are kept.",
)
def went_the_whole_way(cell: CellFacts, _: Expectations) -> Iterator[Finding]:
    """Each step was carried out; what it found is another matter."""
    for step in cell.steps:
        if step.failure is not None:
            evidence = (Evidence("log", step.log),) if step.log else ()
            fix = Fix(step.failure.hint) if step.failure.hint else None
            yield Finding(f"{step.name}: {step.failure.reason}", evidence, fix, undecided=True)


@rule(
    "MTX101",
    "torch is the build that the cell expects",
    why="`pip install torch` installs whatever the index has for the platform, and a CPU build installs and imports as "
    "well as a CUDA build.",
    example="torch 2.10.0 for aarch64, which is a CPU build",
    fix="Use a release with that build for the platform; or declare the deviation in the matrix: `expect`.",
)
def wanted_build(cell: CellFacts, _: Expectations) -> Iterator[Finding]:
    """Torch is what is wanted; where it is known not to be, that is a note."""
    build = need(cell.build)
    if not build.meets(cell.wanted):
        told = f"torch {cell.torch} is {build.label}; the cell expects {cell.wanted}"
        if cell.known is not None and build.meets(cell.known):
            yield Finding(f"{told} (declared in {cell.source}: {cell.reason})", severity=Severity.NOTE)
        else:
            yield Finding(told, _seen(cell), _verify(cell))


@rule(
    "MTX102",
    "the declared deviations (`expect`) of the matrix are still true",
    why="An expectation that was correct when written hides the day when a build becomes better, or worse in another "
    "way. Such a change needs a decision.",
    example="the matrix declares torch for aarch64 a CPU build, but the index now has a CUDA build",
    fix="Check the current build, then change or remove `expect` in the matrix.",
)
def world_unchanged(cell: CellFacts, _: Expectations) -> Iterator[Finding]:
    """Where the matrix knows that torch is not what is wanted, it still is not, and in the same way."""
    known = need(cell.known or Unavailable("the matrix declares no deviation for this cell"))
    build = need(cell.build)
    if not build.meets(known):
        better = build.meets(cell.wanted)
        advice = (
            "Remove `expect` from the matrix: torch is the build that the cell expects."
            if better
            else "Find the reason, and correct it."
        )
        message = f"`expect` is out of date: torch {cell.torch} is {build.label}, but {cell.source} expects {known}"
        yield Finding(message, (Evidence("reason then", cell.reason), *_seen(cell)), Fix(advice))


@rule(
    "MTX103",
    "torch can be imported, and is the build that its wheel shows",
    why="The wheel is examined on the index, without running anything. The import, on the platform itself, confirms "
    "the result: another machine, version or CUDA means that something else was installed, or that wheelproof read the "
    "wheel wrongly.",
    example="the wheel says CUDA 13.0, but torch.version.cuda is None",
    fix="Check what else is on the cell's import path; if nothing is, please report it.",
)
def import_agrees(cell: CellFacts, _: Expectations) -> Iterator[Finding]:
    """The import works; machine, Python, version and accelerator agree."""
    if cell.import_error:
        yield Finding(f"torch cannot be imported: {cell.import_error}", _seen(cell))
        return
    proof, wheel = need(cell.imported), cell.wheel
    told = [("machine", cell.platform, proof.machine), ("Python", cell.python.rstrip("t"), _minor(proof.python))]
    if not isinstance(wheel, Unavailable):
        told.append(("accelerator", _accelerator(wheel.accelerator, wheel.accelerator_version), _of(proof)))
        told.append(("torch", wheel.version or cell.torch, proof.build.version))
    for name, expected, found in told:
        if expected != found:
            yield Finding(f"{name}: the cell expects {expected}, but the import reports {found}", _seen(cell))


@rule(
    "MTX104",
    "the imported torch has GPU code for the GPUs of the cell",
    why="A torch without code for a GPU can be imported, but its first kernel fails with `no kernel image is "
    "available`.",
    example="a cell with gpu = ['GB200'], and a torch with code up to sm_90",
    fix="Use a build of torch for these GPUs.",
)
def gpu_code(cell: CellFacts, _: Expectations) -> Iterator[Finding]:
    """The architectures that torch was built for run on each target."""
    proof = need(cell.imported)
    if proof.build.accelerator != "cuda":
        need(Unavailable(f"torch is {proof.build.label}"))
    targets = [target for target in cell.targets if target.startswith("sm_")]
    if not targets:
        need(Unavailable("the cell names no NVIDIA GPU"))
    lacking = [target for target in targets if runs_on(proof.gpu_code, parse_gpu(target)).how == "none"]
    if lacking:
        evidence = (Evidence("built for", " ".join(proof.gpu_code) or "nothing", "the import"),)
        yield Finding(f"torch {proof.build.version} has no code for {', '.join(lacking)}", evidence, _verify(cell))


@rule(
    "MTX105",
    "the kernels of the cell compile and give correct results",
    why="torch and Triton may be importable but broken: the smoke test runs real kernels, or compiles them with the "
    "compiler and the assembler of the cell's platform.",
    example="the ptxas of an aarch64 wheel that does not support sm_103",
    fix="Read the rule of `wheelproof smoke` that the message names, and the log.",
)
def kernels_pass(cell: CellFacts, _: Expectations) -> Iterator[Finding]:
    """Every probe, case, timed run and compilation of every smoke test passed."""
    if not cell.smoke:
        need(Unavailable("the cell requests no smoke test, or did not reach it"))
    for kind, document in cell.smoke.items():
        yield from _bad_records(kind, document)
        if document.verdict == "undecided":
            yield Finding(f"{kind}: {document.message}", undecided=True)


@rule(
    "MTX106",
    "both architectures compile the kernels to the same machine code",
    why="A GPU compiler's output must not depend on the CPU that it runs on: the same release of Triton generates the "
    "same bytes on x86_64 and on aarch64. A difference means another compiler, another ptxas, or a bug in one of them.",
    example="the aarch64 wheel of Triton contains another ptxas than the x86_64 wheel",
    fix="Compare the versions of triton and of its ptxas in both cells.",
)
def same_machine_code(cell: CellFacts, _: Expectations) -> Iterator[Finding]:
    """For the targets of both, each function has the same sha256 here and in the reference, and none is missing."""
    here, there = need(cell.machine_code), need(cell.reference_code)
    if here.triton != there.triton:
        need(Unavailable(f"Triton is {here.triton} here, and {there.triton} in {cell.reference}"))
    compared = compare_code(here, there)
    if not compared.functions:
        need(Unavailable(f"{cell.reference} compiles for other GPUs: {', '.join(sorted(there.targets))}"))
    if compared.different:
        total = len(compared.different) + len(compared.equal)
        message = f"{len(compared.different)} of {total} functions differ from those of {cell.reference}"
        evidence = tuple(
            Evidence(_label(function), _short(here.digests[function]), f"{_short(there.digests[function])} there")
            for function in compared.different[:MOST_SHOWN]
        )
        yield Finding(f"{message}: {_listed(compared.different)}", evidence)
    for functions, where in ((compared.here_only, "here"), (compared.there_only, f"in {cell.reference}")):
        if functions:
            yield Finding(f"{plural(len(functions), 'function')} compiled only {where}: {_listed(functions)}")


@rule(
    "MTX107",
    "the modules of the library under test can be imported in the cell",
    why="A library that installs may still fail to import: a missing library, an extension compiled for another torch, "
    "or its own error shows only at the first import, on the platform itself.",
    example="`import mine` raises ImportError: libcudart.so.12 in the aarch64 cell",
    fix="Read the end of the output and the log of the step; import the module on that platform, against the same "
    "versions.",
)
def modules_import(cell: CellFacts, _: Expectations) -> Iterator[Finding]:
    """The modules that the key `import` names, else those of the wheel under test, are imported without an error."""
    tried = need(cell.modules)
    if tried.error:
        yield Finding(f"a module cannot be imported: {tried.error}", _log_of(cell, "import-modules"))
    elif not tried.what:
        fix = Fix("List the modules to import in the cell's key `import`.")
        yield Finding("the wheel under test has no module, so nothing was imported", fix=fix, undecided=True)


@rule(
    "MTX108",
    "the command of the cell succeeds",
    why="Only a library's own tests know what it must do; the cell runs them against the installed packages.",
    example="`python -m pytest {project}/tests` fails in the aarch64 cell",
    fix="Read which tests failed, the end of the output and the log of the step; run the command on that platform, "
    "against the same versions.",
)
def command_succeeds(cell: CellFacts, _: Expectations) -> Iterator[Finding]:
    """The key `command` ends with status 0, and the reports that `junit` names show tests that ran, and no failure."""
    tried = need(cell.command)
    failed = [case.label for report in cell.tests for case in report.failed]
    if count := len(failed) + sum(report.unnamed for report in cell.tests):
        total = count - len(failed) + sum(len(report.cases) for report in cell.tests)
        named = f": {summarised(failed, MOST_SHOWN)}" if failed else ""
        message = f"{count} of {plural(total, 'test')} failed{named}; {tried.error or 'its exit code is 0'}"
        yield Finding(f"the command failed: {message}", (*_failures(cell), *_log_of(cell, "command")))
    elif tried.error:
        yield Finding(f"the command failed: {tried.error}", _log_of(cell, "command"))
    elif cell.junit:
        yield from _unproven_tests(cell)


def _failures(cell: CellFacts) -> Iterator[Evidence]:
    """What the first tests that failed say, and where the reports are kept."""
    failed = [(case, report) for report in cell.tests for case in report.failed]
    for case, report in failed[:MOST_SHOWN]:
        yield Evidence(case.label, case.message.partition("\n")[0][:_LONGEST_LINE] or case.outcome, report.file)
    yield from (Evidence("JUnit report", report.path) for report in cell.tests if report.path)


def _unproven_tests(cell: CellFacts) -> Iterator[Finding]:
    """A command that succeeds has proven nothing by tests of which nothing is known, or none of which ran."""
    faulty = [report for report in cell.tests if report.fault]
    fix = Fix("Have the command write the report there, and set the key `junit` to it.")
    if not cell.tests:
        yield Finding(f"the command succeeded, but did not write {cell.junit}", fix=fix, undecided=True)
    for report in faulty:
        evidence = tuple(Evidence("JUnit report", path) for path in [report.path] if path)
        yield Finding(
            f"the command succeeded, but {report.file} cannot be read: {report.fault}", evidence, undecided=True
        )
    if cell.tests and not faulty and not any(report.ran for report in cell.tests):
        count = sum(len(report.cases) for report in cell.tests)
        what = f"all of {plural(count, 'test')} were skipped" if count else "no test was run"
        yield Finding(f"the command succeeded, but {what}", _log_of(cell, "command"), undecided=True)


def _log_of(cell: CellFacts, step: str) -> tuple[Evidence, ...]:
    return tuple(Evidence("log", found.log) for found in cell.steps if found.name == step and found.log)


def _bad_records(kind: str, document: SmokeDocument) -> Iterator[Finding]:
    told = [(probe.name, probe.ending, probe.message) for probe in document.probes if not probe.mild]
    told += [(f"{run.kernel} / {run.case}", run.ending, run.message) for run in document.runs]
    told += [(f"{c.label} for {c.target}", c.ending, c.message) for c in document.compiled]
    bad = [(name, ending, message) for name, ending, message in told if ending not in _GOOD]
    for name, ending, message in bad[:MOST_SHOWN]:
        told_why = f": {message}" if message else ""
        yield Finding(f"{kind}: {name}: {ending}{told_why}", undecided=ending is Ending.ERROR)
    if more := and_more(len(bad) - MOST_SHOWN, before=f"{kind}: "):
        yield Finding(more)


def _seen(cell: CellFacts) -> tuple[Evidence, ...]:
    """What torch was found to be, and where."""
    found = []
    if not isinstance(cell.wheel, Unavailable):
        found.append(Evidence("wheel", cell.wheel.label, "the index"))
    if not isinstance(cell.imported, Unavailable):
        found.append(Evidence("import", cell.imported.build.label, f"on {cell.imported.machine}"))
    return tuple(found)


def _verify(cell: CellFacts) -> Fix:
    where = (option("--platform", cell.platform), option("--python", cell.python))
    command = run("wheelproof", "verify", package("torch", cell.torch), *where, option("--expect", str(cell.wanted)))
    return Fix("Use a release, or an index, that has such a build for the platform. This one has, and why:", (command,))


def _of(proof: ImportProof) -> str:
    return _accelerator(proof.build.accelerator, proof.build.accelerator_version)


def _accelerator(name: str, version: str) -> str:
    return f"{name} {version}".strip()


def _minor(version: str) -> str:
    return ".".join(version.split(".")[:2])


def _label(function: Function) -> str:
    target, kernel, case, name = function
    return f"{target} {kernel} / {case}: {name}"


def _listed(functions: Iterable[Function]) -> str:
    return summarised(dict.fromkeys(f"{kernel} for {target}" for target, kernel, _, _ in functions), MOST_SHOWN)


def _short(digests: tuple[str, ...]) -> str:
    return ", ".join(digest[:12] for digest in digests)
