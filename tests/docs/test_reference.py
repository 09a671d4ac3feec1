"""The sources of the reference are complete, and no text becomes markup by accident."""

from __future__ import annotations

import html
import tomllib
from pathlib import Path

import pytest

from ci.command_line import below, read_commands
from ci.reference import commands, settings, tables
from ci.reference.markdown import code, text
from wheel_checks.facts.host.codec import to_json
from wheel_checks.facts.host.facts import HostFacts

ROOT = Path(__file__).parents[2]
DATA = sorted(tables.FOLDER.glob("*.toml"))


@pytest.mark.parametrize("path", DATA, ids=lambda path: path.stem)
def test_every_row_and_every_comment_of_a_table_is_on_its_page(path: Path) -> None:
    content = path.read_text(encoding="utf-8")
    page = tables.pages()[f"tables/{path.stem}.md"]
    lines = page.splitlines()
    shown = sum(line.startswith("| ") for line in lines)
    heads = sum(line.startswith("| --- ") for line in lines)
    values = tomllib.loads(content).values()
    rows = sum(len(value) if tables.is_table(value) else 1 for value in values)
    assert shown - 2 * heads == rows
    words = " ".join(html.unescape(page).replace("`", "").split())
    for line in content.splitlines():
        if line.startswith("# "):
            assert " ".join(line[2:].replace("`", "").replace("[[", "").replace("]]", "").split()) in words


def test_a_comment_stands_above_the_rows_that_follow_it() -> None:
    first = "# Builds. Seen.\n\n# From the index.\n[[build]]\nname = 'a'\npattern = 'x|y'\n"
    content = f"{first}# By hand.\n[[build]]\nname = 'b'\n"
    page = tables.page_of("builds", content)
    places = [page.index(part) for part in ("Builds. Seen.", "From the index.", "| a |", "By hand.", "| b |")]
    assert places == sorted(places)
    assert "<code>x&#124;y</code>" in page


def test_a_line_of_a_text_is_no_comment() -> None:
    page = tables.page_of("logs", "[[entry]]\nsays = '''\n# of a log\n'''\n")
    assert "| # of a log |" in page


def test_text_is_shown_as_it_is_written() -> None:
    assert text("a*b* [c] <d> sm_100 _e_") == "a&#42;b&#42; &#91;c&#93; &lt;d&gt; sm_100 &#95;e&#95;"
    assert text("say `a|b` now") == "say <code>a&#124;b</code> now"
    assert code("--flag") == "`--flag`"


def test_every_option_is_on_the_page_of_its_command() -> None:
    command_line = read_commands()
    pages = commands.pages(command_line)
    common = html.unescape(pages["commands/common_options.md"])
    for command in command_line:
        page = html.unescape(pages[f"commands/{command.name.partition(' ')[0]}.md"])
        for option in command.options:
            flags = set(option.option_strings) - {"-h", "--help"}
            assert all(f"`{flag}`" in page or f"`{flag}`" in common for flag in flags)


def test_every_command_says_where_to_read_more() -> None:
    names = {name.partition(" ")[0] for name in commands.READ_MORE}
    assert {command.name for command in below(read_commands())} - names <= {"verify", "rules"}


def test_the_keys_of_the_configuration_are_those_of_the_commands() -> None:
    page = settings.configuration(read_commands())
    assert "| `fail-on` | `WHEELPROOF_FAIL_ON` | <code>error&#124;warning&#124;never</code> | all |" in page
    assert "| `max-size` | `WHEELPROOF_MAX_SIZE` | `SIZE` | verify |" in page
    assert "`pins rewrite`" in page.rpartition("Not configured: ")[2]


def test_the_fields_of_a_host_are_those_of_its_file() -> None:
    page = (ROOT / "docs/reference/schemas/host.md").read_text(encoding="utf-8")
    assert to_json(HostFacts())["schema"] in page
    assert all(f"| `{field}` |" in page for field in HostFacts.__dataclass_fields__)
