"""Counts, lists, sizes and durations in words."""

from __future__ import annotations

import pytest

from wheel_checks import phrases


@pytest.mark.parametrize(
    ("count", "words"), [(0, "0 wheels"), (1, "1 wheel"), (2, "2 wheels"), (12_345, "12,345 wheels")]
)
def test_a_count_has_its_noun(count: int, words: str) -> None:
    assert phrases.plural(count, "wheel") == words
    assert phrases.plural(count, "wheel", grouping="") == words.replace(",", "")


@pytest.mark.parametrize(
    ("words", "text"), [([], ""), (["a"], "a"), (["a", "b"], "a and b"), (["a", "b", "c"], "a, b and c")]
)
def test_the_last_word_is_joined_by_and(words: list[str], text: str) -> None:
    assert phrases.joined(words) == text


@pytest.mark.parametrize(
    ("words", "summary", "dots"),
    [([], "", ""), (["a", "b"], "a, b", "a, b"), (["a", "b", "c", "d"], "a, b and 2 more", "a, b, ...")],
)
def test_what_a_list_leaves_out_is_counted_or_shown_by_dots(words: list[str], summary: str, dots: str) -> None:
    assert phrases.summarised(words, 2) == summary
    assert phrases.summarised(dict.fromkeys(words), 2, separator="; ") == summary.replace(",", ";")
    assert phrases.and_so_on(words, 2) == dots


def test_a_thousand_left_out_are_grouped_unless_a_report_never_did() -> None:
    assert phrases.and_more(1000) == " and 1,000 more"
    assert phrases.and_more(1000, before=", ", grouping="") == ", and 1000 more"
    assert phrases.and_more(0) == phrases.and_more(-3, before="; ") == ""


@pytest.mark.parametrize(
    ("count", "words"),
    [
        (0, "0 bytes"),
        (1, "1 byte"),
        (999, "999 bytes"),
        (1000, "1.0 kB"),
        (999_949, "999.9 kB"),
        (999_950, "1.0 MB"),
        (419_731_115, "419.7 MB"),
        (2_100_000_000, "2.1 GB"),
        (7_000_000_000_000_000, "7,000.0 TB"),
    ],
)
def test_sizes_are_decimal(count: int, words: str) -> None:
    assert phrases.human_bytes(count) == words


@pytest.mark.parametrize(("seconds", "words"), [(0, "0.00 s"), (0.414, "0.41 s"), (3.21, "3.2 s"), (75.2, "75 s")])
def test_seconds(seconds: float, words: str) -> None:
    assert phrases.human_seconds(seconds) == words


def test_a_long_string_is_cut_and_says_so() -> None:
    assert phrases.shortened("x" * 12, 10) == "x" * 10 + " [2 more characters]"
    assert phrases.abbreviated("x" * 12, 10) == "x" * 10 + "..."
    assert phrases.shortened("x" * 10, 10) == phrases.abbreviated("x" * 10, 10) == "x" * 10
