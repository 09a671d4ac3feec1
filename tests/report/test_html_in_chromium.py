"""The page as a browser shows it."""

from __future__ import annotations

import html
import struct
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support import reports
from tests.support.chromium import chromium, read_result
from tests.support.rendering import rendered
from wheel_checks.model import Report

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


def probed(
    tmp_path: Path, report: Report, width: int, *options: str, probe: str = PROBE, height: int = 900
) -> dict[str, Any]:
    inner = html.escape(rendered(report, "html"))
    page = f'<!DOCTYPE html><iframe style="border:0;width:{width}px;height:{height}px" srcdoc="{inner}"></iframe>'
    page += f'<pre id="result"></pre><script>onload = () => {{ {probe} }};</script>'
    dom, console = chromium(tmp_path, page, *options)
    assert console == ""
    result: dict[str, Any] = read_result(dom)
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
