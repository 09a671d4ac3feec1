"""The page as a browser shows it."""

from __future__ import annotations

import html
import json
import re
import struct
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Wheelproof
from tests.support import reports
from tests.support.chromium import chromium, read_result
from tests.support.mixed_runs import mixed_runs
from tests.support.rendering import rendered
from wheel_checks.answers.questions import FOLLOWS_FROM
from wheel_checks.model import Outcome, Report
from wheel_checks.report.markdown import LIMIT

pytestmark = pytest.mark.browser

# Runs in a page around the report: the report itself forbids scripts, its frame may still be looked into from outside.
PROBE = """
const frame = document.querySelector("iframe"), inner = frame.contentDocument;
const visible = (element) => element.checkVisibility();
const subject = inner.querySelector("details.subject"), evidence = subject.querySelector(".problem details");
const value = evidence.querySelector("dd");
const states = [visible(value)];
evidence.querySelector("summary").click(); states.push(visible(value));
evidence.querySelector("summary").click(); states.push(visible(value));
subject.querySelector("summary").click(); states.push(visible(value));
document.querySelector("#result").textContent = JSON.stringify({
  states,
  overflow: inner.documentElement.scrollWidth - inner.documentElement.clientWidth,
  requests: frame.contentWindow.performance.getEntriesByType("resource").map((entry) => entry.name),
  styled: frame.contentWindow.getComputedStyle(inner.querySelector(".banner")).borderLeftWidth,
  color: frame.contentWindow.getComputedStyle(inner.body).backgroundColor,
});
"""


def in_frames(tmp_path: Path, frames: Iterable[tuple[str, int, int]], probe: str, *options: str) -> Any:
    """What ``probe`` writes as JSON, after loading each page in a frame of its width and height."""
    shown = "".join(
        f'<iframe style="border:0;width:{width}px;height:{height}px" srcdoc="{html.escape(page)}"></iframe>'
        for page, width, height in frames
    )
    page = f'<!DOCTYPE html>{shown}<pre id="result"></pre><script>onload = () => {{ {probe} }};</script>'
    dom, console = chromium(tmp_path, page, *options)
    assert console == ""
    return read_result(dom)


def probed(
    tmp_path: Path, report: Report, width: int, *options: str, probe: str = PROBE, height: int = 900
) -> dict[str, Any]:
    result: dict[str, Any] = in_frames(tmp_path, [(rendered(report, "html"), width, height)], probe, *options)
    return result


def test_the_page_is_drawn_without_a_word_on_the_console(tmp_path: Path) -> None:
    shot = tmp_path / "shot.png"
    dom, console = chromium(
        tmp_path, rendered(reports.hostile(), "html"), f"--screenshot={shot}", "--window-size=900,700"
    )
    assert console == ""
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in dom
    assert "<script" not in dom
    assert struct.unpack(">II", shot.read_bytes()[16:24]) == (900, 700)


def test_the_console_would_tell_about_a_request(tmp_path: Path) -> None:
    page = rendered(reports.mixed(), "html").replace("<main>", '<main><img src="https://example.test/x.png" alt="">')
    _, console = chromium(tmp_path, page)
    assert "Content Security Policy" in console


# How many lines of findings end above the lower edge of the window, and how many there are.
SCREEN = """
const lines = [...inner.querySelectorAll(".findings li")].filter((line) => visible(line));
const above = lines.filter((line) => line.getBoundingClientRect().bottom <= HEIGHT);
const counted = inner.querySelector(".banner").getBoundingClientRect().bottom <= HEIGHT;
const reachable = [...inner.querySelectorAll(".findings li a")].every((link) => {
  const place = inner.getElementById(link.getAttribute("href").slice(1));
  place.closest("details").open = true;
  return visible(place);
});
document.querySelector("#result").textContent = JSON.stringify({
  above: above.length, all: inner.querySelectorAll(".findings li").length, counted, reachable,
  overflow: inner.documentElement.scrollWidth - inner.documentElement.clientWidth,
});
"""


@pytest.mark.parametrize(("width", "height"), [(1280, 800), (390, 844)])
@pytest.mark.parametrize("count", [7, 20, 57])
def test_the_first_screen_counts_the_failures_and_has_the_first_twenty(
    tmp_path: Path, width: int, height: int, count: int
) -> None:
    wheels = [
        reports.wheel(name=f"package{n}", results=(replace(reports.EXPECTED_CUDA, message=f"fault {n} of a package"),))
        for n in range(count)
    ]
    probe = PROBE.split("const subject", maxsplit=1)[0] + SCREEN.replace("HEIGHT", str(height))
    found = probed(tmp_path, reports.report(*wheels), width, probe=probe, height=height)
    expected = {"above": min(count, 20), "all": count, "counted": True, "reachable": True, "overflow": 0}
    assert found == expected


@pytest.mark.parametrize("width", [400, 1600])
def test_evidence_folds_and_nothing_is_wider_than_the_window(tmp_path: Path, width: int) -> None:
    assert probed(tmp_path, reports.mixed(), width) == {
        "states": [True, False, True, False],
        "overflow": 0,
        "requests": [],
        "styled": "8px",
        "color": "rgb(246, 247, 249)",
    }


def test_a_reader_who_prefers_dark_gets_dark(tmp_path: Path) -> None:
    dark = probed(tmp_path, reports.hostile(), 400, "--blink-settings=preferredColorScheme=0")
    assert (dark["color"], dark["overflow"]) == ("rgb(17, 21, 26)", 0)


# How many findings, subjects and details are shown after each of these clicks.
CHOICES = """
const counts = () => [".findings li", ".subjects tbody tr", "details.subject"].map(
  (what) => [...inner.querySelectorAll(what)].filter((element) => visible(element)).length
);
const states = {};
for (const id of ["", "show-rest", "show-rest", "only-r1", "only-r0", "show-crash", "show-passing"]) {
  inner.getElementById(id)?.click();
  states[`${Object.keys(states).length} ${id}`] = counts();
}
document.querySelector("#result").textContent = JSON.stringify(states);
"""


def test_a_click_shows_the_rest_or_one_rule_alone(tmp_path: Path) -> None:
    faults = [reports.result("WHL301", Outcome.FAIL, f"fault {n}") for n in range(23)]
    crashed = reports.wheel("2.10.0", results=(reports.CRASHED,))
    report = reports.report(reports.wheel(results=tuple(faults)), crashed, reports.wheel("2.9.0"))
    probe = PROBE.split("const subject", maxsplit=1)[0] + CHOICES
    assert probed(tmp_path, report, 1280, probe=probe) == {
        "0 ": [20, 3, 3],
        "1 show-rest": [24, 3, 3],
        "2 show-rest": [20, 3, 3],
        "3 only-r1": [1, 1, 1],
        "4 only-r0": [23, 1, 1],
        "5 show-crash": [23, 1, 1],
        "6 show-passing": [23, 1, 1],
    }


# Of each frame: the part that a reader sees before scrolling, and whether each line leads to a visible place.
RUNS = """
const states = [...document.querySelectorAll("iframe")].map((frame) => {
  const inner = frame.contentDocument, height = frame.clientHeight;
  const above = (element) => element.checkVisibility() && element.getBoundingClientRect().bottom <= height;
  const lines = [...inner.querySelectorAll(".findings li")], banner = inner.querySelector(".banner");
  const state = {
    seen: lines.filter(above).length,
    rules: lines.map((line) => line.querySelector(".rule").textContent),
    banner: above(banner) ? banner.textContent : "",
    overflow: inner.documentElement.scrollWidth - inner.documentElement.clientWidth,
  };
  state.unreachable = lines.filter((line) => {
    const place = inner.getElementById(line.querySelector("a").getAttribute("href").slice(1));
    place.closest("details").open = true;
    return !place.checkVisibility();
  }).length;
  return state;
});
document.querySelector("#result").textContent = JSON.stringify(states);
"""
SCREENS = [(1280, 800), (390, 844)]


def test_twenty_runs_count_their_failures_and_show_the_first_twenty_on_the_first_screen(
    wheelproof: Wheelproof, tmp_path: Path
) -> None:
    runs = dict(mixed_runs(wheelproof, tmp_path))
    assert len(runs) == 20
    pages = [paths.html.read_text() for paths in runs.values()]
    states = in_frames(tmp_path, [(page, *screen) for screen in SCREENS for page in pages], RUNS)

    for name, state in zip([*runs, *runs], states, strict=True):
        subjects = json.loads(runs[name].json.read_text())["subjects"]
        counted = Counter(result["outcome"] for subject in subjects for result in subject["results"])
        found = {r["rule"] for s in subjects for r in s["results"] if r["outcome"] in {"fail", "error"}}
        assert found - FOLLOWS_FROM.keys() <= set(state["rules"]) <= found, name
        assert (state["seen"], state["unreachable"], state["overflow"]) == (min(len(state["rules"]), 20), 0, 0), name
        assert not counted["fail"] or re.search(rf"\b{counted['fail']:,} finding", state["banner"]), name
        assert not counted["error"] or f"{counted['error']:,} not checked" in state["banner"], name
        assert len(runs[name].markdown.read_text()) <= LIMIT, name
    assert max(len(state["rules"]) for state in states) == 300, "more than a screen"
    text = runs["pins"].markdown.read_text()
    [line] = [
        line
        for line in text.splitlines()
        if line.endswith("did not fit into 60,000 characters; the json format has everything.")
    ]
    [left] = re.findall(r"(\d+) findings?\b", line)  # the number of omitted others depends on the length of paths
    assert int(left) + text.count("**error PIN") == 300, "what was cut is counted"
