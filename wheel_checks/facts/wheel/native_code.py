"""The steps of reading contents that look into native code: the accelerator that it shows, and its GPU code.

Each takes contents and returns them with one more fact; see :mod:`wheel_checks.facts.wheel.contents_reading`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from wheel_checks.facts.accelerator.shown import ALL, QUICK, REQUESTED, AcceleratorContent
from wheel_checks.facts.accelerator.signals import CUDA, GPU
from wheel_checks.facts.archive.facts import MAX_READ, Archive
from wheel_checks.facts.archive.kept import NOTHING_KEPT, AsJson, FileFacts
from wheel_checks.formats.zip.directory import Member
from wheel_checks.model import Unavailable
from wheel_checks.sources.byte_source import ByteSource

if TYPE_CHECKING:  # depth quick, the most common, need not import the readers of GPU code
    from wheel_checks.facts.gpu.code import GpuCodeFacts
    from wheel_checks.facts.gpu.targets import Product
    from wheel_checks.facts.wheel.contents import WheelContents
    from wheel_checks.formats.gpu.fatbin import GpuCode

_ALL_CODE, _ACCELERATOR = "gpu code", "accelerator"  # kept facts


def with_accelerator(
    contents: WheelContents, source: ByteSource, wanted: str, kept: FileFacts = NOTHING_KEPT
) -> WheelContents:
    """The contents with all native members read until the accelerator ``wanted`` (or ``ANY``) is shown.

    ``ALL`` reads on if no CUDA version is shown.

    Raises SourceError.
    """
    known = contents.accelerator
    if isinstance(known, Unavailable) or known.complete:
        return contents
    enough = known.versions(CUDA) if wanted == ALL else known.shown and wanted not in GPU
    if wanted in known.accelerators or enough:
        return contents
    return read_accelerator(contents, source, kept, wanted, REQUESTED)


def read_accelerator(
    contents: WheelContents, source: ByteSource, kept: FileFacts, wanted: str, most: int
) -> WheelContents:
    """The contents with the accelerator of native members, from at most ``most`` bytes. Raises SourceError."""
    archive = contents.archive
    if isinstance(archive, Unavailable):
        return contents

    def read() -> AcceleratorContent:
        from wheel_checks.facts.accelerator.content import read_accelerator_content  # imports the readers of ELF files

        return read_accelerator_content(source, archive, most=most, wanted=wanted, look=partial(_look, source, archive))

    key = _ACCELERATOR if most == QUICK else f"accelerator {wanted} {most}"
    found = kept.remember(key, AsJson(AcceleratorContent), read)
    return replace(contents, accelerator=found)


def with_glance(contents: WheelContents, source: ByteSource, kept: FileFacts) -> WheelContents:
    """The contents with the accelerator that a few native members show. Raises SourceError."""
    archive = contents.archive
    if isinstance(archive, Unavailable):
        return contents

    def read() -> AcceleratorContent:
        from wheel_checks.facts.accelerator.content import glance_at_accelerator

        return glance_at_accelerator(source, archive)

    found = kept.remember("accelerator summary", AsJson(AcceleratorContent), read)
    return replace(contents, accelerator=found)


def with_absence(contents: WheelContents, source: ByteSource, kept: FileFacts, max_read: int) -> WheelContents:
    """The contents with up to ``max_read`` bytes read to prove that there is no accelerator, while none is shown."""
    known = contents.accelerator
    if isinstance(known, Unavailable) or known.complete or known.shown or max_read <= QUICK:
        return contents
    return read_accelerator(contents, source, kept, "", max_read)


def _look(source: ByteSource, archive: Archive, member: Member) -> tuple[GpuCode, int]:
    from wheel_checks.facts.gpu.reading import look_into

    return look_into(source, archive, member)


def with_gpu_code(
    contents: WheelContents, source: ByteSource, kept: FileFacts = NOTHING_KEPT, max_read: int = MAX_READ
) -> WheelContents:
    """The contents with all GPU code (at most ``max_read`` streamed bytes), if not broken. Raises SourceError."""
    archive = contents.archive
    if isinstance(archive, Unavailable):
        return contents
    from wheel_checks.facts.gpu.code import GpuCodeFacts
    from wheel_checks.facts.gpu.reading import read_gpu_code

    elfs = None if isinstance(contents.elfs, Unavailable) else contents.elfs
    code = kept.remember(
        _ALL_CODE,
        AsJson(GpuCodeFacts),
        lambda: read_gpu_code(source, archive, elfs, exact=True, max_read=max_read),
        is_sound=_was_read,
    )
    return replace(contents, gpu_code=code)


def _was_read(code: GpuCodeFacts) -> bool:
    """True when no limit kept anything from being read: a limit is not a fact of a file."""
    return all(library.limit is None for library in code.libraries)


def with_gpu_code_for(
    contents: WheelContents,
    source: ByteSource,
    kept: FileFacts,
    project: str,
    gpus: Sequence[Product],
    max_read: int = MAX_READ,
    *,
    presence: bool = False,
    drivers: Sequence[str] = (),
) -> WheelContents:
    """The contents with as much GPU code of a ``project`` as says whether it runs on ``gpus`` and with ``drivers``:
    samples, if these do.

    ``presence``, that there is code that runs will do; else whether it is machine code, or PTX, is known, too. At most
    ``max_read`` bytes are streamed. Raises SourceError when bytes cannot be had.
    """
    archive = contents.archive
    if isinstance(archive, Unavailable):
        return contents
    from wheel_checks.facts.gpu.answer import still_matters
    from wheel_checks.facts.gpu.code import GpuCodeFacts
    from wheel_checks.facts.gpu.reading import read_until
    from wheel_checks.facts.gpu.toolkit import hides_cuda

    def missed(found: GpuCodeFacts) -> frozenset[str]:
        return still_matters(replace(found, project=project), gpus, presence=presence) | hides_cuda(found, drivers)

    elfs = None if isinstance(contents.elfs, Unavailable) else contents.elfs
    code = read_until(
        source,
        archive,
        missed,
        elfs,
        question=repr((project, sorted((gpu.sm, gpu.gfx) for gpu in gpus), presence, *drivers)),
        max_read=max_read,
        remember=lambda part, read: kept.remember(part, AsJson(GpuCodeFacts), read, is_sound=_was_read),
    )
    return replace(contents, gpu_code=code)
