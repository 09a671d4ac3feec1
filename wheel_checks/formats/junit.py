"""JUnit reports, as pytest and most other runners write them: which tests ran, and which of them failed.

The files are not trusted: a document type, which could declare entities, is refused, and sizes are bounded. The format
is Jenkins' ``junit-10.xsd``; what runners add to it is ignored.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final
from xml.parsers import expat

from wheel_checks.errors import FormatError

LARGEST = 8 << 20  # bytes of one report; 20,000 tests of pytest take 4 MB
MOST_CASES = 20_000
_DEEPEST = 32  # elements inside one another
_LONGEST = 2000  # characters of a message
_LONGEST_NAME = 400
_SUITES = ("testsuites", "testsuite")
PASSED: Final = "passed"
FAILED: Final = "failed"
ERROR: Final = "error"
SKIPPED: Final = "skipped"
_OUTCOMES = {"failure": FAILED, "error": ERROR, "skipped": SKIPPED}
_NOT_RUN = ("notrun", "disabled")  # how GoogleTest and CTest mark what they did not run, without an element
_WORST = (PASSED, SKIPPED, ERROR, FAILED)  # of a test with several, the last of these holds


@dataclass(frozen=True, slots=True)
class JUnitCase:
    """One test: ``outcome`` is "passed", "failed", "error" or "skipped", ``seconds`` wall time."""

    name: str
    classname: str = ""
    outcome: str = PASSED
    message: str = ""
    seconds: float = 0.0

    @property
    def label(self) -> str:
        """Such as ``tests.test_norm::test_rows[4]``."""
        return f"{self.classname}::{self.name}" if self.classname else self.name

    @property
    def has_failed(self) -> bool:
        """Whether it failed, or could not be run to its end."""
        return self.outcome in (FAILED, ERROR)


@dataclass(frozen=True, slots=True)
class JUnitReport:
    """The tests of a report. ``unnamed`` failures are counted by its suites, without a test that says so."""

    cases: tuple[JUnitCase, ...]
    unnamed: int = 0


def parse_junit(data: bytes) -> JUnitReport:
    """The report in a file. Raises FormatError for any other file, and for one that is too large or too deep."""
    if len(data) > LARGEST:
        raise FormatError(f"it is larger than {LARGEST >> 20} MiB")
    reading = _Reading()
    parser = expat.ParserCreate()
    parser.buffer_text = True
    parser.StartDoctypeDeclHandler = reading.refuse
    parser.StartElementHandler = reading.start
    parser.EndElementHandler = reading.end
    parser.CharacterDataHandler = reading.text
    try:
        parser.Parse(data, True)
    except (expat.ExpatError, ValueError, LookupError) as error:
        raise FormatError(f"it is not XML: {error}") from error
    failures = sum(case.has_failed for case in reading.cases)
    return JUnitReport(tuple(reading.cases), max(0, reading.counted - failures))


@dataclass(slots=True)
class _Reading:
    """``open`` are the elements around the present place; ``counted`` the failures that the outermost suites state."""

    open: list[str] = field(default_factory=list)
    cases: list[JUnitCase] = field(default_factory=list)
    counted: int = 0
    case: JUnitCase | None = None
    words: str = ""

    def refuse(self, *_: object) -> None:
        raise FormatError("it has a document type, which a JUnit report does not need")

    def start(self, tag: str, values: Mapping[str, str]) -> None:
        if not self.open and tag not in _SUITES:
            raise FormatError(f"its first element is {tag[:80]!r}", expected="testsuites or testsuite")
        if len(self.open) >= _DEEPEST:
            raise FormatError(f"its elements are nested more than {_DEEPEST} levels deep")
        if tag == "testsuite" and self.open in ([], ["testsuites"]):
            self.counted += _number(values.get("failures")) + _number(values.get("errors"))
        self.open.append(tag)
        if tag == "testcase":
            if len(self.cases) >= MOST_CASES:
                raise FormatError(f"it has more than {MOST_CASES:,} tests")
            name, classname = (values.get(key, "")[:_LONGEST_NAME] for key in ("name", "classname"))
            outcome = SKIPPED if values.get("status") in _NOT_RUN else PASSED
            self.case = JUnitCase(name, classname, outcome, seconds=_seconds(values.get("time", "")))
        elif self.case is not None and tag in _OUTCOMES and self.open[-2] == "testcase":
            self.words = values.get("message", "")[:_LONGEST]
            if _WORST.index(_OUTCOMES[tag]) > _WORST.index(self.case.outcome):
                self.case = replace(self.case, outcome=_OUTCOMES[tag], message=self.words)

    def text(self, text: str) -> None:
        """The text of a failure says what its message does not."""
        if self.case is not None and self.case.outcome != PASSED and self.open[-1] in _OUTCOMES and not self.words:
            self.case = replace(self.case, message=(self.case.message + text)[:_LONGEST])

    def end(self, tag: str) -> None:
        self.open.pop()
        if tag == "testcase" and self.case is not None:
            self.cases.append(replace(self.case, message=self.case.message.strip()))
            self.case = None


def _number(text: str | None) -> int:
    return int(text) if text and text.isascii() and text.isdecimal() and len(text) < 10 else 0


def _seconds(text: str) -> float:
    try:
        seconds = float(text.replace(",", ""))
    except ValueError:
        return 0.0
    return seconds if 0 <= seconds < 1e9 else 0.0
