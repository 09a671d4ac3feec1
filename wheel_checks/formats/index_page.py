"""A project page of a simple repository (PEP 503, 592, 629, 658, 691, 700, 714), HTML or JSON, and find-links pages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class IndexFile:
    """One file that an index lists. ``url`` is absolute and may hold no credentials of ours.

    ``hashes`` maps algorithm to hex digest. ``yanked`` is None when the file is not yanked, else the reason ("" when
    none is given). ``core_metadata`` is None when no sidecar METADATA (``url + ".metadata"``) is offered, else the
    sidecar's hashes (empty when the index gives none). ``size`` is in bytes, None when the index does not tell.
    ``index`` is the index or page that listed it.
    """

    file_name: str
    url: str
    hashes: Mapping[str, str] = field(default_factory=dict)
    requires_python: str = ""
    yanked: str | None = None
    core_metadata: Mapping[str, str] | None = None
    size: int | None = None
    upload_time: str = ""
    index: str = ""
