"""YAML with commands: GitHub workflows and composite actions, GitLab CI, and similar.

Of a file that is known to be a pipeline every text counts that is run; of another, the keys that run something. The
variables that the file itself defines (env, variables, matrix, inputs) are put in, each value in turn.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import yaml

from wheel_checks.errors import FormatError
from wheelproof.pins.documents.commands.document import document, of_scripts
from wheelproof.pins.documents.commands.lexer import UNKNOWN, Dialect
from wheelproof.pins.documents.commands.piece import Piece
from wheelproof.pins.documents.commands.shell import limited
from wheelproof.pins.documents.yaml_scan import without_templates
from wheelproof.pins.model import Document, Notice, Place, Source

LONGEST = 1 << 19  # characters
DEEPEST = 60
MOST = 50_000  # values

_INSTALLS = re.compile(
    r"(?:pip[\d.]*|\buv\b|conda|mamba|poetry|pdm|pixi|rye|pipenv|PIP\w*\}?)['\"]?\s+(?:\S+\s+)*?(?:install|add|create|sync|run|update)\b",
    re.IGNORECASE,
)
_WORDS = frozenset(
    {
        "name",
        "description",
        "title",
        "label",
        "key",
        "group",
        "if",
        "id",
        "uses",
        "help",
        "message",
        "summary",
        "deprecationMessage",
        "body",
        "placeholder",
        "labels",
        "about",
    }
)
_PIP_INPUT = frozenset({"pip-install"})  # of actions/setup-python: the arguments of `pip install`
_SHELLS = {"pwsh": Dialect.POWERSHELL, "powershell": Dialect.POWERSHELL, "cmd": Dialect.CMD}
_VARIABLES = frozenset({"env", "variables", "environment"})
_TO_ENV = re.compile(r"""echo\s+(["']?)([A-Za-z_]\w*)=([^"'\n`]*?)\1\s*>>\s*["']?\$\{?GITHUB_ENV""", re.ASCII)


@dataclass(frozen=True, slots=True)
class _Value:
    """A text of the document: the keys that lead to it, the scalar, and the mapping that it is in."""

    keys: tuple[str, ...]
    node: yaml.ScalarNode
    siblings: dict[str, str]


def read(source: Source) -> Document:
    """The installations of a pipeline. Malformed YAML is reported as not read."""
    try:
        roots = _compose(source.text)
        found = of_scripts([script for root in roots for script in _scripts(source.text, root)])
    except FormatError as error:
        message = f"its commands are unknown: {error.what}"
        return document(source, "pipeline", (), [Notice("dynamic", message, Place(source.path, 1, 1))])
    return document(source, "pipeline", found)


def _compose(text: str) -> list[yaml.Node]:
    if len(text) > LONGEST:
        raise FormatError(f"the YAML has {len(text):,} characters", expected=f"at most {LONGEST:,}")
    for attempt in dict.fromkeys((text, without_templates(text))):
        try:
            return [node for node in yaml.compose_all(attempt, Loader=yaml.SafeLoader) if node is not None]
        except (yaml.YAMLError, ValueError, OverflowError, RecursionError) as error:
            fault = " ".join(str(getattr(error, "problem", "") or error).split())[:200]
    raise FormatError(f"it is not valid YAML: {fault}")


def _scripts(text: str, root: yaml.Node) -> Iterator[Piece]:
    values = list(_values(root, (), {}, 0, [0]))
    shared = _variables(root, jobs=False)
    of_job: dict[tuple[str, ...], dict[str, tuple[str, ...]]] = {}
    for value in values:
        key = value.keys[-1] if value.keys else ""
        job = value.keys[: 2 if value.keys[:1] == ("jobs",) else 1]
        shell = value.siblings.get("shell", "") or _default_shell(root, job) if key == "run" else ""
        if _runs_nothing(value, key) or shell in ("python", "perl", "node"):
            continue
        if job not in of_job:
            of_job[job] = {**shared, **_variables(_child(root, *job), jobs=True)} if len(value.keys) > 1 else shared
        step = {name: (known,) for name, known in value.siblings.items() if name.startswith("env.")}
        variables = of_job[job] | {name.removeprefix("env."): known for name, known in step.items()} | step
        script_text, anchors = _placed(text, value.node)
        if key in _PIP_INPUT:
            lead = "pip install "
            script_text, anchors = lead + script_text, ((0, anchors[0][1]), (len(lead), anchors[0][1]))
        elif not (_INSTALLS.search(" ".join(script_text.split())) or _PIP_IN.search(script_text)):
            continue
        dialect = _SHELLS.get(shell or ("pwsh" if key in ("pwsh", "powershell") else ""), Dialect.SH)
        yield Piece(script_text, anchors, variables, dialect)
    yield from _lists(root, shared)


def _runs_nothing(value: _Value, key: str) -> bool:
    """Whether a text is a name or a variable, which is not run; some variables are commands."""
    if "env" in value.keys[-2:-1] and not key.upper().startswith(("CIBW_", "BEFORE", "INSTALL")):
        return True
    return key in _WORDS or (key == "default" and "inputs" in value.keys)


def _default_shell(root: yaml.Node, job: tuple[str, ...]) -> str:
    """The shell of ``defaults``, of the job or of the workflow."""
    for owner in (_child(root, *job), root):
        found = _child(owner, "defaults", "run", "shell")
        if isinstance(found, yaml.ScalarNode):
            return str(found.value)
    return ""


_PIP_IN = re.compile(r"\bpip\b|\buv\b", re.IGNORECASE)


def _lists(root: yaml.Node, variables: dict[str, tuple[str, ...]]) -> Iterator[Piece]:
    """Commands that are lists of their words: ``["pip", "install", "x"]``."""
    for node in _nodes(root, [0]):
        if isinstance(node, yaml.SequenceNode) and len(node.value) > 1:
            words = [item.value for item in node.value if isinstance(item, yaml.ScalarNode)]
            if len(words) == len(node.value) and "install" in words and not any(" " in word for word in words):
                anchors: list[tuple[int, int]] = []
                offset = 0
                for item in node.value:
                    anchors.append((offset, item.start_mark.index))
                    offset += len(item.value) + 1
                yield Piece(" ".join(words), tuple(anchors), variables, Dialect.WORDS)


def _nodes(node: yaml.Node, count: list[int], depth: int = 0) -> Iterator[yaml.Node]:
    _count(count, depth)
    yield node
    if isinstance(node, yaml.SequenceNode):
        for child in node.value:
            yield from _nodes(child, count, depth + 1)
    elif isinstance(node, yaml.MappingNode):
        for _, child in node.value:
            yield from _nodes(child, count, depth + 1)


def _count(count: list[int], depth: int) -> None:
    """Count a value. Raises FormatError for too many of them, and for too deep ones."""
    count[0] += 1
    if depth > DEEPEST or count[0] > MOST:
        raise FormatError(f"the YAML has more than {MOST:,} values, or {DEEPEST} levels")


def _values(
    node: yaml.Node, keys: tuple[str, ...], siblings: dict[str, str], depth: int, count: list[int]
) -> Iterator[_Value]:
    _count(count, depth)
    if isinstance(node, yaml.ScalarNode):
        yield _Value(keys, node, siblings)
    elif isinstance(node, yaml.SequenceNode):
        for child in node.value:
            yield from _values(child, keys, siblings, depth + 1, count)
    elif isinstance(node, yaml.MappingNode):
        texts = {
            key.value: child.value
            for key, child in node.value
            if isinstance(key, yaml.ScalarNode) and isinstance(child, yaml.ScalarNode)
        }
        env = _child(node, "env")
        texts |= {f"env.{name}": value for name, value in _texts(env).items()}
        for key, child in node.value:
            name = key.value if isinstance(key, yaml.ScalarNode) else ""
            yield from _values(child, (*keys, name), texts, depth + 1, count)


def _child(node: yaml.Node | None, *keys: str) -> yaml.Node | None:
    for key in keys:
        if not isinstance(node, yaml.MappingNode):
            return None
        node = next((v for k, v in node.value if isinstance(k, yaml.ScalarNode) and k.value == key), None)
    return node


def _texts(node: yaml.Node | None) -> dict[str, str]:
    """The texts of a mapping; GitLab's ``{value: x}`` counts as x."""
    found: dict[str, str] = {}
    for key, value in node.value if isinstance(node, yaml.MappingNode) else ():
        if isinstance(key, yaml.ScalarNode):
            text = value if isinstance(value, yaml.ScalarNode) else _child(value, "value")
            if isinstance(text, yaml.ScalarNode):
                found[key.value] = text.value
    return found


def _variables(root: yaml.Node | None, *, jobs: bool) -> dict[str, tuple[str, ...]]:
    """The variables of a document or a job: ``NAME`` and ``env.NAME``, ``matrix.KEY``, ``inputs.KEY``."""
    found: dict[str, tuple[str, ...]] = {}

    def put(name: str, *values: str) -> None:
        found[name] = limited((*found.get(name, ()), *values))

    if not isinstance(root, yaml.MappingNode):
        return found
    for key in _VARIABLES:
        for name, value in _texts(_child(root, key)).items():
            known = UNKNOWN if "${{" in value else value
            put(name, known)
            put(f"env.{name}", known)
    for path in (("strategy", "matrix"), ("parallel", "matrix"), ("matrix",)):
        _matrix(_child(root, *path), put)
    if not jobs:
        _inputs(root, put)
    for text in _values(root, (), {}, 0, [0]):
        for match in _TO_ENV.finditer(text.node.value) if "GITHUB_ENV" in text.node.value else ():
            known = UNKNOWN if "$" in match[3] else match[3]
            put(match[2], known)
            put(f"env.{match[2]}", known)
    return found


def _inputs(root: yaml.Node, put: Callable[..., None]) -> None:
    """The defaults of a workflow's or an action's inputs."""
    tables = [
        _child(root, "inputs"),
        *(_child(root, on, event, "inputs") for on in ("on", "true") for event in _EVENTS),
    ]
    for node in tables:
        for key, value in node.value if isinstance(node, yaml.MappingNode) else ():
            default = _texts(value).get("default")
            known = UNKNOWN if not default or "${{" in default else default
            put(f"inputs.{key.value}", known)
            put(f"github.event.inputs.{key.value}", known)


_EVENTS = ("workflow_call", "workflow_dispatch")


def _matrix(node: yaml.Node | None, put: Callable[..., None]) -> None:
    if isinstance(node, yaml.SequenceNode):  # GitLab: a list of mappings
        for child in node.value:
            _matrix(child, put)
        return
    for key, value in node.value if isinstance(node, yaml.MappingNode) else ():
        if not isinstance(key, yaml.ScalarNode) or key.value == "exclude":
            continue
        items = value.value if isinstance(value, yaml.SequenceNode) else [value]
        for item in items:
            if isinstance(item, yaml.ScalarNode):
                known = UNKNOWN if "${{" in item.value else item.value
                put(f"matrix.{key.value}", known)
                put(key.value, known)
            elif isinstance(item, yaml.MappingNode):
                prefix = "matrix" if key.value == "include" else f"matrix.{key.value}"
                for name, text in _texts(item).items():
                    put(f"{prefix}.{name}", UNKNOWN if "${{" in text else text)


def _placed(text: str, node: yaml.ScalarNode) -> tuple[str, tuple[tuple[int, int], ...]]:
    """The text of a scalar, each line at its place where the document has it as it is."""
    start, end = node.start_mark.index, node.end_mark.index
    raw = text[start:end]
    if node.style == "|":
        first = raw.find("\n") + 1
        return raw[first:], ((0, start + first),)
    if node.style == ">":
        first = raw.find("\n") + 1
        body = re.sub(r"(?<=\S)([ \t]*)(\r?\n)(?=[ \t]*\S)", lambda m: " " * len(m[0]), raw[first:])
        return body, ((0, start + first),)
    quotes = int(node.style in ("'", '"'))
    inner = raw[quotes : len(raw) - quotes]
    if not quotes or inner == node.value:
        return re.sub(r"\r?\n", lambda m: " " * len(m[0]), inner), ((0, start + quotes),)
    return node.value, ((0, start + quotes),)
