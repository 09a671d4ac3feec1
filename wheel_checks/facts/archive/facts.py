"""The zip archive of a wheel as its central directory describes it."""

from dataclasses import dataclass

from wheel_checks.formats.zip.directory import EndRecord, Member

MAX_READ = 1_000_000_000
"""Bytes of one wheel that may be streamed for what it holds, unless ``--max-read`` says otherwise: GPU code."""


@dataclass(frozen=True, slots=True)
class ArchiveFault:
    """One thing wrong with the zip archive.

    ``kind`` is "directory", "overlap", "header", "content", "gap", "descriptor", "extra", "comment", "version", or
    "index" for what the index alone refuses. ``member`` is "" when the fault is the archive's. ``case`` is a row of
    ``data/installers.toml``, "" if none.
    """

    kind: str
    message: str
    member: str = ""
    case: str = ""


@dataclass(frozen=True, slots=True)
class Archive:
    """The archive as its central directory describes it.

    ``local_headers_read`` counts the members whose own header was compared with it. ``mapped``: every byte of the file
    in front of the directory was accounted for, all headers among them.
    """

    end: EndRecord
    members: tuple[Member, ...]
    faults: tuple[ArchiveFault, ...]
    local_headers_read: int = 0
    mapped: bool = False
