"""A badge: the verdict of a report as a small picture, an SVG that loads nothing."""

from __future__ import annotations

from html import escape

from wheel_checks.model import Report, Verdict
from wheel_checks.phrases import plural, shortened
from wheel_checks.report.wording import neutral

_COLOURS = {Verdict.PASS: "#14713d", Verdict.FAIL: "#b3202c", Verdict.UNDECIDED: "#77309b"}  # white text reads on each
_CHARACTER, _MARGIN, _HEIGHT = 7, 12, 20  # pixels: of text of 11, which is stretched to what it is given
_LONGEST = 60  # characters

_SVG = """\
<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" role="img" aria-label="{title}">
<title>{title}</title>
<clipPath id="round"><rect width="{width}" height="{height}" rx="3"/></clipPath>
<g clip-path="url(#round)">
<rect width="{left}" height="{height}" fill="#3b444e"/>
<rect x="{left}" width="{right}" height="{height}" fill="{colour}"/>
</g>
<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11">
<text x="{label_x}" y="14" textLength="{label_length}">{label}</text>
<text x="{message_x}" y="14" textLength="{message_length}">{message}</text>
</g>
</svg>
"""


def message_of(report: Report) -> str:
    """The verdict and of how many: ``pass``, ``pass: 24 cells``, ``undecided: 3 of 24 cells``."""
    verdict = report.verdict
    verdicts = [report.verdict_of(subject) for subject in report.subjects]
    if len(verdicts) < 2:
        return str(verdict)
    kinds = {subject.kind for subject in report.subjects}
    judged = plural(len(verdicts), kinds.pop() if len(kinds) == 1 else "subject")
    count = sum(each is verdict for each in verdicts)
    return f"{verdict}: {judged}" if count in {0, len(verdicts)} else f"{verdict}: {count} of {judged}"


def badge(report: Report, label: str) -> str:
    """The SVG: ``label`` on the left, :func:`message_of` on the right; its title says both."""
    texts = [shortened(neutral(text), _LONGEST) for text in (label, message_of(report))]
    lengths = [_CHARACTER * len(text) for text in texts]
    left, right = (length + _MARGIN for length in lengths)
    label, message = map(escape, texts)
    return _SVG.format(
        width=left + right,
        height=_HEIGHT,
        left=left,
        right=right,
        colour=_COLOURS[report.verdict],
        title=escape(f"{texts[0]}: {texts[1]}"),
        label=label,
        message=message,
        label_x=_MARGIN // 2,
        label_length=lengths[0],
        message_x=left + _MARGIN // 2,
        message_length=lengths[1],
    )
