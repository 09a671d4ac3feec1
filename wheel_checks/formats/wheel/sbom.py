"""SBOM documents of a wheel (PEP 770): CycloneDX and SPDX, both as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from wheel_checks.formats.documents import parse_json

MAX_SIZE = 16 * 1024 * 1024
_MOST_FILES = 20_000
_ALGORITHMS = {"sha256": "sha256", "sha384": "sha384", "sha512": "sha512"}


@dataclass(frozen=True, slots=True)
class SbomFile:
    """A file that a document names, by its path in the wheel, with its digests (hex) by algorithm."""

    path: str
    digests: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class SbomDocument:
    """``form`` is such as "CycloneDX 1.6", "" for neither CycloneDX nor SPDX. ``names`` are all that it describes:
    names, package URLs and places of components; ``tools`` are the programs that wrote it.
    """

    form: str
    files: tuple[SbomFile, ...] = ()
    names: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()


def parse_sbom(data: bytes) -> SbomDocument:
    """What a document says. Raises FormatError for what is not JSON, and for one that is too large."""
    value = parse_json(data, "the document", MAX_SIZE)
    if not isinstance(value, dict):
        return SbomDocument("")
    if value.get("bomFormat") == "CycloneDX" and isinstance(value.get("specVersion"), str):
        return _cyclonedx(value)
    if isinstance(value.get("spdxVersion"), str) and value["spdxVersion"].startswith("SPDX-"):
        return _spdx(value)
    if "spdx" in str(value.get("@context", ""))[:200] and isinstance(value.get("@graph"), list):
        return _spdx_graph(value)
    return SbomDocument("")


def _cyclonedx(value: dict[str, Any]) -> SbomDocument:
    """CycloneDX 1.2 to 1.7: components, nested ones too; a file is a component of type file, or an occurrence."""
    components = list(_components(value))
    files: list[SbomFile] = []
    names: list[str] = []
    for component in components:
        digests = _digests(component.get("hashes"), "alg", "content")
        evidence = component.get("evidence")
        occurrences = _tables(evidence.get("occurrences")) if isinstance(evidence, dict) else []
        places = [str(row.get("location", "")) for row in occurrences]
        if component.get("type") == "file":
            places.append(str(component.get("name", "")))
        files += [SbomFile(_plain(place), digests) for place in places if place and len(places) == 1]
        names += [str(component.get(key, "")) for key in ("name", "purl", "bom-ref")] + places
    tools = value.get("metadata", {}).get("tools", []) if isinstance(value.get("metadata"), dict) else []
    listed = _tables(tools.get("components") if isinstance(tools, dict) else tools)
    return SbomDocument(
        f"CycloneDX {value['specVersion'][:20]}",
        tuple(files[:_MOST_FILES]),
        tuple(filter(None, names)),
        tuple(str(tool.get("name", "")) for tool in listed),
    )


def _components(value: dict[str, Any]) -> Iterator[dict[str, Any]]:
    waiting = _tables(value.get("components"))
    while waiting:
        component = waiting.pop()
        yield component
        waiting += _tables(component.get("components"))


def _spdx(value: dict[str, Any]) -> SbomDocument:
    """SPDX 2.2 and 2.3."""
    rows = _tables(value.get("files"))
    files = tuple(
        SbomFile(_plain(row["fileName"]), _digests(row.get("checksums"), "algorithm", "checksumValue"))
        for row in rows[:_MOST_FILES]
        if isinstance(row.get("fileName"), str)
    )
    packages = _tables(value.get("packages"))
    names = [str(package.get("name", "")) for package in packages] + [file.path for file in files]
    created = value.get("creationInfo")
    creators = created.get("creators", []) if isinstance(created, dict) else []
    tools = [str(text).removeprefix("Tool: ") for text in creators if str(text).startswith("Tool:")]
    return SbomDocument(value["spdxVersion"].replace("-", " ")[:20], files, tuple(filter(None, names)), tuple(tools))


def _spdx_graph(value: dict[str, Any]) -> SbomDocument:
    """SPDX 3: a graph of elements."""
    rows = _tables(value["@graph"])
    files = tuple(
        SbomFile(_plain(row["name"]), _digests(row.get("verifiedUsing"), "algorithm", "hashValue"))
        for row in rows[:_MOST_FILES]
        if row.get("type") == "software_File" and isinstance(row.get("name"), str)
    )
    names = [str(row.get("name", "")) for row in rows]
    return SbomDocument("SPDX 3", files, tuple(filter(None, names)))


def _digests(rows: Any, algorithm: str, content: str) -> tuple[tuple[str, str], ...]:
    found = []
    for row in _tables(rows):
        name = _ALGORITHMS.get(str(row.get(algorithm, "")).lower().replace("-", ""))
        if name:
            found.append((name, str(row.get(content, "")).lower()))
    return tuple(found)


def _tables(value: Any) -> list[dict[str, Any]]:
    return [row for row in value if isinstance(row, dict)] if isinstance(value, list) else []


def _plain(path: str) -> str:
    return path.removeprefix("./")
