"""A hook of mkdocs: the search data of each page. ``site_search.toml`` has boosts and words.

A page of a rule is one entry instead of one for each of its headings, since Why, Example and Fix answer one question.
The links to related rules are left out of it, or a query for one rule would find all that name it.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from mkdocs.plugins import event_priority

FIELD = "words"  # of the index, with its own boost in mkdocs.yml; it is never shown
MESSAGES = "messages"  # as FIELD: each word of a rule's messages once, since a long list of them is no better answer
NOT_OF_THE_RULE = ("#related-rules", "#commands")
# lunr merges nodes of its index by this text, in which a digit of a word and the number of a node run together: with an
# unlucky set of words it then looks up a word that is not there, and a query ends with an error (lunr 2.3.9).
AMBIGUOUS, SEPARATED = "e=e+s+o.id}", 'e=e+s+o.id+","}'


@event_priority(100)  # before the plug-in of the theme writes the index
def on_post_build(config: Any, **_: Any) -> None:
    """Change the entries of the search index, and mend lunr. Raises ValueError for words of a page that there isn't."""
    table = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
    index = config.plugins["material/search"].search_index
    index.entries = merge_rules(index.entries)
    pages = {entry["location"]: entry for entry in index.entries}
    if unknown := table["words"].keys() - pages.keys():
        raise ValueError(f"site_search.toml has words of pages that the site does not have: {sorted(unknown)}")
    for location, words in table["words"].items():
        pages[location][FIELD] = words
    for entry in index.entries:
        fitting = [place for place in table["boost"] if entry["location"].startswith(place)]
        if fitting:
            entry["boost"] = table["boost"][max(fitting, key=len)]
    (worker,) = Path(config.site_dir).glob("assets/javascripts/workers/search.*.min.js")
    code = worker.read_text(encoding="utf-8")
    if AMBIGUOUS not in code:
        raise ValueError(f"{worker.name} has another lunr: is AMBIGUOUS of ci/site_search.py still needed?")
    worker.write_text(code.replace(AMBIGUOUS, SEPARATED), encoding="utf-8")


def merge_rules(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The entries with one for each rule."""
    result: list[dict[str, Any]] = []
    for entry in entries:
        page, _, place = entry["location"].partition("#")
        if not (place and page.startswith("rules/") and page != "rules/index.html"):
            result.append(entry)
        elif place == "in-a-log":
            words = re.sub(r"<[^>]*>", " ", entry["text"]).split()
            result[-1][MESSAGES] = " ".join(dict.fromkeys(words))
        elif not entry["location"].endswith(NOT_OF_THE_RULE):
            result[-1]["text"] += f" {entry['text']}"
    return result
