"""The repository's address has one place, ``[project.urls]``; every other mention of its account agrees."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]
(ADDRESS,) = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["urls"].values()
OWNER, NAME = ADDRESS.removeprefix("https://github.com/").split("/")
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def test_pages_name_the_repository_of_the_project() -> None:
    address = rf"(?:github\.com/|uses: )([\w-]+)/{NAME}\b"
    named = {owner for page in PAGES for owner in re.findall(address, page.read_text())}
    assert named == {OWNER}


def test_the_owner_of_the_code_is_that_of_the_repository() -> None:
    rows = (ROOT / ".github/CODEOWNERS").read_text().splitlines()
    owners = {row.split()[-1] for row in rows if row and not row.startswith("#")}
    assert owners == {f"@{OWNER}"}


def test_every_owned_path_exists() -> None:
    rows = (ROOT / ".github/CODEOWNERS").read_text().splitlines()
    paths = [row.split()[0] for row in rows if row.startswith("/")]
    assert paths
    assert all((ROOT / path.strip("/")).exists() for path in paths)


def test_a_report_of_a_fault_asks_for_facts() -> None:
    for name in ("bug", "wrong-verdict"):
        form = yaml.safe_load((ROOT / f".github/ISSUE_TEMPLATE/{name}.yml").read_text())
        facts = next(part for part in form["body"] if part.get("id") == "facts")
        assert "doctor --save-facts" in facts["attributes"]["description"]
        assert facts["validations"]["required"]


def test_dependabot_looks_where_the_pins_are() -> None:
    updates = yaml.safe_load((ROOT / ".github/dependabot.yml").read_text())["updates"]
    assert {one["package-ecosystem"] for one in updates} == {"github-actions", "pip"}
    (folder,) = (one["directory"] for one in updates if one["package-ecosystem"] == "pip")
    assert (ROOT / folder.strip("/") / "constraints.txt").exists()
