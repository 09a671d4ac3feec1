"""uv's explanation when it finds no solution: given these words, these sentences. The words are uv's own."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wheel_checks.sources.uv.explanation import explain, unwrapped

CONFLICT = """\
error: No solution found when resolving dependencies
  cause: Because vllm==0.19.0 depends on torch==2.10.0 and you require vllm==0.19.0, we can conclude that
         you require torch==2.10.0.
         And because you require torch==2.11.0, we can conclude that your requirements are unsatisfiable.
"""

BOXED = """\
  \N{MULTIPLICATION SIGN} No solution found when resolving dependencies:
  ╰─▶ Because vllm==0.19.0 depends on torch==2.10.0 and you
      require vllm==0.19.0, we can conclude that you require torch==2.10.0.
      And because you require torch==2.11.0, we can conclude that your
      requirements are unsatisfiable.
"""

NO_WHEEL = """\
error: No solution found when resolving dependencies
  cause: Because only-src==1.0 has no usable wheels and only only-src==1.0 is available, we can
         conclude that all versions of only-src cannot be used.
         And because all versions of demo depend on only-src and you require demo, we can
         conclude that your requirements are unsatisfiable.

hint: Wheels are required for `only-src` because building from source is disabled for all packages (i.e., with
      `--no-build`)
"""


@pytest.mark.parametrize("words", [CONFLICT, BOXED], ids=["since 0.10", "up to 0.9"])
def test_who_demands_what(words: str) -> None:
    explanation = explain(words)
    assert explanation is not None
    assert explanation.sentences == (
        "vllm==0.19.0 depends on torch==2.10.0 and you require vllm==0.19.0",
        "you require torch==2.11.0",
    )
    assert list(map(str, explanation.demands)) == [
        "you require vllm==0.19.0",
        "you require torch==2.11.0",
        "vllm==0.19.0 depends on torch==2.10.0",
    ]
    assert explanation.unusable == ()


def test_a_package_without_a_usable_wheel() -> None:
    explanation = explain(NO_WHEEL)
    assert explanation is not None
    assert explanation.unusable == ("only-src",)
    assert "all versions of demo depends on only-src" not in str(explanation)
    assert str(explanation.demands[1]) == "all versions of demo depends on only-src"
    assert explanation.hints == (
        "Wheels are required for `only-src` because building from source is disabled for all packages "
        "(i.e., with `--no-build`)",
    )


@pytest.mark.parametrize(
    ("because", "unusable"),
    [
        ("torch==2.4.0 has no wheels with a matching Python ABI tag (e.g., `cp313`)", "torch"),
        ("nosuch was not found in the package registry and you require nosuch", "nosuch"),
        ("gone==1.0 has no wheels with a matching platform tag (e.g., `manylinux_2_39_aarch64`)", "gone"),
    ],
)  # fmt: skip
def test_what_makes_a_package_unusable(because: str, unusable: str) -> None:
    explanation = explain(f"error: No solution found when resolving dependencies\n  cause: Because {because}, we can conclude that your requirements are unsatisfiable.")  # fmt: skip  # noqa: E501  # as uv writes it
    assert explanation is not None
    assert explanation.unusable == (unusable,)


def test_a_version_that_does_not_exist_is_a_matter_of_versions() -> None:
    explanation = explain(
        "error: No solution found when resolving dependencies\n  cause: Because there is no torch version==2.99 "
        "and you require torch==2.99, we can conclude that your requirements are unsatisfiable."
    )
    assert explanation is not None
    assert explanation.unusable == ()


def test_other_words_are_no_explanation() -> None:
    words = "error: Request failed after 3 retries\n  cause: Failed to fetch: http://example.org/simple/demo/"
    assert explain(words) is None
    assert unwrapped(words)[0] == "Request failed after 3 retries: Failed to fetch: http://example.org/simple/demo/"


@given(st.text() | st.text().map(lambda text: f"No solution found when resolving dependencies:\nBecause {text}"))
def test_no_words_crash_it(words: str) -> None:
    explanation = explain(words)
    assert explanation is None or isinstance(str(explanation), str)


@pytest.mark.parametrize(
    "unit", ["Because ", "a", "a depends on ", "you require ", "│ \n", "because, we can conclude that "]
)
def test_endless_words_take_no_time(unit: str) -> None:
    words = "No solution found when resolving dependencies:\nBecause " + unit * (1_000_000 // len(unit))
    explanation = explain(words)
    assert explanation is not None
    assert len(explanation.sentences) <= 13
