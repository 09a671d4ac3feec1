"""The pages of the JSON documents: from JSON Schemas, and from the dataclasses of a host's facts."""

from __future__ import annotations

import dataclasses
import inspect
import json
import re
import typing
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ci.reference.markdown import code, page, table, text
from wheel_checks.facts.host.codec import SCHEMA
from wheel_checks.facts.host.facts import HostFacts
from wheel_checks.model import Unavailable

ROOT = Path(__file__).resolve().parents[2]
# A field of a dataclass, with the comment above or after it.
COMMENT = re.compile(r"^ {4}(?:# (.*)\n {4})?(\w+): .*?(?:  # (.*))?$", re.MULTILINE)
SCHEMAS = {
    "report": "wheel_checks/report/report.schema.json",
    "record": "tools/wheelproof/verifying/record.schema.json",
    "matrix": "tools/wheelproof/matrix/definition/matrix.schema.json",
    "nodes": "tools/wheelproof/fleet/nodes.schema.json",
}
ABOUT = {
    "report": "Every command that judges writes it with `--format json`.",
    "record": "`wheelproof verify --record FILE` writes it, `wheelproof verify --same-as FILE` compares with it. More: "
    "[the same files as before](../../indexes.md#the-same-files-as-before).",
    "matrix": "The file `ci/matrix.toml`, for editors that check TOML. More: [the matrix](../../matrix.md#the-file).",
    "nodes": "The file of `wheelproof report merge --expect`. "
    "More: [the fleet](../../fleet.md#what-every-node-must-be).",
}
INDEX = """\
| document | written by | read by | described in |
| --- | --- | --- | --- |
| report | every command that judges, with `--format json` | `report merge` | [report](report.md) |
| record of files | `verify --record` | `verify --same-as` | [record](record.md) |
| facts of a host | `doctor --save-facts` | `doctor --facts` | [host facts](host.md) |
| matrix | you | `matrix` | [matrix](matrix.md) |
| what nodes must be | you | `report merge --expect` | [nodes](nodes.md) |
| what a release must be | you | `release --expect` | [release](../../release.md#file) |
| configuration | you | every command | [configuration](../configuration.md) |"""
ABOUT_HOST = f"""\
`wheelproof doctor --save-facts FILE` writes it, and `wheelproof doctor --facts FILE` makes the same diagnosis of it
anywhere. The document is an object with `"schema": "{SCHEMA}"` and the fields of HostFacts. A field that has its
default value is left out. What could not be read is `{{"unavailable": reason, "hint": what to do}}`."""


def pages() -> dict[str, str]:
    """The pages, and the schemas themselves."""
    result = {"schemas/index.md": page("Documents", INDEX), "schemas/host.md": _host()}
    for name, path in SCHEMAS.items():
        content = (ROOT / path).read_text(encoding="utf-8")
        result[f"schemas/{name}.md"] = _schema_page(name, json.loads(content))
        result[f"schemas/{name}.schema.json"] = content
    return result


def _schema_page(name: str, schema: Mapping[str, Any]) -> str:
    link = f"The [JSON Schema]({name}.schema.json) itself is the reference; this page explains it."
    places = [("", schema), *schema.get("$defs", {}).items()]
    sections = [_section(title, part) for place, top in places for title, part in _objects(place, top)]
    values = table(
        ("name", "is", "means"),
        [
            (code(key), _kind(part), text(part.get("description", "")))
            for key, part in schema.get("$defs", {}).items()
            if "properties" not in part
        ],
    )
    return page(schema["title"], ABOUT[name], link, *sections, f"## Values\n\n{values}")


def _objects(place: str, schema: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The objects in a schema, each with its path."""
    if "properties" in schema:
        yield place, schema
        for key, part in schema["properties"].items():
            yield from _objects(f"{place}.{key}" if place else key, part)
    elif "items" in schema:
        yield from _objects(f"{place}[]", schema["items"])


def _section(title: str, schema: Mapping[str, Any]) -> str:
    required = schema.get("required", [])
    rows = [
        (code(key), _kind(part), "yes" if key in required else "", text(part.get("description", "")))
        for key, part in schema["properties"].items()
    ]
    heading = f"## {title.replace('_', ' ')}\n\n" if title else ""
    own = f"{text(schema['description'])}\n\n" if "description" in schema else ""
    more = f"\nAnd the keys of {_kind(schema)}." if "$ref" in schema else ""
    return heading + own + table(("key", "is", "required", "means"), rows) + more


def _kind(schema: Mapping[str, Any]) -> str:
    """The kind of a value, in a few words."""
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2].replace("_", " ")
    if "const" in schema:
        return code(str(schema["const"]))
    if "enum" in schema:
        return ", ".join(code(str(value)) for value in schema["enum"])
    if schema.get("type") == "array":
        return f"list of {_kind(schema['items'])}"
    kind = schema.get("type", "object")
    words = " or ".join(kind) if isinstance(kind, list) else str(kind)
    return f"{words}, {code(schema['pattern'])}" if "pattern" in schema else words


def _host() -> str:
    sections = [
        f"## {kind.__name__}\n\n{_prose(kind)}\n\n{_fields(kind)}"
        for kind in _dataclasses(HostFacts, {HostFacts: None})
    ]
    return page("Facts of a host", ABOUT_HOST, *sections)


def _dataclasses(kind: type, seen: dict[type, None]) -> list[type]:
    """The dataclasses that a value of this kind is made of, in the order in which they are met."""
    for hint in typing.get_type_hints(kind).values():
        for inner in _types_in(hint):
            if dataclasses.is_dataclass(inner) and inner not in seen and inner is not Unavailable:
                seen[inner] = None
                _dataclasses(inner, seen)
    return list(seen)


def _types_in(hint: Any) -> Iterator[type]:
    if isinstance(hint, type) and not typing.get_args(hint):
        yield hint
    for argument in typing.get_args(hint):
        yield from _types_in(argument)


def _prose(kind: type) -> str:
    paragraphs = (inspect.getdoc(kind) or "").split("\n\n")
    return "\n\n".join(map(text, paragraphs))


def _fields(kind: type) -> str:
    hints = typing.get_type_hints(kind)
    meanings = {name: above or behind for above, name, behind in COMMENT.findall(inspect.getsource(kind))}
    rows = []
    for field in dataclasses.fields(kind):
        required = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        row = (code(field.name), _hint(hints[field.name]), "yes" if required else "")
        rows.append((*row, text(meanings[field.name])) if any(meanings.values()) else row)
    return table(("field", "is", "required", "means")[: len(rows[0])], rows)


def _hint(hint: Any) -> str:
    """A type in words: "list of Package, or unavailable"."""
    words = _words(hint)
    return f"{words[0]}, or {' or '.join(words[1:])}" if len(words) > 1 else words[0]


def _words(hint: Any) -> list[str]:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is tuple:
        return ["list of " + (_hint(arguments[0]) if arguments[-1] is Ellipsis else ", ".join(map(_hint, arguments)))]
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return [f"object of {_hint(arguments[1])}"]
    if arguments:
        return [word for argument in arguments for word in _words(argument)]
    if isinstance(hint, type) and dataclasses.is_dataclass(hint) and hint is not Unavailable:
        return [f"[{hint.__name__}](#{hint.__name__.lower()})"]
    names = {str: "text", int: "integer", float: "number", bool: "true or false", type(None): "null"}
    return [names.get(hint, hint.__name__.lower())]
