"""What the available uv can do: asked of uv itself, since one unknown key makes it ignore its whole table."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from wheel_checks.errors import SourceError
from wheel_checks.sources.scratch_folder import scratch_folder
from wheel_checks.sources.uv_binary import run_uv
from wheelproof.pins.installers import DEFAULT_TIMEOUT

_UNKNOWN = "wheelproof-asks-which-keys-there-are"
_EXPECTED = re.compile(r"expected one of ((?:`[\w-]+`(?:, )?)+)")


@dataclass(frozen=True, slots=True)
class UvAbilities:
    """``keys`` are those of the table [tool.uv]; ``excludes`` whether ``uv pip install`` has --excludes."""

    version: str
    keys: frozenset[str]
    excludes: bool


def read_uv(variables: Mapping[str, str]) -> UvAbilities:
    """Ask the uv that would be used. Raises SourceError if none exists, or when it does not say its keys."""
    plain = {name: value for name, value in variables.items() if not name.startswith("UV_")}
    version = run_uv(["--version"], plain, DEFAULT_TIMEOUT).output.split()
    with scratch_folder() as folder:
        config = folder / "uv.toml"
        config.write_text(f"{_UNKNOWN} = 1\n", encoding="utf-8")
        words = run_uv(["cache", "dir", "--config-file", str(config)], plain, DEFAULT_TIMEOUT).words
    told = _EXPECTED.search(words)
    if told is None or len(version) < 2:
        raise SourceError("uv does not report the settings it supports", hint="use a newer uv")
    options = run_uv(["pip", "install", "--help"], plain, DEFAULT_TIMEOUT)
    return UvAbilities(version[1], frozenset(told[1].strip("`").split("`, `")), "--excludes" in options.output)
