"""A few SVG elements, in colours that follow the reader's light or dark mode. Standard library alone."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Liberation Sans', Arial, sans-serif"

# Blue and orange are distinguished by readers with any colour vision, and every mark differs in shape as well.
STYLE = """
  .paper { fill: #ffffff } .ink { fill: #1f2328 } .quiet { fill: #59636e }
  .grid { stroke: #d8dee4 } .axis { stroke: #59636e } .lead { stroke: #afb8c1; fill: none }
  .track { fill: #eef1f4 } .good { fill: #0969da } .bad { fill: #bc4c00 } .other { fill: #8c959f }
  .fair { fill: #a5d2ff } .base { fill: #ffc39c } .on { fill: #ffffff }
  .roof { stroke: #1f2328; fill: none } .mark { stroke: #1f2328 } .edge { stroke: #ffffff }
  text { font-family: %s }
  @media (prefers-color-scheme: dark) {
    .paper { fill: #0d1117 } .ink { fill: #e6edf3 } .quiet { fill: #9198a1 }
    .grid { stroke: #262c36 } .axis { stroke: #9198a1 } .lead { stroke: #4b535d }
    .track { fill: #1b212a } .good { fill: #4493f8 } .bad { fill: #f0883e } .other { fill: #6e7681 }
    .fair { fill: #1c4a80 } .base { fill: #7a3c10 } .on { fill: #0d1117 }
    .roof { stroke: #e6edf3 } .mark { stroke: #e6edf3 } .edge { stroke: #0d1117 }
  }
"""


def picture_of(width: float, height: float, title: str, description: str, body: Iterable[str]) -> str:
    """A whole SVG document. ``title`` and ``description`` are for those who cannot see it."""
    return "\n".join(
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}" '
            f'height="{height:g}" role="img" aria-labelledby="title description">',
            f'<title id="title">{escape(title)}</title>',
            f'<desc id="description">{escape(description)}</desc>',
            f"<style>{STYLE % FONT}</style>",
            f'<rect class="paper" width="{width:g}" height="{height:g}"/>',
            *body,
            "</svg>\n",
        )
    )


def text(
    x: float, y: float, content: str, *, size: float = 13, anchor: str = "start", style: str = "ink", bold: bool = False
) -> str:
    """One line of text; ``y`` is its base line."""
    weight = ' font-weight="600"' if bold else ""
    return (
        f'<text class="{style}" x="{x:.1f}" y="{y:.1f}" font-size="{size:g}" text-anchor="{anchor}"{weight}>'
        f"{escape(content)}</text>"
    )


def turned(x: float, y: float, content: str, *, size: float = 13) -> str:
    """A line of text that reads upwards, centred at (x, y): the label of a vertical axis."""
    return (
        f'<text class="quiet" transform="translate({x:.1f} {y:.1f}) rotate(-90)" font-size="{size:g}" '
        f'text-anchor="middle">{escape(content)}</text>'
    )


def line(points: Iterable[tuple[float, float]], style: str, *, width: float = 1, dashes: str = "") -> str:
    """Straight lines through ``points``."""
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    dashed = f' stroke-dasharray="{dashes}"' if dashes else ""
    return f'<polyline class="{style}" points="{path}" fill="none" stroke-width="{width:g}"{dashed}/>'


def box(x: float, y: float, width: float, height: float, style: str, *, radius: float = 3) -> str:
    """A filled rectangle with rounded corners."""
    return (
        f'<rect class="{style}" x="{x:.1f}" y="{y:.1f}" width="{max(width, 0):.1f}" height="{height:.1f}" '
        f'rx="{radius:g}"/>'
    )


def dot(x: float, y: float, style: str, *, square: bool = False, size: float = 6) -> str:
    """A round mark, or a square on its corner, with an edge that separates it from marks below."""
    if square:
        place = f"translate({x:.1f} {y:.1f}) rotate(45)"
        return (
            f'<rect class="{style} edge" transform="{place}" x="{-size:g}" y="{-size:g}" width="{2 * size:g}" '
            f'height="{2 * size:g}" stroke-width="1.5"/>'
        )
    return f'<circle class="{style} edge" cx="{x:.1f}" cy="{y:.1f}" r="{size:g}" stroke-width="1.5"/>'
