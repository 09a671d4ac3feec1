from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from tests.support import reports
from tests.support.rendering import rendered
from wheel_checks.fixes.commands import Command
from wheel_checks.model import Evidence, Fix, Outcome, Report
from wheel_checks.report.markdown import LIMIT

GOLDEN = """\
## ❌ fail: wheelproof verify, torch-2.10.0-cp312-cp312-manylinux_2_28_aarch64.whl

1 finding (1 error), 1 skipped, 1 passed (0.41 s, 1.2 MB read in 3 requests).

**error WHL101**: expected CUDA, but this is a CPU wheel (2.10.0+cpu)

```text
members:      no CUDA library among 12,204 members  (central directory)
version.py:   2.10.0+cpu  (torch/version.py)
requirements: none of nvidia's is active on aarch64  (torch-2.10.0.dist-info/METADATA)
```

Fix: ask for the first release with CUDA on aarch64

```sh
pip install 'torch>=2.11'
```

| file | version | python | platform | accelerator | size | verdict |
| --- | --- | --- | --- | --- | --- | --- |
| `torch-2.10.0-cp312-cp312-manylinux_2_28_aarch64.whl` | 2.10.0+cpu | cp312 | manylinux_2_28_aarch64 | CPU | 146.0 MB | ❌ fail |

<details><summary>1 rule passes, 1 was skipped</summary>

| rule | holds | passed | skipped | why |
| --- | --- | --- | --- | --- |
| WHL001 | Names agree | 1 |  |  |
| WHL401 | RECORD is complete |  | 1 | RECORD was not read (--depth links reads it) |

</details>
"""  # noqa: E501  # a table row is one line


def test_the_whole_summary() -> None:
    wheel = reports.wheel(
        "2.10.0",
        accelerator="cpu",
        accelerator_version="",
        size=145_996_088,
        results=(reports.PASSED, reports.EXPECTED_CUDA, reports.SKIPPED),
    )
    assert rendered(reports.report(wheel), "markdown") == GOLDEN


def test_many_wheels_become_versions_by_architecture() -> None:
    text = rendered(reports.forty(), "markdown")
    assert (
        "| torch | x86_64 | aarch64 |\n"
        "| --- | --- | --- |\n"
        "| 2.8.0 | CUDA 12.8 (5 wheels)<br>❔ undecided 1 | CPU (5 wheels)<br>❌ fail 5 |\n"
        "| 2.9.0 | CUDA 12.8 (5 wheels) | CPU (5 wheels)<br>❌ fail 5 |\n"
        "| 2.10.0 | CUDA 12.8 (5 wheels) | CPU (5 wheels)<br>❌ fail 5 |\n"
        "| 2.11.0 | CUDA 13.0 (5 wheels) | CUDA 13.0 (5 wheels) |\n"
    ) in text
    assert "<details><summary>Every file</summary>" in text


def test_a_cell_of_several_accelerators_lists_them() -> None:
    wheels = [reports.wheel(python=f"cp3{minor}") for minor in range(10, 16)]
    wheels.append(reports.wheel(python="cp316", accelerator="cpu", accelerator_version=""))
    text = rendered(reports.report(*wheels), "markdown")
    assert "| 2.11.0 | CUDA 13.0 (6 wheels), CPU (1 wheel) |\n" in text


def test_what_has_no_version_is_still_listed_among_many() -> None:
    missing = reports.missing_wheel().subjects[0]
    wheels = [reports.wheel(python=f"cp3{minor}") for minor in range(10, 17)]
    text = rendered(reports.report(*wheels, missing), "markdown")
    before_the_failures = text.split("<details>")[0]
    assert "| `torch==9.9 for aarch64` |  |  |  | no wheel |  | ❌ fail |" in before_the_failures


OWN = """\
## ✅ pass: wheelproof verify, GPU, torch 2.11.0: 2 kernels correct

1 finding (1 warning), 1 passed (0.41 s).

### scaled_mm

**warning WHL501**: the wheel is 419.7 MB, above the limit of 400 MB

```text
size: 419,731,115 bytes
```

### GPU, torch 2.11.0: 2 kernels correct

| kernel | us |
| --- | --- |
| norm | 130.0 |
| GPU, torch 2.11.0: 2 kernels correct | 5.1 |

GPU, torch 2.11.0: 2 kernels correct

<details><summary>1 rule passes</summary>

| rule | holds | passed | skipped | why |
| --- | --- | --- | --- | --- |
| WHL001 | Names agree | 1 |  |  |

</details>
"""


def test_an_overview_of_its_own() -> None:
    assert rendered(reports.own_overview(), "markdown") == OWN


def hostile_overview() -> Report:
    return reports.own_overview(reports.HOSTILE)


@pytest.mark.parametrize("build", [reports.mixed, reports.hostile, reports.forty, hostile_overview])
def test_every_row_has_as_many_cells_as_its_table(build: Callable[[], Report]) -> None:
    width = 0
    for line in rendered(build(), "markdown").splitlines():
        cells = len(re.split(r"(?<!\\)(?:\\\\)*\|", line)) if line.startswith("|") else 0
        assert not (width and cells) or cells == width, line
        width = cells


def test_hostile_strings_of_an_overview_are_neither_html_nor_markdown() -> None:
    text = rendered(hostile_overview(), "markdown")
    assert set(re.findall(r"<[^>]*>", text)) == {"<details>", "</details>", "<summary>", "</summary>"}
    assert not re.search(r"(?<!\\)\]\(", text)


def test_hostile_strings_are_neither_html_nor_markdown() -> None:
    text = rendered(reports.hostile(), "markdown")
    prose = re.sub(r"(?ms)^(`{3,})\w+\n.*?^\1$", "", text)
    assert "<script" not in prose
    assert set(re.findall(r"<[^>]*>", prose)) == {"<details>", "</details>", "<summary>", "</summary>"}
    assert not re.search(r"(?<!\\)\]\(", prose)
    assert not re.search(r"(?<!\\)`", prose)


def test_a_fence_is_longer_than_any_run_of_backticks_inside() -> None:
    fix = Fix("x", (Command(("echo", "```")),))
    finding = reports.result(outcome=Outcome.FAIL, evidence=(Evidence("a", "`````"),), fix=fix)
    text = rendered(reports.report(reports.wheel(results=(finding,))), "markdown")
    assert "``````text\na: `````\n``````\n" in text
    assert "````sh\necho '```'\n````\n" in text


def test_a_summary_stays_below_the_limit_and_counts_what_it_left_out() -> None:
    evidence = tuple(Evidence(f"label {n}", "x" * 500) for n in range(20))
    wheels = [
        reports.wheel(
            name=f"p{n}", results=(reports.result(outcome=Outcome.FAIL, message=f"fault {n}", evidence=evidence),)
        )
        for n in range(20)
    ]
    text = rendered(reports.report(*wheels), "markdown")
    assert LIMIT / 2 < len(text) <= LIMIT
    shown = text.count("**error WHL001**")
    assert text.endswith(
        f"\n{20 - shown} findings did not fit into 60,000 characters; the json format has everything.\n"
    )
    assert text.count("<details>") == text.count("</details>")


def test_a_stack_of_many_packages_is_one_table() -> None:
    wheels = [reports.wheel(name=f"package{n}", results=(reports.PASSED,)) for n in range(27)]
    lines = rendered(reports.report(*wheels), "markdown").splitlines()
    assert lines.count("| --- | --- | --- | --- | --- | --- | --- |") == 1
    assert sum(line.startswith("| `package") for line in lines) == 27


def test_what_fails_comes_first() -> None:
    text = rendered(reports.forty(), "markdown")
    places = [text.index(part) for part in ("**error WHL101**", "**not checked WHL601**", "| torch |", "rules pass")]
    assert places == sorted(places)
