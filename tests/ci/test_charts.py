"""The charts of the documentation: the output of their modules, readable on a telephone, and with the same as text."""

from __future__ import annotations

import functools
import importlib
import json
import re
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from ci.charts.drawing import WIDTH, table_in
from ci.update_charts import NAMES
from wheel_checks.data import load

ROOT = Path(__file__).parents[2]
SVG = "{http://www.w3.org/2000/svg}"
TELEPHONE = 390 - 32  # px: the column of a page on it
SMALLEST = 10  # px


@functools.cache
def drawn(name: str) -> str:
    text: str = importlib.import_module(f"ci.charts.{name}").draw()
    return text


@pytest.mark.parametrize("name", NAMES)
def test_a_chart_is_what_its_module_draws(name: str) -> None:
    path = ROOT / f"docs/images/{name}.svg"
    assert path.read_text(encoding="utf-8") == drawn(name), "run python ci/update_charts.py"


@pytest.mark.parametrize("name", NAMES)
def test_a_chart_is_shown_on_a_page_and_has_words(name: str) -> None:
    pages = [path.read_text(encoding="utf-8") for path in (ROOT / "docs").rglob("*.md")]
    [alternative] = [text for page in pages for text in re.findall(rf"!\[([^\]]*)\]\([./]*images/{name}\.svg\)", page)]
    assert len(alternative.split()) > 4

    root = ET.fromstring(drawn(name))
    assert root.attrib["aria-labelledby"] == "title description"
    title, description = (root.findtext(f"{SVG}{tag}", "") for tag in ("title", "desc"))
    assert title
    assert len(description) > 200


@pytest.mark.parametrize("name", NAMES)
def test_a_chart_is_readable_on_a_telephone_in_light_and_dark_and_loads_nothing(name: str) -> None:
    text = drawn(name)
    root = ET.fromstring(text)
    assert float(root.attrib["width"]) == WIDTH
    sizes = [float(element.attrib["font-size"]) for element in root.iter(f"{SVG}text")]
    assert min(sizes) * TELEPHONE / WIDTH >= SMALLEST
    assert not re.search(r"url\(|@import|@font-face|href|<script|<image", text)
    styles = root.findtext(f"{SVG}style", "")
    light, _, dark = styles.partition("prefers-color-scheme: dark")
    used = {style for element in root.iter() for style in element.attrib.get("class", "").split()}
    assert all(f".{style} " in light and f".{style} " in dark for style in used)


@pytest.mark.parametrize("name", NAMES)
def test_no_line_of_a_chart_leaves_it(name: str) -> None:
    root = ET.fromstring(drawn(name))
    for element in root.iter(f"{SVG}text"):
        width = 0.55 * float(element.attrib["font-size"]) * len(element.text or "")
        x, anchor = float(element.attrib["x"]), element.attrib["text-anchor"]
        left = x - {"start": 0, "middle": width / 2, "end": width}[anchor]
        assert left >= 0, element.text
        assert left + width <= WIDTH, element.text


def test_rows_are_read_from_the_table_with_these_headings() -> None:
    page = "| a | b |\n| --- | --- |\n| 1 | 2 |\n\n| a | c |\n| --- | ---: |\n| 3 | |\n| 4 | 5 |\nend\n| 6 | 7 |\n"
    assert list(table_in(page, "a", "c")) == [{"a": "3", "c": ""}, {"a": "4", "c": "5"}]
    assert not list(table_in(page, "x"))


def test_the_recorded_matrix_agrees_with_the_table_of_builds() -> None:
    cells = json.loads((ROOT / "ci/charts/matrix.json").read_text(encoding="utf-8"))["cells"]
    known = {
        (row["version"], row["machine"]): row["cuda"] or row["accelerator"] for row in load("torch_builds")["build"]
    }
    recorded = {(c["torch"], c["platform"]): c["built"] for c in cells if c["python"] == "3.12"}
    assert recorded == {key: known[key] for key in recorded}
    assert len(recorded) == 20
