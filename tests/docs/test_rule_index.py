"""The index of the rules: every rule in the group of its subject, and the filter that a browser adds."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from ci.reference.log_messages import ANY, messages_of
from ci.reference.rules import pages, subjects
from tests.support.chromium import chromium_file, read_result
from wheel_checks.catalogue import all_rules
from wheel_checks.data import load

PROBE = """
<pre id="result"></pre>
<script>onload = () => {
  const place = document.getElementById("rule-filter"), [text, severity] = place.querySelectorAll("input, select")
  const seen = (selector) => [...document.querySelectorAll(selector)].filter((element) => element.checkVisibility())
  const filtered = (words, least) => {
    text.value = words
    severity.value = least
    text.dispatchEvent(new Event("input", { bubbles: true }))
    const rows = seen("article tbody tr").map((row) => row.cells[0].textContent.trim())
    return { rows, headings: seen("article h3").length, said: place.querySelector("output").textContent }
  }
  const asked = [["", ""], ["doc1", ""], ["triton COMPILER", ""], ["", "note"], ["qqq", ""]]
  document.getElementById("result").textContent = JSON.stringify(asked.map((one) => filtered(...one)))
}</script>
"""


@pytest.mark.browser
def test_the_filter_shows_the_rules_that_have_every_word(site: Path, tmp_path: Path) -> None:
    page = site / "rules/filtered.html"  # next to the page, so that it loads the same files
    page.write_text((site / "rules/index.html").read_text(encoding="utf-8").replace("</body>", f"{PROBE}</body>"))
    dom, _ = chromium_file(tmp_path, page)
    page.unlink()
    everything, prefix, words, notes, nothing = read_result(dom)
    rules = {rule.id: rule for rule in all_rules()}
    assert sorted(everything["rows"]) == sorted(rules)
    assert everything["said"] == f"{len(rules)} rules"
    assert prefix["rows"] == [name for name in rules if name.startswith("DOC1")]
    assert prefix["headings"] == 1
    assert set(words["rows"]) >= {"DOC801"}
    assert all(name.startswith("DOC8") for name in words["rows"])
    assert sorted(notes["rows"]) == [name for name, rule in rules.items() if rule.severity == "note"]
    assert (nothing["rows"], nothing["headings"], nothing["said"]) == ([], 0, "0 rules")


def test_each_rule_has_one_subject_with_its_place_in_the_index() -> None:
    made = pages(all_rules())
    for subject in subjects():
        assert f"\n### {subject.heading}\n" in made["README.md"]
        assert all(f"[{r.id}]({r.id}.md)" in made["README.md"] for r in all_rules() if r.id.startswith(subject.prefix))


def test_a_rule_without_a_subject_is_refused() -> None:
    rules = all_rules()
    with pytest.raises(ValueError, match="ZZZ999"):
        pages([*rules, replace(rules[0], id="ZZZ999")])


def test_the_messages_of_a_rule_are_found_by_its_expressions() -> None:
    expressions = [text for entry in load("log_texts")["entry"] for text in entry["texts"]]
    messages = {message for rule in all_rules() for message in messages_of(rule.id) if ANY not in message}
    assert "Torch not compiled with CUDA enabled" in messages_of("DOC102")
    assert [
        m for m in sorted(messages) if not any(re.search(text, line) for text in expressions for line in (m, f" {m} "))
    ] == []
    assert len(messages) > 100
