"""Faults of plug-ins."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PluginFault:
    """A plug-in that cannot be used: its ``label``, a sentence that names it, and advice, or ""."""

    label: str
    what: str
    hint: str = ""
