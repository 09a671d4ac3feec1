"""pixi.toml: packages of conda and of Python, by feature and by target (in a pyproject.toml under tool.pixi)."""

from __future__ import annotations

from wheelproof.pins.documents.toml.requirements import Where, read_toml
from wheelproof.pins.documents.toml.scripts import with_scripts
from wheelproof.pins.model import Document, Form, Role, Source

_PREFIXES = ("", "feature.*.", "target.*.", "feature.*.target.*.")
PLACES = (
    *(
        Where(f"{prefix}pypi-options.dependency-overrides", Role.CONSTRAINT, Form.OVERRIDE)
        for prefix in ("", "feature.*.")
    ),
    *(
        Where(f"{prefix}{table}", role, form)
        for prefix in _PREFIXES
        for table, role, form in (
            ("pypi-dependencies", Role.RUNTIME, Form.VERSION),
            ("dependencies", Role.CONDA, Form.VERSION),
            ("host-dependencies", Role.CONDA, Form.VERSION),
            ("build-dependencies", Role.CONDA, Form.VERSION),
        )
    ),
)


def read(source: Source) -> Document:
    """The requirements of a pixi.toml. Raises FormatError when it is not valid TOML."""
    return with_scripts(source, read_toml(source, PLACES, "pixi"))
