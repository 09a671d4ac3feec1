"""The tools of ``wheelproof mcp``: they read and judge, and change nothing.

What a client asks is not trusted: a path must be below a folder that the user allowed, symbolic links resolved; no URL
is contacted but the indexes that uv and pip are configured to use; no program and no interpreter can be named; answers
are bounded. Fixes are text for the user, and nothing executes them.
"""

import contextlib
import functools
from collections.abc import Awaitable, Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import anyio.to_thread
from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from packaging.requirements import InvalidRequirement, Requirement

from wheel_checks.catalogue import all_rules, get_rule
from wheel_checks.errors import UsageError, WheelproofError
from wheel_checks.formats.secrets import redact_text, redacted
from wheel_checks.model import CheckResult, Outcome, Report, Rule
from wheel_checks.report.wording import neutral
from wheelproof import api
from wheelproof.doctor.answer import answer_host
from wheelproof.doctor.diagnosing import examination
from wheelproof.doctor.explain import explain as explain_log
from wheelproof.version import __version__

MOST_FINDINGS, MOST_COMMANDS, MOST_TEXT = 20, 5, 600  # of an answer, of a fix, and characters of each text
LARGEST_LOG = 1 << 20  # characters
MOST_TARGETS = 50
DEADLINE = 120.0  # seconds that the network may take in one call
DEPTHS = ("quick", "links", "gpu")
INSTRUCTIONS = (
    "Judges CUDA wheels, requirement sets, logs and this host. Nothing is installed, changed or executed. A verdict is "
    "pass, fail or undecided; undecided means that something could not be checked, and is not a pass. The commands of "
    "a fix are for the user to run."
)

Answered = TypeVar("Answered")
Tool = Callable[..., Awaitable[Answered]]


def make_server(allowed: Sequence[str], *, offline: bool = False) -> MCPServer:
    """The server, which may read below the folders ``allowed``."""
    server = MCPServer("wheelproof", instructions=INSTRUCTIONS, version=__version__, log_level="ERROR")
    places = _Places(allowed)

    @server.tool()
    @_in_sentences
    async def verify(
        targets: list[str], platform: str = "", python: str = "", expect: str = "", gpu: str = "", depth: str = "quick"
    ) -> dict[str, Any]:
        """Judge wheels: requirements on the configured index (torch==2.11.0), .whl files and folders that are allowed.

        platform: x86_64, aarch64. python: 3.12. expect: cuda==13.0, cpu. gpu: GB200,H100. depth: quick, links, gpu.
        """
        if depth not in DEPTHS:
            raise UsageError(f"{depth!r} is not a depth of this tool", expected=f"one of {', '.join(DEPTHS)}")
        named = [text for target in _few(targets) for text in places.targets(target)]
        report = await _in_thread(
            api.verify,
            named,
            api.Options(
                platform=_several(platform),
                python=_several(python),
                expect=expect,
                gpu=gpu,
                depth=depth,
                offline=offline,
                deadline=DEADLINE,
            ),
        )
        return summary(report)

    @server.tool()
    @_in_sentences
    async def stack(
        requirements: list[str], platform: str = "", python: str = "", gpu: str = "", expect: str = ""
    ) -> dict[str, Any]:
        """Resolve requirements (vllm==0.20.0) for a platform, Python and GPU, and judge every wheel: will it run?"""
        report = await _in_thread(
            api.stack,
            [requirement(text) for text in _few(requirements)],
            api.Options(
                platform=_several(platform),
                python=_several(python),
                expect=expect,
                gpu=gpu,
                offline=offline,
                deadline=DEADLINE,
            ),
        )
        return summary(report)

    @server.tool()
    @_in_sentences
    async def explain(log: str) -> dict[str, Any]:
        """The cause of the failure that a log shows (a traceback, what pip, docker or dmesg wrote), and its fix."""
        if len(log) > LARGEST_LOG:
            raise UsageError(f"the log has {len(log):,} characters; the limit is {LARGEST_LOG:,}", hint="send its end")
        return summary(await _in_thread(explain_log, log.encode(errors="replace"), "the log"))

    @server.tool()
    @_in_sentences
    async def rules(names: list[str] | None = None) -> dict[str, Any]:
        """What rules mean: the pages of these ids (WHL201), or the titles of all rules."""
        if names:
            return {"rules": [_page(get_rule(name)) for name in names[:MOST_FINDINGS]]}
        every = await _in_thread(all_rules)
        return {"rules": [{"id": rule.id, "title": rule.title} for rule in every]}

    @server.tool()
    @_in_sentences
    async def doctor(expect: str = "") -> dict[str, Any]:
        """Why torch does not see the GPU of this host. expect: what it should have, such as gpu, cpu, 4 x GB200."""
        return await _in_thread(functools.partial(_diagnosis, expect=expect))

    @server.tool()
    @_in_sentences
    async def doctor_facts(file: str, expect: str = "") -> dict[str, Any]:
        """The diagnosis of another host, from a file of `wheelproof doctor --save-facts` below an allowed folder."""
        return await _in_thread(functools.partial(_diagnosis, expect=expect, facts=places.path(file)))

    return server


class _Places:
    """The folders that were allowed, symbolic links resolved."""

    def __init__(self, allowed: Sequence[str]) -> None:
        self._folders = tuple(Path(folder).resolve() for folder in allowed)

    def path(self, text: str) -> Path:
        """The real path of a file or folder. Raises UsageError for one that is not below a folder that is allowed."""
        for folder in self._folders:
            with contextlib.suppress(OSError, RuntimeError, ValueError):  # too long, a loop of links, a null character
                real = (folder / text).resolve()  # an absolute path stays what it is
                if real.is_relative_to(folder) and real.exists():
                    return real
        raise UsageError(
            f"{text} is not below a folder that was allowed, or does not exist",
            expected=", ".join(map(str, self._folders)) or "a folder that the user allowed with --allow",
        )

    def targets(self, text: str) -> list[str]:
        """What ``verify`` is to judge: a requirement, or the real paths of wheels. Raises UsageError."""
        is_path = text.endswith(".whl") or "/" in text or text in {".", ".."}
        if not is_path and not any(_is_there(folder / text) for folder in self._folders):
            return [requirement(text)]
        found = self.path(text)
        if not found.is_dir():
            return [str(found)]
        wheels = sorted(found.glob("*.whl"))
        if not wheels:
            raise UsageError(f"the folder {text} contains no wheel", expected="files ending in .whl")
        return [str(self.path(str(wheel))) for wheel in _few(wheels)]


def requirement(text: str) -> str:
    """A requirement by name and version. Raises UsageError for a URL or anything else.

    A file or folder with the name of a package is not a wheel here, unless its path says so.
    """
    try:
        parsed = Requirement(text)
    except InvalidRequirement as error:
        what = f"{text!r} is not a requirement: {str(error).splitlines()[0]}"
        raise UsageError(what, expected="for example torch==2.11.0") from None
    if parsed.url:
        raise UsageError(f"{text!r} names a URL; only the configured indexes are queried", expected="a version")
    if _is_there(Path(text)):
        raise UsageError(f"{text!r} is also a file in the folder of the server", expected=f"{text}>=0")
    return text


def _is_there(path: Path) -> bool:
    with contextlib.suppress(OSError, ValueError):
        return path.exists()
    return False


def summary(report: Report) -> dict[str, Any]:
    """The verdict, the answers, and the findings, worst first; bounded, and without secrets."""
    shown: Report = redacted(report)
    found = [(s.id, r) for s in shown.subjects for r in s.results if r.outcome in {Outcome.FAIL, Outcome.ERROR}]
    found.sort(key=lambda pair: (pair[1].outcome is not Outcome.FAIL, -pair[1].severity.rank))
    answer: dict[str, Any] = {
        "verdict": report.verdict.value,
        "answers": [_text(answer.line) for answer in shown.answers[:MOST_FINDINGS]],
        "subjects": len(report.subjects),
        "passed": report.count(Outcome.PASS),
        "findings": [_finding(name, result) for name, result in found[:MOST_FINDINGS]],
    }
    if len(found) > MOST_FINDINGS:
        answer["left_out"] = len(found) - MOST_FINDINGS
    return answer


def _in_sentences(tool: Tool[Answered]) -> Tool[Answered]:
    """The tool, whose errors reach the client as sentences; what else is raised is a bug, and shows no detail."""

    @functools.wraps(tool)
    async def answered(*arguments: Any, **options: Any) -> Answered:
        try:
            return await tool(*arguments, **options)
        except WheelproofError as error:
            raise ToolError(_text(redact_text(str(error)))) from None

    return answered


def _diagnosis(expect: str = "", facts: Path | None = None) -> dict[str, Any]:
    found = examination(expect=expect, facts=facts)
    diagnosis = found.diagnosis
    answer = answer_host(found.facts, diagnosis, found.results, found.expected)
    errors = [result for result in found.results if result.outcome is Outcome.FAIL]
    errors.sort(key=lambda result: (result != diagnosis.root, -result.severity.rank))
    shown: dict[str, Any] = redacted(
        {
            "verdict": answer.verdict.value,
            "answers": [_text(answer.line)],
            "root": diagnosis.root.rule if diagnosis.root else None,
            "confidence": diagnosis.confidence,
            "symptoms": list(diagnosis.symptoms)[:MOST_FINDINGS],
            "findings": [_finding("this host" if facts is None else facts.name, r) for r in errors[:MOST_FINDINGS]],
        }
    )
    return shown


def _finding(subject: str, result: CheckResult) -> dict[str, Any]:
    found: dict[str, Any] = {
        "rule": result.rule,
        "subject": _text(subject),
        "severity": "undecided" if result.outcome is Outcome.ERROR else result.severity.value,
        "message": _text(result.message),
    }
    if result.fix:
        found["fix"] = _text(result.fix.summary)
        found["commands_for_the_user"] = [_text(line) for line in result.fix.lines[:MOST_COMMANDS]]
    return found


def _page(rule: Rule) -> dict[str, str]:
    return {name: str(getattr(rule, name)) for name in ("id", "title", "severity", "kind", "why", "example", "fix")}


def _text(text: str) -> str:
    clean = neutral(text)
    return clean if len(clean) <= MOST_TEXT else f"{clean[:MOST_TEXT]}..."


def _several(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


Item = TypeVar("Item")


def _few(items: Iterable[Item]) -> list[Item]:
    every = list(items)
    if not 0 < len(every) <= MOST_TARGETS:
        raise UsageError(f"{len(every)} were named", expected=f"1 to {MOST_TARGETS}")
    return every


async def _in_thread(function: Callable[..., Answered], *arguments: Any, **options: Any) -> Answered:
    """Run in a thread, so that the server answers meanwhile."""
    return await anyio.to_thread.run_sync(functools.partial(function, *arguments, **options))
