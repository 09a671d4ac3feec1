"""The screens that the pages of the commands open with, and the colours of consoles."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ci.command_line import below, read_commands
from ci.reference import screens
from ci.reference.screens import Screen, as_html
from ci.site_consoles import on_page_content
from tests.support.patience import PATIENCE

ROOT = Path(__file__).parents[2]


def test_each_command_shows_what_its_page_opens_with() -> None:
    assert sorted(screens.screens()) == sorted(command.name for command in below(read_commands()))
    for script in ("ci/update_screens.py", "ci/update_picture.py"):
        check = [sys.executable, str(ROOT / script), "--check"]
        done = subprocess.run(check, capture_output=True, text=True, check=False, timeout=PATIENCE)
        assert (done.stderr, done.returncode) == ("", 0)


def test_a_screen_keeps_colours_by_their_meaning_and_markup_as_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(screens, "HERE", tmp_path)
    (tmp_path / "screens").mkdir()
    shown = "\033[1;31mFAIL\033[0m  <b>\n\n\033[32mpip install a\033[0m\033[2m (1 s)\033[0m\n"
    (tmp_path / "screens/verify.txt").write_text(shown)
    assert as_html(Screen("verify", "wheelproof verify 'a<1'")) == (
        '<pre class="screen"><samp><span class="prompt">$ </span><b>wheelproof verify \'a&lt;1\'</b>\n'
        '<span class="bad strong">FAIL</span>  &lt;b&gt;\n\n'
        '<span class="good">pip install a</span><span class="dim"> (1 s)</span>\n</samp></pre>'
    )


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("FAIL  demo: 1 finding (1 error)", '<span class="bad">FAIL</span>  demo: 1 finding (1 error)'),
        ("torch  CPU  FAIL", 'torch  CPU  <span class="bad">FAIL</span>'),
        ("  error  WHL201  the error", '  <span class="bad">error</span>  WHL201  the error'),
        ("  not checked  MTX203  no report", '  <span class="warn">not checked</span>  MTX203  no report'),
        ("UNDECIDED  PASSED", '<span class="warn">UNDECIDED</span>  PASSED'),
    ],
)
def test_consoles_have_their_verdicts_coloured(line: str, shown: str) -> None:
    page = '<p>FAIL</p><div class="language-console highlight"><pre><span class="go">{}</span></pre></div>'
    assert on_page_content(page.format(line)) == page.format(shown)


def test_the_commands_of_consoles_are_bold() -> None:
    page = '<div class="language-console highlight"><pre><span class="gp">$ </span>{}\n<span class="go">a</span></div>'
    command = 'wheelproof<span class="w"> </span>verify'
    assert on_page_content(page.format(command)) == page.format(f"<b>{command}</b>")
