"""Shared by the renderers: safe strings, human numbers, and the phrases that describe a report."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from itertools import islice
from typing import Any, NamedTuple, TextIO

from packaging.version import Version

from wheel_checks.fixes.commands import Command, NoCommand, Options, commented, in_words, shell
from wheel_checks.model import CheckResult, Fix, Outcome, Report, Severity, Subject, Verdict
from wheel_checks.parsing import version_or_none
from wheel_checks.phrases import human_bytes, human_seconds, plural, shortened

_LONGEST_COMMAND = 20_000  # characters that a format for people shows in a line
CASES = "cases"  # the key of the single tests of a user's report of tests
MANY = 6
"""Up to this many subjects are listed one by one; more are summed up first."""

# Control characters, surrogates, noncharacters, and everything that is invisible or hides or reorders its neighbours
# (bidirectional controls, zero-width characters, fillers, line separators, variation selectors, tag characters): a
# wheel chooses its member names, so a terminal, an XML parser or a reader must not be made to execute them. The runner
# of GitHub Actions executes "##[command]" anywhere in a line, the agent of Azure Pipelines "##vso[command]".
_UNSAFE = re.compile(
    "[\x00-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u2800"
    "\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\ufffe\uffff\ud800-\udfff\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
    r"|#(?=#(?:[vV][sS][oO])?\[)"
)
# The runner executes "::command::" at the start of a line, after any space (actions/runner, ActionCommand.cs).
_COMMAND = re.compile(r"^([^\S\n]*):(?=:)", re.MULTILINE)
_RUNNER_COMMAND = re.compile(r"##(vso)?\[", re.IGNORECASE)
_SURROGATE = re.compile("[\ud800-\udfff]")
_SHORT_ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def _escape(match: re.Match[str]) -> str:
    character = match.group()
    code = ord(character)
    if character in _SHORT_ESCAPES:
        return _SHORT_ESCAPES[character]
    if code <= 0xFF:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def neutral(text: str) -> str:
    r"""``text`` on one line, with every character that could act rather than be read shown as an escape (``\x1b``)."""
    return _UNSAFE.sub(_escape, text)


def json_ready(value: Any) -> Any:
    r"""``value`` as JSON can represent it: lone surrogates are shown as ``\udc80``, NaN and infinities are None."""
    if isinstance(value, str):
        return _SURROGATE.sub(_escape, value)
    if isinstance(value, Mapping):
        return {json_ready(str(key)): json_ready(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [json_ready(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, (bool, int)) else json_ready(str(value))


def without_commands(text: str, colon: str = "\\x3a") -> str:
    """``text`` in which no line begins as a workflow command (``::error::``): ``colon`` replaces the first colon."""
    return _COMMAND.sub(lambda match: f"{match[1]}{colon}", text)


def write_json(document: Any, stream: TextIO) -> None:
    """Write ``document``, which :func:`json_ready` made, in ASCII."""
    parts = json.JSONEncoder(indent=2, allow_nan=False).iterencode(document)
    while some := "".join(islice(parts, _PARTS)):
        stream.write(plain_json(some))
    stream.write("\n")


def plain_json(text: str) -> str:
    """The same JSON without the strings that a runner takes for a command anywhere in a line (``##[``, ``##vso[``)."""
    return _RUNNER_COMMAND.sub(r"#\\u0023\1[", text)


def write(stream: TextIO, text: str, *, commands: bool = False) -> None:
    """Write ``text``; characters outside of the encoding of ``stream`` become escapes instead of a crash.

    No line begins as a workflow command, unless ``commands`` says that it is meant to.
    """
    text = text if commands else without_commands(text)
    encoding = getattr(stream, "encoding", None) or "utf-8"
    stream.write(text.encode(encoding, "backslashreplace").decode(encoding))


def fact(subject: Subject, *names: str) -> str:
    """The first of these facts that the subject has, as one safe line, or ""."""
    for name in names:
        value = subject.facts.get(name)
        if value not in (None, "", [], ()):
            return neutral(str(value))
    return ""


_PARTS = 4096  # of JSON that are written at once: a report has half a million of a few characters
_LINUX = re.compile(r"^(many|musl)?linux([0-9]+|_[0-9]+_[0-9]+)?_")
_MACOS = re.compile(r"^macosx_[0-9]+_[0-9]+_")
_ACCELERATORS = {"cuda": "CUDA", "rocm": "ROCm", "xpu": "XPU", "cpu": "CPU", "none": "no accelerator"}


def accelerator_label(subject: Subject) -> str:
    """``CUDA 13.0``, ``ROCm 6.4``, ``CPU``, ``no accelerator``; "" when the accelerator is unknown."""
    accelerator = fact(subject, "accelerator")
    version = fact(subject, "accelerator_version", "cuda") if accelerator not in ("cpu", "none") else ""
    return f"{_ACCELERATORS.get(accelerator, accelerator)} {version}".strip()


_RUNS = {
    "native": "runs natively ({})",
    "jit": "runs by JIT ({} is compiled at first use)",
    "at least jit": "runs, at least by JIT ({})",
    "none": "does not run",
    "unknown": "not known",
}


def archive_line(subject: Subject) -> str:
    """The unread parts of a remote wheel's archive, or ""."""
    archive = subject.facts.get("archive")
    if not isinstance(archive, dict) or archive.get("proven") is not False:
        return ""
    read, members = archive.get("local_headers_read"), subject.facts.get("members")
    return f"archive not proven: {read:,} of {members:,} local headers were read (--depth full reads all)"


def gpu_lines(subject: Subject) -> list[str]:
    """How the subject runs on each GPU that was requested: ``GB300 (10.3): runs natively (sm_100)``."""
    code = subject.facts.get("gpu_code")
    rows = code.get("products", ()) if isinstance(code, Mapping) else ()
    certainty = code.get("certainty", "exact") if isinstance(code, Mapping) else "exact"
    note = "" if certainty == "exact" else f", as {certainty}"
    return [
        neutral(f"{p['name']} ({p['capability']}): {_RUNS[_how(p)].format(p['code'])}{_in_part(p)}{note}") for p in rows
    ]


def _in_part(product: Mapping[str, Any]) -> str:
    """The share of compiled files that have code for a product, if not all have."""
    files = product.get("compiled_files", {})
    return "" if files.get("running") == files.get("all") else f", {files['running']} of {files['all']} compiled files"


def _how(product: Mapping[str, Any]) -> str:
    return "at least jit" if product.get("perhaps_native") else str(product["runs"])


_RUN_WORDS = {
    "native": "native",
    "jit": "by JIT",
    "at least jit": "at least by JIT",
    "none": "not",
    "unknown": "not known",
}


def gpu_label(subject: Subject) -> str:
    """How the subject runs on the GPUs that were requested, in few words: ``native: GH200, GB200; not: T4``."""
    code = subject.facts.get("gpu_code")
    rows = code.get("products", ()) if isinstance(code, Mapping) else ()
    named = {how: [p["name"] for p in rows if _how(p) == how] for how in _RUN_WORDS}
    return neutral("; ".join(f"{_RUN_WORDS[how]}: {', '.join(names)}" for how, names in named.items() if names))


def size_label(subject: Subject) -> str:
    """The size of the file in human units; "" when it is unknown."""
    size = subject.facts.get("size")
    return human_bytes(size) if isinstance(size, int) else ""


def machine_of(subject: Subject) -> str:
    """The architecture that the wheel is for: ``aarch64``, ``macosx_arm64``, ``any``; "" when it is unknown.

    The platform tags come first (PEP 600 and its elders put the architecture last): the machine that the wheel was
    judged for is not the wheel's own, and a whole release is judged for none.
    """
    platforms = fact(subject, "platform").split(".")
    machines = {_MACOS.sub("macosx_", _LINUX.sub("", platform)) for platform in platforms if platform}
    return "/".join(sorted(machines)) or fact(subject, "machine")


def version_key(text: str) -> tuple[int, Version, str]:
    """Sorts versions as PEP 440 does; what is not a version comes last, in alphabetical order."""
    version = version_or_none(text)
    return (0, version, "") if version else (1, Version("0"), text)


def flat_facts(facts: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Every fact as a ``(dotted.name, text)`` pair of safe lines; lists joined by commas, empty facts omitted.

    So are the ``CASES`` of a report of tests, which may be thousands.
    """
    for key, value in facts.items():
        if key == CASES:
            continue
        name = f"{prefix}{neutral(str(key))}"
        if isinstance(value, Mapping):
            yield from flat_facts(value, f"{name}.")
        elif isinstance(value, (list, tuple)) and any(isinstance(item, Mapping) for item in value):
            yield from flat_facts({str(index): item for index, item in enumerate(value)}, f"{name}.")
        elif isinstance(value, (list, tuple)):
            yield from [(name, neutral(", ".join(map(str, value))))] if value else []
        elif value not in (None, ""):
            yield name, neutral(str(value))


def worst_first(results: Iterable[CheckResult]) -> list[CheckResult]:
    """Failed errors, then unchecked results, failed warnings, failed notes, skips, passes; else in order."""

    def rank(result: CheckResult) -> int:
        if result.outcome is Outcome.FAIL:
            return {Severity.ERROR: 0, Severity.WARNING: 2, Severity.NOTE: 3}[result.severity]
        return {Outcome.ERROR: 1, Outcome.SKIP: 4}.get(result.outcome, 5)

    return sorted(results, key=rank)


def problems(subject: Subject, *, everything: bool = False) -> list[CheckResult]:
    """The failures and the checks that could not be made, worst first.

    Findings that only a publisher can fix are omitted for an installer, unless ``everything`` is wanted.
    """
    found = (result for result in subject.results if result.outcome in (Outcome.FAIL, Outcome.ERROR))
    return worst_first(result for result in found if everything or subject.concerns_reader(result))


def concerning(subjects: Iterable[Subject]) -> list[CheckResult]:
    """The results of these subjects except, for an installer, those that only a publisher can fix."""
    return [result for subject in subjects for result in subject.results if subject.concerns_reader(result)]


def publisher_phrase(report: Report) -> str:
    """``14 findings for the publisher``: the omitted ones, or ""."""
    count = sum(len(subject.results) for subject in report.subjects) - len(concerning(report.subjects))
    return f"{plural(count, 'finding')} for the publisher" if count else ""


def answer_lines(report: Report) -> list[str]:
    """The answers, one safe line each: of several the first failing one, each with its subject."""
    order = (Verdict.FAIL, Verdict.UNDECIDED, Verdict.PASS)
    several = len({answer.about for answer in report.answers}) > 1
    lines = []
    for answer in sorted(report.answers, key=lambda answer: order.index(answer.verdict)):
        about = f"{answer.about}: " if several and answer.about not in answer.line else ""
        lines.append(neutral(shortened(about + answer.line)))
    return lines


def also_line(report: Report) -> str:
    """``also: 2 packages run code at start-up``: findings that decide nothing, in a line after the verdict; or ""."""
    return neutral(shortened(f"also: {'; '.join(report.also)}")) if report.also else ""


def label_of(result: CheckResult) -> str:
    """One word or two for the outcome: ``error``, ``warning``, ``note``, ``not checked``, ``skipped``, ``passed``."""
    if result.outcome is Outcome.FAIL:
        return result.severity.value
    return {Outcome.ERROR: "not checked", Outcome.SKIP: "skipped"}.get(result.outcome, "passed")


def place_of(result: CheckResult) -> str:
    """The place in the wheel or on disk: ``torch/version.py:3``; "" when the finding is about the whole subject.

    For a wheel that a file of the user requires, both: ``requirements.txt:12, torch/version.py``.
    """
    if result.location is None:
        return ""
    place = result.location
    parts = [place.on_disk or place.member]
    parts += [str(number) for number in (place.line, place.column) if number is not None]
    found = neutral(":".join(part for part in parts if part))
    return f"{found}, {neutral(place.member)}" if place.file and place.member else found


def judged_phrase(report: Report) -> str:
    """The judged subjects: the report's headline, the one subject's id, or their number by kind; else ``nothing``."""
    if report.overview:
        return neutral(report.overview.headline)
    if len(report.subjects) == 1:
        return neutral(report.subjects[0].id)
    kinds = list(dict.fromkeys(subject.kind for subject in report.subjects))
    return (
        " and ".join(plural(sum(s.kind == kind for s in report.subjects), neutral(kind)) for kind in kinds) or "nothing"
    )


def counts_phrase(results: Iterable[CheckResult]) -> str:
    """``2 findings (1 error, 1 warning), 1 not checked, 3 skipped, 11 passed``: the counts that are not 0."""
    results = list(results)
    failures = [result.severity for result in results if result.outcome is Outcome.FAIL]
    parts = []
    if failures:
        kinds = [plural(failures.count(s), s.value) for s in reversed(Severity) if s in failures]
        parts.append(f"{plural(len(failures), 'finding')} ({', '.join(kinds)})")
    for outcome, word in ((Outcome.ERROR, "not checked"), (Outcome.SKIP, "skipped"), (Outcome.PASS, "passed")):
        if count := sum(result.outcome is outcome for result in results):
            parts.append(f"{count:,} {word}")
    return ", ".join(parts) or "no checks"


def silenced_phrase(report: Report) -> str:
    """``3 rules silenced by pyproject.toml``: the rules that a tree's file disabled for this run, or ""."""
    tree = report.tree
    if tree is None or not tree.silenced:
        return ""
    return f"{plural(len(tree.silenced), 'rule')} silenced by {neutral(tree.file.rpartition('/')[2])}"


def cost_phrase(report: Report) -> str:
    """``0.41 s, 1.2 MB read in 3 requests``; the time alone when the report has an overview and nothing was read."""
    if report.overview and not report.bytes_read:
        return human_seconds(report.seconds)
    requests = f" in {plural(report.requests, 'request')}" if report.requests else ""
    return f"{human_seconds(report.seconds)}, {human_bytes(report.bytes_read)} read{requests}"


def verdict_line(report: Report) -> str:
    """``wheelproof verify: PASS, torch-2.11.0-...whl: 11 passed (0.41 s, 1.2 MB read in 3 requests)``."""
    phrases = (counts_phrase(concerning(report.subjects)), publisher_phrase(report), silenced_phrase(report))
    counts = ", ".join(filter(None, phrases))
    verdict, judged, cost = report.verdict.value.upper(), judged_phrase(report), cost_phrase(report)
    return f"wheelproof {report.command}: {verdict}, {judged}: {counts} ({cost})"


def all_results(report: Report) -> list[CheckResult]:
    """The results of all subjects, in order."""
    return [result for subject in report.subjects for result in subject.results]


class FixLine(NamedTuple):
    """A safe line of a fix; ``for_shell`` when it is a command, or a comment that belongs to one."""

    text: str
    for_shell: bool


def fix_lines(fix: Fix) -> list[FixLine]:
    """The steps of a fix, to be shown below its summary.

    A command is shown exactly or not at all: text cannot show control characters, line ends and invisible characters as
    they are. Steps build on one another, so when one cannot be shown, or there isn't one, no other is shown either.
    """
    steps = fix.commands
    if missing := [FixLine(neutral(in_words(step)), False) for step in steps if isinstance(step, NoCommand)]:
        return missing
    lines = []
    for step in steps:
        if isinstance(step, (Options, NoCommand)):
            lines.append(FixLine(in_words(step), False))
        else:
            lines += [FixLine(f"# {step.note}", True)] * bool(step.note)
            lines.append(FixLine(shell(step), True))
    for text, _ in lines:
        if why := _hidden_reason(text):
            return [FixLine(f"the commands are not shown: {why}; --format json has them as argv", False)]
    return lines


def _hidden_reason(line: str) -> str:
    """Why text cannot show this line as it is; "" when it can."""
    if len(line) > _LONGEST_COMMAND:
        return f"one has {len(line):,} characters"
    if _RUNNER_COMMAND.search(line):
        return "an argument contains a GitHub or Azure workflow command"
    if odd := next((character for character in line if not character.isprintable() or _UNSAFE.match(character)), ""):
        return f"an argument holds U+{ord(odd):04X}"
    return "one starts with ::" if _COMMAND.match(line) else ""


def fix_document(fix: Fix) -> dict[str, Any]:
    """A fix for programs: commands as quoted strings, the vector of each (or None), and all steps as data. A fix in
    which a command is missing has its other steps as data only.
    """
    complete = not any(isinstance(step, NoCommand) for step in fix.commands)
    commands = [step for step in fix.commands if complete and not isinstance(step, (Options, NoCommand))]
    return {
        "summary": fix.summary,
        "commands": [commented(step) for step in commands],
        "argv": [step.argv if isinstance(step, Command) and not step.folder else None for step in commands],
        "steps": [{"kind": step.kind, **asdict(step)} for step in fix.commands],
    }


def detail_lines(result: CheckResult) -> list[str]:
    """Place, evidence, fix and commands as safe plain lines, for formats that have nothing but text."""
    return [*described(result), *command_lines(result)]


def described(result: CheckResult) -> list[str]:
    """Place, evidence and the summary of the fix as safe plain lines."""
    lines = [f"at: {place}"] if (place := place_of(result)) else []
    for evidence in result.evidence:
        source = f" ({evidence.source})" if evidence.source else ""
        lines.append(neutral(f"{evidence.label}: {evidence.value}{source}"))
    return [*lines, *([neutral(f"fix: {result.fix.summary}")] if result.fix else [])]


def command_lines(result: CheckResult) -> list[str]:
    """The steps of the fix as safe plain lines, indented."""
    return [f"    {line.text}" for line in fix_lines(result.fix)] if result.fix else []
