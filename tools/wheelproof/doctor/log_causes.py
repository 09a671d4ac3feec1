"""The causes of a log: by its texts, and by the doctor's rules from the facts that it quotes.

A log has only some of the facts that the doctor's rules judge. So only rules run whose facts a log can have in full,
and their findings count only if nothing in the log contradicts them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from packaging.requirements import Requirement
from packaging.version import Version

from wheel_checks.catalogue import select_rules
from wheel_checks.data import load
from wheel_checks.facts.host.commands import install_with_conda, is_of_conda
from wheel_checks.facts.host.log.facts import Log
from wheel_checks.facts.host.log.host import LogHost, host_of
from wheel_checks.facts.host.machine import System
from wheel_checks.facts.host.tables import driver_cuda
from wheel_checks.facts.host.torch.choice import companions, public
from wheel_checks.facts.host.torch.fit import gpus_without_code
from wheel_checks.facts.wheel.expectations import Expectations
from wheel_checks.fixes.commands import Command
from wheel_checks.model import CheckResult, Evidence, Finding, Fix, Outcome, Severity
from wheel_checks.rules.host.cause import CAUSES, rule_id
from wheel_checks.rules.host.log_texts import Recognition, recognise, rule_of
from wheel_checks.runner import run_rules

OF_BUILD = ("A01", "A02", "A05", "A14", "A15")  # torch is not for the GPU or the driver that is listed
OF_CODE = ("A11", "A12", "G01", "G02")
OF_COMPANIONS = ("B13", "B14")
NUMPY = "DOC902"
_NUMPY_2_FROM = Version("2.3")  # PyTorch 2.3 release notes: the first wheels that work with NumPy 2

# Entries of the catalogue that say the same of one torch: how it came there cannot be seen in a log.
_SAME = (
    frozenset(map(rule_id, ("A01", "A02", "A03", "A04", "A10", "A14"))),
    frozenset(map(rule_id, ("A10", "A11", "A12", "A13", "G01", "G02"))),
    frozenset(map(rule_id, ("B13", "B14"))),
)


SHOW_DRIVER = Command(("nvidia-smi",), "its first line shows the CUDA version of the driver")
COMPATIBILITY = "NVIDIA, CUDA Compatibility"
_GET_VERSION = re.compile(r"cuDriverGetVersion \d{4,6}")

# The lines of the log with the evidence of a rule.
_LINES: Mapping[str, tuple[str, ...]] = {
    "torch": ("torch", "build", "available"),
    "METADATA": ("torch", "machine"),
    "pytorch": ("torch",),
}


@dataclass(frozen=True, slots=True)
class LogCause:
    """A cause: the ``rule`` and the ``finding`` of it, ``says`` in a sentence, and the ``line`` that shows it first.

    ``layer`` is its depth; ``texts`` is True if a text of the log names it. ``names`` are the rules that it may match.
    """

    rule: str
    finding: Finding
    says: str
    line: int
    layer: int
    texts: bool
    names: frozenset[str]
    catalogue: str = ""
    harmless: bool = False

    @property
    def rank(self) -> tuple[bool, int, bool, int]:
        """The sort key, the root first: the deepest layer, then causes named by a text, then the first line."""
        return self.harmless, self.layer, not self.texts, self.line


def causes(log: Log) -> tuple[LogCause, ...]:
    """The causes that a log shows, the root first; each once."""
    named = [_of_text(one) for one in recognise(log)]
    for found in _of_facts(log):
        twin = next((one for one in named if not one.harmless and _is_same(one, found)), None)
        if twin is None:
            named.append(found)
        else:
            named[named.index(twin)] = _with_evidence(twin, found)
    return tuple(sorted(named, key=lambda one: one.rank))


def _of_text(one: Recognition) -> LogCause:
    names = frozenset({one.rule, *map(rule_id, one.entry.get("catalogue", ()))})
    return LogCause(one.rule, one.finding, one.says, one.line, one.rank[1], True, names, one.catalogue, one.harmless)


def _is_same(named: LogCause, found: LogCause) -> bool:
    """Whether a text has named the cause already, or an indistinguishable one."""
    return found.rule in named.names or any(named.rule in group and found.rule in group for group in _SAME)


def _with_evidence(named: LogCause, found: LogCause) -> LogCause:
    """The cause that is named already, with the lines that show it, too."""
    see = [item for item in named.finding.evidence if item.label == "see"]
    shown = [item for one in (named, found) for item in one.finding.evidence if item.label != "see"]
    return replace(named, finding=replace(named.finding, evidence=(*dict.fromkeys(shown), *see)))


# By facts


def _of_facts(log: Log) -> Iterator[LogCause]:
    host = host_of(log)
    if host is None:
        return
    wanted = [rule_id(name) for name in _judged(host)]
    rules = [rule for rule in select_rules("host") if rule.id in wanted]
    for result in run_rules(rules, host.facts, Expectations()):
        if result.outcome is Outcome.FAIL and result.severity is not Severity.NOTE:
            yield _of_result(host, result)
    yield from _of_numpy(host)


def _judged(host: LogHost) -> tuple[str, ...]:
    """The entries of the catalogue whose facts are in the log without a contradiction."""
    judged: tuple[str, ...] = OF_COMPANIONS if host.knows_build else OF_COMPANIONS[:1]
    if host.knows_build and host.lists_gpu and host.sees_gpu is not True:
        judged += OF_BUILD
    elif host.knows_build and "driver" in host.lines and host.sees_gpu is False:
        judged += ("A05",)
    elif host.knows_build and "AMD GPU" in host.lines and host.sees_gpu is False:
        judged += ("A15",)
    torch = host.torch
    if torch is not None and host.lists_gpu:
        lacking = {gpu.name for gpu in gpus_without_code(host.facts, torch)}
        listed = {gpu.name for gpu in host.facts.nvml.gpus} if host.lists_gpu else set()  # type: ignore[union-attr]
        judged += OF_CODE if lacking == listed else ()  # a display card next to the GPU that is used is not a fault
    return judged


def _of_result(host: LogHost, result: CheckResult) -> LogCause:
    cause = CAUSES[result.rule]
    whole = cause.catalogue not in OF_COMPANIONS
    labels = [label for item in result.evidence for label in _LINES.get(item.label, (item.label,))[: 3 if whole else 1]]
    shown = {label: host.lines[label] for label in labels if label in host.lines}
    tables = (item for item in result.evidence if item.label == "code" or item.source == COMPATIBILITY)
    evidence = (
        *dict.fromkeys(Evidence(f"line {one.line}", one.quote) for one in shown.values()),
        *(replace(item, source="") for item in tables),
        Evidence("see", result.rule, "`wheelproof rules`"),
    )
    finding = Finding(result.message, evidence, _fix(host, result) if whole else result.fix, severity=result.severity)
    line = min((one.line for one in shown.values()), default=0)
    names = frozenset({result.rule})
    return LogCause(result.rule, finding, result.message, line, int(cause.layer), False, names, cause.catalogue)


def _fix(host: LogHost, result: CheckResult) -> Fix | None:
    """The fix of the rule; if the log lacks a fact that it needs, a command that shows the fact comes first."""
    if is_of_conda(host.facts):
        return _by_conda(host)
    if result.fix is None or not isinstance(host.facts.system, System):
        return _by_installer(host)
    summary = _GET_VERSION.sub("nvidia-smi", result.fix.summary.replace(" in NVML, table", " in the log, table"))
    first = (SHOW_DRIVER,) if driver_cuda(host.facts) is None else ()
    return replace(result.fix, summary=summary, commands=(*first, *result.fix.commands))


def _by_installer(host: LogHost) -> Fix:
    """The installed release again, in the build that uv chooses on that machine: the log does not say which it is."""
    known = _known_release(host)
    if not known:
        return Fix("Install a torch build for the GPU and the driver that the command shows.", (SHOW_DRIVER,))
    wanted = (f"torch=={known}", *companions(known, host.facts.installed))
    again = (f"--reinstall-package={Requirement(word).name}" for word in wanted)
    install = Command(("uv", "pip", "install", "--torch-backend=auto", *again, *wanted))
    return Fix(f"Install torch {known} again, in the build for this GPU and driver.", (SHOW_DRIVER, install))


def _by_conda(host: LogHost) -> Fix:
    """The installed release again, as a CUDA build that conda chooses by the driver."""
    known, driver = _known_release(host), driver_cuda(host.facts)
    first = () if driver else (SHOW_DRIVER,)
    if not known:
        return Fix("Let conda install a CUDA build of pytorch for the driver.", (SHOW_DRIVER,))
    install = install_with_conda(host.facts, f"pytorch={known}=*cuda*", cuda=driver.version if driver else "")
    return Fix(f"Let conda install a CUDA build of pytorch {known}.", (*first, install))


def _known_release(host: LogHost) -> str:
    """The release of the installed torch, in the spelling of the table; "" if it is not there."""
    version = public(host.torch.version) if host.torch else ""
    return next((str(row["version"]) for row in load("torch_releases")["release"] if row["version"] == version), "")


def _of_numpy(host: LogHost) -> Iterator[LogCause]:
    """NumPy 2 next to a torch that was compiled for NumPy 1."""
    if not host.numpy or host.torch is None or not host.numpy.startswith("2."):
        return
    if Version(public(host.torch.version)) >= _NUMPY_2_FROM:
        return
    entry = next(entry for entry in load("log_texts")["entry"] if rule_of(entry) == NUMPY)
    torch, numpy = host.lines["torch"], host.lines["numpy"]
    found = Recognition(entry, numpy.line, numpy.quote, {})
    message = f"torch {host.torch.version} is built for NumPy 1, and NumPy {host.numpy} is installed"
    evidence = (Evidence(f"line {torch.line}", torch.quote), *found.finding.evidence)
    finding = replace(found.finding, message=message, evidence=evidence)
    yield LogCause(NUMPY, finding, message, min(torch.line, numpy.line), found.rank[1], False, frozenset({NUMPY}))


def in_order(found: Sequence[LogCause]) -> Iterator[tuple[str, Finding]]:
    """The id and the finding of each cause: the root first."""
    for number, one in enumerate(found):
        if not number or one.harmless:
            yield one.rule, one.finding
        else:
            message = f"also in this log: {one.says}"
            yield one.rule, replace(one.finding, message=message, severity=Severity.WARNING)
