"""Whether the long description of a project renders, by the library that the index renders it with.

Markdown and plain text always do: readme_renderer refuses only reStructuredText. It runs in a child process with a
deadline, since the time that docutils takes is not bounded by the size of the text.
"""

from __future__ import annotations

import sys
from email.message import EmailMessage
from functools import lru_cache
from importlib.util import find_spec

from wheel_checks.extras import how_to_install
from wheel_checks.model import Unavailable
from wheel_checks.process import StartError, run
from wheel_checks.sources.scratch_folder import scratch_folder

DEADLINE = 60.0  # seconds
LONGEST = 512 * 1024
"""Characters of a description that is rendered, which bounds the memory that docutils takes."""
_RST = "text/x-rst"
_RENDERED, _REFUSED = 0, 7
_PROGRAM = """
import io, pathlib, sys
from readme_renderer import rst
warnings = io.StringIO()
rendered = rst.render(pathlib.Path(sys.argv[1]).read_text(encoding="utf-8"), stream=warnings)
print(warnings.getvalue()[:4000])
sys.exit(7 if rendered is None else 0)
"""


def content_type_of(field: str) -> str:
    """The media type in Description-Content-Type; without one it is reStructuredText, as for the index."""
    if not field:
        return _RST
    message = EmailMessage()
    message["content-type"] = field
    return message.get_content_type()


def render_fault(text: str, content_type: str) -> str | Unavailable:
    """Why the description does not render, "" when it does."""
    if not text.strip() or content_type_of(content_type) != _RST:
        return ""
    if len(text) > LONGEST:
        return Unavailable(f"the description has {len(text):,} characters; at most {LONGEST:,} are rendered here")
    if find_spec("readme_renderer") is None:
        return Unavailable(
            "readme_renderer, which renders the description, is not installed", how_to_install("release")
        )
    return _rendered(text)


@lru_cache(maxsize=32)
def _rendered(text: str) -> str | Unavailable:
    """The wheels of a release have one description."""
    try:
        with scratch_folder() as folder:
            place = folder / "description.rst"
            place.write_text(text, encoding="utf-8", errors="replace")
            ended = run([sys.executable, "-P", "-c", _PROGRAM, str(place)], deadline=DEADLINE, limit=64 << 10)
    except (OSError, StartError) as error:
        return Unavailable(f"the description cannot be rendered: {error}")
    if ended.timed_out:
        return Unavailable(f"rendering the description takes more than {DEADLINE:.0f} seconds")
    warnings = ended.output.decode("utf-8", "replace").strip().splitlines()
    if ended.status == _RENDERED:
        return ""
    if ended.status == _REFUSED:
        return next((line for line in warnings if line), "readme_renderer rejects it").replace("<string>:", "line ")
    errors = ended.errors.decode("utf-8", "replace").strip().splitlines()
    return Unavailable(f"the description cannot be rendered: {errors[-1] if errors else f'status {ended.status}'}")
