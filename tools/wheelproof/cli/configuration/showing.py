"""``--show-config``: the files, each option with its value and origin, and ignored settings with the reason."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from wheel_checks.formats.secrets import redact_text
from wheel_checks.report.wording import neutral

if TYPE_CHECKING:
    import argparse

    from wheelproof.cli.configuration.tree import TreeSettings


def shown(
    options: Mapping[str, argparse.Action],
    namespace: argparse.Namespace,
    origins: Mapping[str, str],
    own: Path | None,
    tree: TreeSettings,
) -> Iterator[str]:
    """The lines: TOML with comments. No value shows the credentials of a URL."""
    for whose, path in (("your own configuration", own), ("the configuration of the tree", tree.path)):
        yield f"# {whose}: {neutral(str(path)) if path else 'none'}\n"
    for key, action in sorted(options.items()):
        value, origin = getattr(namespace, action.dest), origins.get(key, "default")
        if key in tree.origins:
            value = [*value, *getattr(tree, action.dest)] if hasattr(tree, action.dest) else value
            origin = f"{origin}, {tree.origins[key]}" if key in origins else tree.origins[key]
        shown = redact_text(repr(value))
        yield f"{key} = {neutral(shown)}  # {neutral(origin)}\n"
    for refusal in tree.refused:
        yield f"# {neutral(str(refusal))}\n"
