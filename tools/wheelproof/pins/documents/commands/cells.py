"""The code cells of notebooks: what a shell runs of them."""

import re

_CELL_SHELL = re.compile(r"\s*%%(?:bash|sh|shell|script\s+(?:ba)?sh|system|sx|!)\b.*")
_LINE = re.compile(
    r"([ \t]*)(!!?|%(?:sx|system|!)?[ \t]*(?=(?:pip|conda|mamba|micromamba|uv|sx|system)\b)"
    r"|(?=(?:python[\d.]*[ \t]+-m[ \t]+)?(?:pip|conda|mamba|uv)[ \t]+(?:install|pip|add)\b))"
)
_PYTHON_VALUE = re.compile(r"\{[^{}\n]*\}")
_ASSIGNED = re.compile(r"[ \t]*[A-Za-z_]\w*[ \t]*=[ \t]*(?=!)", re.ASCII)


def cell_script(text: str, anchors: list[tuple[int, int]]) -> tuple[str, tuple[tuple[int, int], ...]]:
    """What a shell runs of a cell, all else blank; and where its lines stand, which keep their offsets."""
    if _CELL_SHELL.match(text):
        first, newline, rest = text.partition("\n")
        return " " * len(first) + newline + rest, tuple(anchors)
    kept: list[str] = []
    continued = False
    for line in text.splitlines(keepends=True):
        match = _LINE.match(line)
        assigned = _ASSIGNED.match(line)
        if continued:
            shown = line
        elif assigned:
            shown = " " * (assigned.end() + 1) + line[assigned.end() + 1 :]
        elif match:
            shown = " " * match.end() + line[match.end() :]
        else:
            shown = re.sub(r"[^\r\n]", " ", line)
        runs = continued or match is not None or assigned is not None
        if runs:
            shown = _PYTHON_VALUE.sub(lambda found: "$" + "_" * (len(found[0]) - 1), shown)
        kept.append(shown)
        continued = runs and line.rstrip().endswith("\\") and not shown.lstrip().startswith("#")
    return "".join(kept), tuple(anchors)
