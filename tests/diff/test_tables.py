"""The tables that people read."""

from __future__ import annotations

import io
import json
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.pairs import difference, library, wheel_for
from tests.support.reports import HOSTILE
from tests.support.wheel_facts import facts_of
from tests.support.wheels import WheelBuilder
from wheel_checks.facts.difference.libraries import LinkDifference
from wheel_checks.facts.difference.wheels import Compared, Difference
from wheel_checks.facts.wheel.depth import Depth
from wheel_checks.report.wording import json_ready
from wheelproof.diff import markdown, text
from wheelproof.diff.rows import LIMIT, NONE, PRESENT, Row, Section, Table, build_table
from wheelproof.diff.summary import headline, pair_facts, pair_id


def section(table: Table, title: str) -> Section:
    return next(found for found in table.sections if found.title == title)


def titles(table: Table) -> list[str]:
    return [found.title for found in table.sections]


def torch_pair() -> Difference:
    """The differences between the architectures of torch 2.11.0, on a small scale."""
    a, b = wheel_for("aarch64"), wheel_for("x86_64")
    a.add("demo/libcuda_all.so", library(gpu=("sm_90", "sm_110"), needed=("ld-linux-aarch64.so.1",)))
    b.add("demo/libcuda_all.so", library("x86_64", gpu=("sm_75", "sm_86", "sm_90"), needed=("ld-linux-x86-64.so.2",)))
    a.add("demo/liblinalg.so", library())
    b.add("demo/liblinalg.so", library("x86_64", gpu=("sm_90",), needed=("libgomp.so.1",)))
    a.add("demo/libarm_compute.so", library()).add("demo/libnvpl_blas_core.so.0", library())
    for number in range(40):
        a.add(f"demo/include/kai/ukernels/k{number}.h")
    return difference(a, b)


def test_what_differs_in_brief() -> None:
    table = build_table(torch_pair())

    assert table.columns == ("A: aarch64", "B: x86_64")
    assert section(table, "GPU code").rows == (
        Row("demo/libcuda_all.so", "also sm_110", "also sm_75 sm_86", "1 alike"),
        Row("demo/liblinalg.so", "no GPU code", "sm_90"),
    )
    assert section(table, "needed libraries").rows == (Row("demo/liblinalg.so", NONE, "libgomp.so.1"),)
    assert section(table, "native files").rows == (
        Row("for one architecture", "2: Arm Compute Library, NVIDIA Performance Libraries (NVPL)", NONE, "as expected"),
    )
    assert section(table, "headers").rows == (Row("on one side alone", "40: demo/include/kai", NONE),)
    assert titles(table) == ["wheel", "native files", "headers", "needed libraries", "GPU code"]
    assert table.same == "1 Python file, 2 native files by name"
    assert table.not_compared == ()


def test_everything_lists_what_was_expected_too() -> None:
    table = build_table(torch_pair(), everything=True)

    assert len(section(table, "headers").rows) == 40
    assert Row("demo/libarm_compute.so", PRESENT, NONE, "Arm Compute Library") in section(table, "native files").rows
    assert section(table, "needed libraries").rows[0] == Row(
        "demo/libcuda_all.so", "ld-linux-aarch64.so.1", "ld-linux-x86-64.so.2"
    )


def test_a_long_section_is_cut_and_says_so() -> None:
    a = wheel_for()
    for number in range(LIMIT + 3):
        a.add(f"demo/m{number:02}.py")

    brief, full = (
        section(build_table(difference(a, wheel_for()), everything=everything), "Python files")
        for everything in (False, True)
    )

    assert (len(brief.rows), brief.hidden) == (LIMIT, 3)
    assert (len(full.rows), full.hidden) == (LIMIT + 3, 0)


def test_what_is_only_possible_has_a_mark_that_is_explained() -> None:
    pair = torch_pair()
    maybe = LinkDifference("demo/lib.so", maybe_b=("libcublas.so.13", "libm.so.6"))

    table = build_table(replace(pair, links=Compared((maybe,), 0)))

    assert section(table, "needed libraries").rows == (Row("demo/lib.so", NONE, "libcublas.so.13?"),)
    assert table.not_compared == ("whether a name with a ? is needed: not all of the file was read (--depth full)",)


def test_search_paths_that_change_alike_are_one_row() -> None:
    a, b = wheel_for("aarch64"), wheel_for("x86_64")
    for number in range(3):
        a.add(f"demo/lib{number}.so", library(rpath="$ORIGIN"))
        b.add(f"demo/lib{number}.so", library("x86_64", rpath="/opt/lib"))
    pair = difference(a, b)

    assert section(build_table(pair), "linking").rows == (Row("RPATH of 3 files", "$ORIGIN", "/opt/lib"),)
    assert len(section(build_table(pair, everything=True), "linking").rows) == 3


def test_what_was_not_read_is_reported_with_the_way_to_read_it() -> None:
    table = build_table(difference(wheel_for(), wheel_for("x86_64"), Depth.QUICK))

    assert [sentence.partition(":")[0] for sentence in table.not_compared] == ["linking", "GPU code"]
    assert "--depth links" in table.not_compared[0]
    assert "--depth gpu" in table.not_compared[1]


def test_nothing_differs() -> None:
    table = build_table(difference(wheel_for(), wheel_for()))

    assert table.sections == ()
    assert "nothing differs" in as_text(table)
    assert "Nothing differs." in as_markdown(table)


def as_text(table: Table) -> str:
    return "".join(f"{line}\n" for line in text.table_lines([("demo", table)], io.StringIO(), color=False, width=200))


def as_markdown(table: Table) -> str:
    stream = io.StringIO()
    markdown.render_tables([("demo", table)], stream)
    return stream.getvalue()


def test_the_text_has_a_line_a_row() -> None:
    lines = as_text(build_table(torch_pair())).splitlines()

    assert lines[1] == "demo"
    assert lines[2].split() == ["A:", "aarch64", "B:", "x86_64"]
    row = next(line for line in lines if line.lstrip().startswith("demo/libcuda_all.so"))
    assert "also sm_110" in row
    assert row.endswith("also sm_75 sm_86")
    assert lines[-1] == "  same on both sides: 1 Python file, 2 native files by name"


def test_the_markdown_is_one_table() -> None:
    lines = as_markdown(build_table(torch_pair())).splitlines()

    assert "| differs | A: aarch64 | B: x86_64 |" in lines
    assert "| demo/liblinalg.so | no GPU code | sm_90 |" in lines
    assert "| **GPU code** |  |  |" in lines
    assert lines[-1] == "Same on both sides: 1 Python file, 2 native files by name."


def test_names_that_attack_a_terminal_or_a_page_are_made_harmless() -> None:
    row = Row(HOSTILE, HOSTILE, HOSTILE, HOSTILE)
    table = Table((HOSTILE, HOSTILE), (Section("native files", (row,)),), HOSTILE, (HOSTILE,))

    plain, page = as_text(table), as_markdown(table)

    for written in (plain, page):
        assert not set(written) & set("\x1b\x00\x08\r\u202e\u2028\ud800")
    assert "<script>" not in page
    for line in page.splitlines():
        if line.startswith("| ") and "red" in line:
            assert line.replace("\\|", "").count("|") == 4


def test_tables_that_do_not_fit_into_a_summary_are_left_out() -> None:
    rows = tuple(Row(f"demo/{number}", "x" * 200, "y" * 200) for number in range(1000))
    table = Table(("A", "B"), (Section("native files", rows),), "")
    stream = io.StringIO()

    markdown.render_tables([("small", build_table(torch_pair())), ("large", table)], stream)

    assert "small" in stream.getvalue()
    assert stream.getvalue().endswith("Further tables did not fit; the json format has everything.\n")


def test_the_facts_are_json_and_hold_what_the_table_shows() -> None:
    a, b = wheel_for("aarch64"), wheel_for("x86_64").metadata(requires=["numpy"]).add("demo/b.py")
    read = [facts_of(wheel, depth=Depth.GPU) for wheel in (a, b)]
    pair = difference(a, b)

    facts = json.loads(json.dumps(json_ready(pair_facts(pair, *read))))

    assert (facts["a"]["machine"], facts["b"]["machine"]) == ("aarch64", "x86_64")
    assert facts["differences"]["requirements"] == [{"name": "numpy", "a": "", "b": "any version", "by_marker": False}]
    assert facts["differences"]["python_files"]["only_b"] == {"count": 1, "names": ["demo/b.py"]}
    assert facts["same"]["python_files"] == 1
    assert facts["not_compared"] == {}


def test_a_pair_is_named_by_what_is_alike_and_what_is_not() -> None:
    def name(a: WheelBuilder, b: WheelBuilder) -> str:
        return pair_id(difference(a, b, Depth.QUICK))

    assert name(wheel_for(), wheel_for("x86_64")) == "demo 1.0 cp312: aarch64 against x86_64"
    assert name(wheel_for(version="1.1"), wheel_for(build="2")) == "demo cp312 aarch64: 1.1 against 1.0 build 2"
    same = "demo-1.0-cp312-cp312-manylinux_2_28_aarch64.whl"
    assert name(wheel_for(), wheel_for()) == f"demo 1.0 cp312 aarch64: {same} against {same}"
    assert headline(difference(wheel_for(), wheel_for())).startswith("no accelerator, ")


names = st.text(max_size=30)


@settings(max_examples=50)
@given(st.lists(names, max_size=5), st.lists(names, max_size=5), st.booleans())
def test_whatever_the_members_are_called_the_tables_can_be_written(
    a: list[str], b: list[str], everything: bool
) -> None:
    wheels = wheel_for(), wheel_for("x86_64")
    for wheel, members in zip(wheels, (a, b), strict=True):
        for number, member in enumerate(members):
            wheel.add(f"demo/{number}{member.encode('utf-8', 'replace').decode()}.py")
    table = build_table(difference(*wheels, Depth.QUICK), everything=everything)

    rows = sum(len(found.rows) for found in table.sections)
    assert len(as_text(table).splitlines()) >= rows
    assert as_markdown(table).count("\n| ") >= rows
