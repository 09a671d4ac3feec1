"""METADATA as an index takes it at upload: packaging reads it, trove-classifiers and readme_renderer judge it."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from wheel_checks.errors import FormatError
from wheel_checks.extras import how_to_install
from wheel_checks.formats.wheel.core_metadata import read_fields
from wheel_checks.model import Unavailable
from wheel_checks.phrases import abbreviated, joined
from wheel_checks.process import StartError, run
from wheel_checks.sources.scratch_folder import scratch_folder

PRIVATE = "private ::"  # of classifiers, in lower case
DEADLINE = 60.0  # seconds to render a description
LONGEST = 512 * 1024
"""Characters of a description that is rendered, which bounds the memory that docutils takes."""
_PLACEHOLDER = "UNKNOWN"  # of setuptools up to 2021; the index ignores it (warehouse/forklift/decorators.py)
_RST = "text/x-rst"  # also without a content type; other descriptions always render
_PROGRAM = """
import io, pathlib, sys
from readme_renderer import rst
warnings = io.StringIO()
if rst.render(pathlib.Path(sys.argv[1]).read_text(encoding="utf-8"), stream=warnings) is None:
    print(warnings.getvalue().strip().partition("\\n")[0][:4000] or "readme_renderer rejects it")
"""


@dataclass(frozen=True, slots=True)
class UploadFacts:
    """METADATA, and the faults that the libraries of the index find in it."""

    fields: Mapping[str, Any]
    """The fields that packaging reads, as in its ``RawMetadata``."""
    unread: Mapping[str, Sequence[str]]
    """The values of the fields that packaging cannot read, by their names in lower case."""
    classifier_faults: tuple[str, ...] | Unavailable
    """A sentence for each classifier that is unknown or deprecated."""
    render_fault: str | Unavailable
    """Why the description does not render, "" when it does."""


def read_upload(data: bytes | Unavailable) -> UploadFacts | Unavailable:
    """These facts of the bytes of METADATA."""
    if isinstance(data, Unavailable):
        return data
    try:
        raw, unread, body = read_fields(data, [])
    except FormatError as error:
        return Unavailable(str(error))
    fields: dict[str, Any] = {key: value for key, value in raw.items() if value != _PLACEHOLDER}
    if body and "description" in fields:
        unread["description"] = [fields["description"], body]
    text: str = body or fields.get("description", "")
    content_type = fields.get("description_content_type") or [*unread.get("description-content-type", ()), _RST][0]
    is_rst = content_type.partition(";")[0].strip().lower() == _RST
    fault = _render_fault(text) if is_rst and text.strip() else ""
    return UploadFacts(fields, unread, _classifier_faults(fields.get("classifiers", ())), fault)


def _classifier_faults(stated: Sequence[str]) -> tuple[str, ...] | Unavailable:
    if stated and find_spec("trove_classifiers") is None:
        what = "trove-classifiers, the list of classifiers that the index accepts, is not installed"
        return Unavailable(what, how_to_install("release"))
    return tuple(_not_listed(stated)) if stated else ()


def _not_listed(stated: Sequence[str]) -> Iterator[str]:
    table = import_module("trove_classifiers")
    for text in stated:
        if text in table.deprecated_classifiers:
            instead = table.deprecated_classifiers[text]
            yield f"the classifier {text!r} is deprecated" + (f": use {joined(instead)}" if instead else "")
        elif text not in table.classifiers and not text.lower().startswith(PRIVATE):
            yield f"the index has no classifier {abbreviated(text, 160)!r}"


@lru_cache(maxsize=2)  # the wheels of a release have one description
def _render_fault(text: str) -> str | Unavailable:
    """Rendered in a child process with a deadline, since the size of the text does not bound the time."""
    if len(text) > LONGEST:
        return Unavailable(f"the description has {len(text):,} characters; at most {LONGEST:,} are rendered here")
    if find_spec("readme_renderer") is None:
        what = "readme_renderer, which renders the description, is not installed"
        return Unavailable(what, how_to_install("release"))
    try:
        with scratch_folder() as folder:
            place = folder / "description.rst"
            place.write_text(text, encoding="utf-8", errors="replace")
            ended = run([sys.executable, "-P", "-c", _PROGRAM, str(place)], deadline=DEADLINE, limit=64 << 10)
    except (OSError, StartError) as error:
        return Unavailable(f"the description cannot be rendered: {error}")
    if ended.timed_out:
        return Unavailable(f"rendering the description takes more than {DEADLINE:.0f} seconds")
    if ended.status:
        errors = ended.errors.decode("utf-8", "replace").strip().splitlines()
        return Unavailable(f"the description cannot be rendered: {errors[-1] if errors else f'status {ended.status}'}")
    return ended.output.decode("utf-8", "replace").strip().replace("<string>:", "line ")
