"""What ``wheelproof pins`` says on standard error about the trees that it writes."""

from collections.abc import Sequence
from pathlib import Path

from wheelproof.cli.options import note


def say_waiting(root: Path) -> None:
    """Say that another run is in the tree."""
    from wheelproof.pins.rewrite.lock import WAIT

    note(f"waiting up to {WAIT:.0f} s for another run in {root}", quiet=False)


def show_old_journals(paths: Sequence[Path], *, below: bool) -> None:
    """Show the journals that an older version left in the tree, and that are ignored."""
    from wheelproof.pins.rewrite.finding import as_shown, old_journals

    for journal in dict.fromkeys(journal for path in paths for journal in old_journals(path, below=below)):
        for sentence in as_shown(journal):
            note(sentence, quiet=False)
