"""What is wrong with a plug-in."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PluginFault:
    """A plug-in that cannot be used: its ``label``, a sentence that names it, and what to do ("" for nothing)."""

    label: str
    what: str
    hint: str = ""
