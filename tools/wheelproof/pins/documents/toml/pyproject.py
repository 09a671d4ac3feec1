"""pyproject.toml: PEP 518, 621 and 735, and the tables of uv, poetry, pdm, hatch and pixi."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from wheelproof.pins.documents import tox
from wheelproof.pins.documents.names import normalized, project_of
from wheelproof.pins.documents.toml import hatch, pixi
from wheelproof.pins.documents.toml.requirements import Where, notices_about, parse_toml, read_toml
from wheelproof.pins.documents.toml.scripts import with_scripts
from wheelproof.pins.model import Document, Form, Notice, Role, Source

UV = (
    Where("tool.uv.override-dependencies", Role.CONSTRAINT),
    Where("tool.uv.constraint-dependencies", Role.CONSTRAINT),
    Where("tool.uv.build-constraint-dependencies", Role.CONSTRAINT),
    Where("tool.uv.dev-dependencies", Role.GROUP),
    Where("tool.uv.extra-build-dependencies.*", Role.MATCHED),
)
PLACES = (
    Where("build-system.requires", Role.BUILD),
    Where("project.dependencies", Role.RUNTIME),
    Where("project.optional-dependencies.*", Role.RUNTIME),
    Where("dependency-groups.*", Role.GROUP),
    *UV,
    Where("tool.poetry.dependencies", Role.RUNTIME, Form.VERSION),
    Where("tool.poetry.dev-dependencies", Role.GROUP, Form.VERSION),
    Where("tool.poetry.group.*.dependencies", Role.GROUP, Form.VERSION),
    Where("tool.poetry.extras.*", Role.RUNTIME, Form.NAME),
    Where("tool.pdm.dev-dependencies.*", Role.GROUP),
    Where("tool.rye.dev-dependencies", Role.GROUP),
    *(replace(where, path=f"tool.tox.{where.path}") for where in tox.PLACES),
    Where("tool.pdm.resolution.overrides", Role.CONSTRAINT, Form.OVERRIDE),
    *(replace(where, path=f"tool.hatch.{where.path}") for where in hatch.PLACES),
    *(replace(where, path=f"tool.pixi.{where.path}") for where in pixi.PLACES),
)
SCRIPT_PLACES = (Where("dependencies", Role.RUNTIME), *UV)


def read(source: Source) -> Document:
    """The requirements of a pyproject.toml. Raises FormatError when it is not valid TOML."""
    document = read_toml(source, PLACES, "pyproject")
    data = parse_toml(source, source.text)
    tool = data.get("tool")
    uv = tool.get("uv") if isinstance(tool, dict) else None
    notices = [*document.notices, *uv_notices(source, uv)]
    whole = replace(document, notices=tuple(notices), includes=tuple(_setuptools_files(source, data)))
    return with_scripts(source, whole)


def _setuptools_files(source: Source, data: dict[str, Any]) -> Iterator[Path]:
    """The files that setuptools or a plug-in of hatch reads dependencies from, under any name."""
    for files in (*_dynamic(data, ("setuptools", "dynamic"), "file"), *_dynamic(data, _HATCH_FILES, "files")):
        for name in [files] if isinstance(files, str) else files if isinstance(files, list) else ():
            if isinstance(name, str):
                yield source.path.parent / name


# Of the plug-in hatch-requirements-txt.
_HATCH_FILES = ("hatch", "metadata", "hooks", "requirements_txt")


def _dynamic(data: dict[str, Any], keys: Sequence[str], name: str) -> Iterator[Any]:
    """The values of ``name`` for the dependencies and for each extra."""
    found: Any = data.get("tool")
    for key in keys:
        found = found.get(key) if isinstance(found, dict) else None
    if isinstance(found, dict):
        extras = found.get("optional-dependencies")
        entries = [found, found.get("dependencies"), *(extras.values() if isinstance(extras, dict) else ())]
        yield from (entry.get(name) for entry in entries if isinstance(entry, dict))


def uv_notices(source: Source, uv: Any) -> Iterator[Notice]:
    """Notices about uv's settings for torch, which are kept."""
    yield from notices_about(source, _uv(uv), source.text)


def _uv(uv: Any) -> Iterator[tuple[str, str, str, str]]:
    """The settings of uv for torch: code, message, name, and the text on its line."""
    if not isinstance(uv, dict):
        return
    extra = uv.get("extra-build-dependencies")
    for project, entries in extra.items() if isinstance(extra, dict) else ():
        for entry in entries if isinstance(entries, list) else ():
            if isinstance(entry, dict) and entry.get("match-runtime"):
                name = project_of(str(entry.get("requirement", "")))
                message = (
                    f"the build environment of {project} takes {name} from the index (match-runtime is kept), not the "
                    "installed one: name it in no-build-isolation-package"
                )
                yield "match-runtime", message, name, "match-runtime"
            elif isinstance(entry, str):
                name = project_of(entry)
                message = (
                    f"extra-build-dependencies of {project} keeps {entry}: its build uses that, not the installed one"
                )
                yield "build-dependency", message, name, entry
    metadata = uv.get("dependency-metadata")
    for table in metadata if isinstance(metadata, list) else ():
        requires = table.get("requires-dist") if isinstance(table, dict) else None
        for text in requires if isinstance(requires, list) else ():
            name = project_of(str(text))
            message = f"dependency-metadata of {normalized(str(table.get('name', '')))} lists {text}, which is kept"
            yield "dependency-metadata", message, name, "requires-dist"
