"""Progress is one line on a terminal, nothing anywhere else, and gone at the end."""

from __future__ import annotations

import io
import threading

import pytest

from wheelproof.cli import progress
from wheelproof.cli.options.output import say
from wheelproof.cli.progress import Progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def draw_always(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "INTERVAL", 0)


@pytest.mark.usefixtures("draw_always")
def test_a_terminal_sees_the_line_grow_and_go() -> None:
    terminal = Terminal()
    with Progress("reading", 10, stream=terminal) as shown:
        shown.read(4_100_000)
        shown.advance(3)
    lines = terminal.getvalue().replace("\x1b[K", "").split("\r")
    assert lines == [
        "",
        "reading 0 of 10 wheels",
        "reading 0 of 10 wheels, 4.1 MB",
        "reading 3 of 10 wheels, 4.1 MB",
        "",
    ]


def test_it_is_drawn_ten_times_a_second_at_most() -> None:
    terminal = Terminal()
    with Progress("reading", stream=terminal) as shown:
        shown._last_drawn = float("inf")
        shown.advance()
    assert terminal.getvalue() == "\rreading 0 wheels\x1b[K\r\x1b[K"


@pytest.mark.parametrize(("quiet", "stream"), [(False, io.StringIO()), (True, Terminal())])
def test_a_pipe_or_quiet_shows_nothing(quiet: bool, stream: io.StringIO) -> None:
    with Progress("reading", 2, quiet=quiet, stream=stream) as shown:
        shown.advance(2)
    assert stream.getvalue() == ""


@pytest.mark.usefixtures("draw_always")
def test_a_long_line_does_not_wrap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "12")
    terminal = Terminal()
    with Progress("reading", 10, stream=terminal):
        pass
    assert terminal.getvalue() == "\rreading 0 o\x1b[K\r\x1b[K"


def test_threads_lose_no_count() -> None:
    with Progress("reading", 4000, stream=io.StringIO()) as shown:

        def work() -> None:
            for _ in range(1000):
                shown.advance()

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert str(shown) == "reading 4000 of 4000 wheels"


@pytest.mark.usefixtures("draw_always")
def test_a_terminal_that_goes_away_does_not_stop_the_work() -> None:
    class Gone(Terminal):
        def write(self, text: str) -> int:
            raise BrokenPipeError

    with Progress("reading", 1, stream=Gone()) as shown:
        shown.advance()
    assert str(shown) == "reading 1 of 1 wheels"


class Clock:
    """Seconds that a test lets pass."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        monkeypatch.setattr("wheelproof.cli.progress.time.monotonic", lambda: self.now)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    monkeypatch.setattr(progress, "TICK", 3600)
    return Clock(monkeypatch)


def ended_at(clock: Clock, seconds: list[float], *, alike: bool = True) -> Progress:
    """Of ten units as many as there are numbers, each ended at its second."""
    with Progress("reading", 10, alike=alike, stream=Terminal()) as shown:
        for second in seconds:
            clock.now = second
            shown.advance()
    return shown


def test_a_steady_pace_gives_the_time_that_is_left(clock: Clock) -> None:
    shown = ended_at(clock, [2, 4, 6, 8, 10, 12])
    assert shown.seconds_left(12) == pytest.approx(8)
    assert str(shown) == "reading 6 of 10 wheels, about 10 s left"


@pytest.mark.parametrize(
    ("ends", "now"),
    [
        ([1, 2, 3, 4], 4),  # too few
        ([0.1, 0.2, 0.3, 0.4, 0.5], 0.5),  # too soon
        ([0.1, 0.2, 0.3, 0.4, 6, 12], 12),  # cached units end at once
        ([2, 4, 6, 8, 10, 12], 40),  # a stall
    ],
)
def test_no_estimate_is_better_than_a_wrong_one(clock: Clock, ends: list[float], now: float) -> None:
    assert ended_at(clock, ends).seconds_left(now) is None


def test_units_of_many_sizes_show_the_time_that_has_passed(clock: Clock) -> None:
    shown = ended_at(clock, [2, 4, 6, 8, 10, 12], alike=False)
    assert str(shown) == "reading 6 of 10 wheels, 12 s"


def test_bytes_whose_number_is_known_give_the_time_that_is_left(clock: Clock) -> None:
    with Progress("reading reports:", unit="reports", size=100_000_000, stream=Terminal()) as shown:
        for second in range(1, 7):
            clock.now = second
            shown.read(10_000_000)
    assert str(shown) == "reading reports: 0 reports, 60.0 MB of 100.0 MB, about 5 s left"


def test_what_else_is_written_finds_the_line_empty(capsys: pytest.CaptureFixture[str]) -> None:
    terminal = Terminal()
    with Progress("reading", 2, stream=terminal):
        say("note: something")
        assert terminal.getvalue().endswith("\r\x1b[K")
    assert capsys.readouterr().err == "note: something\n"
    assert terminal.getvalue().count("\x1b[K") == 2, "the line is not taken away twice"
