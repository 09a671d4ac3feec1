"""Progress is one line on a terminal, nothing anywhere else, and gone at the end."""

from __future__ import annotations

import io
import threading

import pytest

from wheelproof.cli import progress
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
