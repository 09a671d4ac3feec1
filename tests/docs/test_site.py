"""The documentation site: built strictly, whole, and without anything that a reader's browser would fetch elsewhere."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from ci.command_line import read_commands
from tests.docs.conftest import build
from tests.support.patience import PATIENCE
from wheel_checks.catalogue import all_rules

ROOT = Path(__file__).parents[2]
LOADING = {"script": "src", "link": "href", "img": "src", "iframe": "src", "source": "src"}  # loaded by a browser
POINTING = {**LOADING, "a": "href"}
LOADED_RELS = {"stylesheet", "icon", "preload", "modulepreload", "preconnect", "dns-prefetch", "manifest"}


class Page(HTMLParser):
    """The ids of a page, its links, and the files that a browser loads for it."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.targets: list[str] = []
        self.loaded: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        self.ids |= {value for name, value in attrs if name in {"id", "name"} and value}
        target = attributes.get(POINTING.get(tag, "")) or ""
        if not target:
            return
        self.targets.append(target)
        rels = set((attributes.get("rel") or "").split())
        if tag in LOADING and (tag != "link" or rels & LOADED_RELS):
            self.loaded.append(target)


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Page]:
    return {path: Page(path) for path in site.rglob("*.html")}


def test_every_link_of_the_built_pages_leads_somewhere(site: Path, pages: dict[Path, Page]) -> None:
    broken = list(broken_links(site, pages))
    assert not broken, "\n".join(broken)


def broken_links(site: Path, pages: dict[Path, Page]) -> Iterator[str]:
    for path, page in pages.items():
        for target in page.targets:
            parts = urlsplit(target)
            if parts.scheme or parts.netloc or path.name == "404.html":
                continue
            place = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            place = place / "index.html" if place.is_dir() else place
            name = f"{path.relative_to(site)}: {target}"
            if not place.is_file():
                yield name
            elif parts.fragment and place in pages and unquote(parts.fragment) not in pages[place].ids:
                yield f"{name} (no such place in the page)"


def test_a_browser_fetches_nothing_from_elsewhere(site: Path, pages: dict[Path, Page]) -> None:
    assert [target for page in pages.values() for target in page.loaded if urlsplit(target).netloc] == []
    styles = "".join(path.read_text(encoding="utf-8") for path in site.rglob("*.css"))
    assert "url(http" not in styles
    assert "@import" not in styles


def test_every_command_and_every_rule_has_its_place(pages: dict[Path, Page], site: Path) -> None:
    for command in read_commands():
        page = pages[site / f"reference/commands/{command.name.partition(' ')[0]}.html"]
        assert f"wheelproof-{command.name.replace(' ', '-')}" in page.ids
    assert all(site / f"rules/{rule.id}.html" in pages for rule in all_rules())


def test_the_reference_is_what_the_program_says() -> None:
    check = [sys.executable, str(ROOT / "ci/update_reference.py"), "--check"]
    done = subprocess.run(check, capture_output=True, text=True, check=False, timeout=PATIENCE)
    assert (done.stderr, done.returncode) == ("", 0)


def test_a_broken_link_is_seen(tmp_path: Path) -> None:
    (tmp_path / "b.html").write_text('<h1 id="here">B</h1>')
    (tmp_path / "a.html").write_text(
        '<a href="b.html#here"><a href="b.html#there"><img src="c.svg"><a href="mailto:x">'
    )
    pages = {path: Page(path) for path in tmp_path.glob("*.html")}
    assert sorted(broken_links(tmp_path, pages)) == [
        "a.html: b.html#there (no such place in the page)",
        "a.html: c.svg",
    ]


def test_a_broken_link_or_anchor_fails_the_build(tmp_path: Path) -> None:
    config = tmp_path / "mkdocs.yml"
    config.write_text(f"INHERIT: {ROOT / 'mkdocs.yml'}\ndocs_dir: pages\nhooks: []\nnav: [index.md]\n")
    page = tmp_path / "pages/index.md"
    page.parent.mkdir()
    page.write_text("# Start\n\n[here](#start)\n")
    assert build(config, tmp_path / "site").returncode == 0
    page.write_text("# Start\n\n[a page](gone.md), [a place](#nowhere)\n")
    done = build(config, tmp_path / "site")
    assert done.returncode == 1
    assert "'gone.md'" in done.stderr
    assert "'#nowhere'" in done.stderr
