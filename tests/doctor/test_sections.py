"""A reader that hangs or crashes costs only its own section."""

from __future__ import annotations

import threading

from tests.support.patience import PATIENCE
from wheel_checks.model import Unavailable
from wheelproof.doctor.children import TIME_IS_OVER, Budget
from wheelproof.doctor.sections import Sections, Several


def test_sections_are_read_side_by_side() -> None:
    sections = Sections(Budget(PATIENCE))
    both = threading.Barrier(2, timeout=PATIENCE)
    sections.start("one", both.wait)
    sections.start("other", both.wait)

    values, seconds, unread = sections.all()

    assert sorted(values.values()) == [0, 1]  # each waited for the other
    assert set(seconds) == {"one", "other"}
    assert unread == {}


def test_a_section_may_need_another() -> None:
    sections = Sections(Budget(PATIENCE))
    sections.start("first", lambda: 20)
    sections.start("second", lambda: sections.get("first") + 1)

    assert sections.get("second") == 21


def test_a_reader_that_crashes_is_reported() -> None:
    sections = Sections(Budget(PATIENCE))
    sections.start("good", lambda: 1)
    sections.start("bad", lambda: int("x"))

    values, _, unread = sections.all()

    reason = "its reader crashed: ValueError: invalid literal for int() with base 10: 'x'"
    assert values == {"good": 1, "bad": Unavailable(reason)}
    assert unread == {"bad": reason}


def test_a_reader_that_hangs_is_left_behind() -> None:
    sections = Sections(Budget(0.3))
    never = threading.Event()
    sections.start("good", lambda: 1)
    sections.start("hanging", never.wait)

    values, _, unread = sections.all()

    assert values == {"good": 1, "hanging": TIME_IS_OVER}
    assert unread == {"hanging": TIME_IS_OVER.reason}
    never.set()


def test_a_reader_that_says_itself_that_it_had_no_time_counts_as_unread() -> None:
    sections = Sections(Budget(PATIENCE))
    sections.start("late", lambda: TIME_IS_OVER)
    sections.start("absent", lambda: Unavailable("there is no GPU"))

    assert sections.all()[2] == {"late": TIME_IS_OVER.reason}


def test_what_holds_several_fields_is_looked_into() -> None:
    """The dangerous steps answer together, and each may have had no time."""
    sections = Sections(Budget(PATIENCE))
    sections.start("steps", lambda: Several(nvml=1, cuda=TIME_IS_OVER), ("nvml", "cuda"))

    values, _, unread = sections.all()

    assert values == {"nvml": 1, "cuda": TIME_IS_OVER}
    assert unread == {"cuda": TIME_IS_OVER.reason}


def test_when_the_reader_of_several_fails_none_of_them_is_there() -> None:
    sections = Sections(Budget(PATIENCE))
    sections.start("steps", lambda: 1 // 0, ("nvml", "cuda"))

    values, _, unread = sections.all()

    assert set(values) == set(unread) == {"nvml", "cuda"}
