"""The steps of a Dockerfile."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from wheelproof.pins.predict.command_line import Step


def is_image_file(path: Path) -> bool:
    """Whether a path names a Dockerfile, as Docker and Podman call them."""
    name = path.name.lower()
    is_named = name in ("dockerfile", "containerfile") or name.startswith("dockerfile.") or name.endswith(".dockerfile")
    return is_named and path.is_file()


def steps_of_image(path: Path) -> Iterator[Step]:
    """The installs of the RUN lines, in order."""
    yield Step(path.name, unread="not yet")
