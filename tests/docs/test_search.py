"""The search of the site: what people type leads to the page that answers it.

The site's own search worker runs over its own index, in Chromium. It is no worker there, since a page from a file may
not start one.
"""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

from ci.site_search import merge_rules
from tests.support.chromium import chromium, read_result

QUERIES = tomllib.loads(Path(__file__).with_name("queries.toml").read_text(encoding="utf-8"))["query"]
FIRST = 3

PROBE = """
<pre id="result"></pre>
<script>window.Worker = class { postMessage(message) { last = answer({ data: message }) } }</script>
<script>SITE</script>
<script id="worker" type="text/plain">WORKER</script>
<script>
  let answer, last, result
  const start = new Function("addEventListener", "postMessage", document.getElementById("worker").textContent)
  start((_, handler) => answer = handler, (message) => result = message)
  const worker = new Worker()
  const ask = async (type, data) => { worker.postMessage({ type, data }); await last; return result.data }
  ;(async () => {  // nothing in it waits for the network or a timer, so all of it runs before the page has loaded
    await ask(0, { ...INDEX, options: { suggest: false } })
    const places = []
    for (const query of QUERIES) {
      const { items } = await ask(2, query)
      places.push(items.map((sections) => sections[0].location.split("#")[0]))
    }
    document.getElementById("result").textContent = JSON.stringify(places)
  })()
</script>
"""


def find(site: Path, tmp_path: Path, queries: list[str]) -> list[list[str]]:
    """The pages that the search lists for each query, best first."""
    (worker,) = (site / "assets/javascripts/workers").glob("search.*.min.js")
    source = worker.read_text(encoding="utf-8")
    assert "</script" not in source
    index = (site / "search/search_index.json").read_text(encoding="utf-8").replace("<", "\\u003c")
    page = PROBE.replace("QUERIES", json.dumps(queries)).replace("SITE", (site / "site.js").read_text(encoding="utf-8"))
    page = page.replace("WORKER", source).replace("INDEX", index)
    dom, console = chromium(tmp_path, page)
    assert console == ""
    places: list[list[str]] = read_result(dom)
    return places


@pytest.mark.browser
def test_each_query_leads_to_its_page(site: Path, tmp_path: Path) -> None:
    missed = []
    found = find(site, tmp_path, [query["text"] for query in QUERIES])
    for query, places in zip(QUERIES, found, strict=True):
        pages = {page.replace("README.md", "index.md").removesuffix(".md") + ".html" for page in query["pages"]}
        assert all((site / page).is_file() for page in pages), query
        if not pages & set(places[:FIRST]):
            missed.append(f"{query['text']}: {sorted(pages)} not among {places[:FIRST]}")
    assert not missed, "\n".join(missed)


@pytest.mark.browser
def test_the_search_finds_what_is_there_and_nothing_else(site: Path, tmp_path: Path) -> None:
    found = find(site, tmp_path, ["DOC105", "qqqxyz", "--no-build-isolation", "exit code 2"])
    assert found[0][0] == "rules/DOC105.html"
    assert found[1] == []
    assert all(found[2:])  # a dash before a word, and a word that begins like one with a star, ended with an error


def test_a_rule_is_one_entry_with_each_word_of_its_messages_once() -> None:
    entries = [
        {"location": "rules/DOC105.html", "title": "DOC105", "text": "Severity"},
        {"location": "rules/DOC105.html#why", "title": "Why", "text": "<p>CUDA</p>"},
        {"location": "rules/DOC105.html#in-a-log", "title": "In a log", "text": "<pre>too old\ntoo new</pre>"},
        {"location": "rules/DOC105.html#related-rules", "title": "Related rules", "text": "DOC106"},
        {"location": "rules/index.html", "title": "Rules", "text": ""},
        {"location": "rules/index.html#doc0", "title": "DOC0", "text": ""},
    ]
    rule, *others = merge_rules([dict(entry) for entry in entries])
    assert rule == {**entries[0], "text": "Severity <p>CUDA</p>", "messages": "too old new"}
    assert others == entries[4:]
