"""Prose is folded on a screen alone; commands in it stay in one piece."""

from __future__ import annotations

import io

import pytest

from wheel_checks.report import folding

TEXT = "a sentence of some length, then `pip install torch==2.11.0 --index-url https://example.org`\n"


@pytest.mark.parametrize(("is_screen", "lines"), [(True, 3), (False, 1)])
def test_text_is_folded_on_a_screen(monkeypatch: pytest.MonkeyPatch, *, is_screen: bool, lines: int) -> None:
    monkeypatch.setattr(folding, "is_screen", lambda _: is_screen)
    monkeypatch.setenv("COLUMNS", "20")
    folded = folding.for_stream(TEXT, io.StringIO()).splitlines()
    assert len(folded) == lines
    assert folded[-1].endswith("`pip install torch==2.11.0 --index-url https://example.org`")
    assert " ".join(" ".join(folded).split()) == TEXT.strip()
