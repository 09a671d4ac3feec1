"""Dependency pins: no install may silently replace the torch that works.

    from pathlib import Path
    from wheelproof.pins import Policy, plan

    for file in plan([Path(".")], Policy()).changed:
        print(file.path, [change.found.text for change in file.changes])

:func:`plan` reads and proves, and writes nothing; :mod:`wheelproof.pins.rewrite.replace` writes a plan, all files or
none, and :mod:`wheelproof.pins.rewrite.restoring` gives back the bytes that were present.
"""

from wheelproof.pins.policy import Mode, NameSet, Policy
from wheelproof.pins.rewrite.planning import plan

__all__ = ["Mode", "NameSet", "Policy", "plan"]
