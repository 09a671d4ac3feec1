"""One library of a wheel that has GPU code, or may have some: where it is, and how far it was read."""

from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass, field

from wheel_checks.errors import FormatError
from wheel_checks.facts.gpu.sampling import Sampled
from wheel_checks.facts.gpu.streaming import Enough, all_of_it, scan, search, search_everywhere
from wheel_checks.formats.gpu.fatbin import GpuCode
from wheel_checks.formats.zip.directory import Member
from wheel_checks.formats.zip.member_data import inflate_stream
from wheel_checks.model import Unavailable
from wheel_checks.sources.byte_source import ByteSource


@dataclass(slots=True)
class Library:
    """One member to read. ``spans`` hold fat binaries and ``bundles`` offload bundles; None when that is unknown, as
    the section headers at ``headers_offset`` were not read; ``as_data`` when there may be code anywhere, ``suspected``
    when nothing but its size says so: it counts once code was seen. Of a library that also has ``unloaded`` fat
    binaries only those windows are sampled that certainly are in a span.
    """

    member: Member
    spans: list[tuple[int, int]] | None
    bundles: list[tuple[int, int]] = field(default_factory=list)
    headers_offset: int = 0
    as_data: bool = False
    suspected: bool = False
    unloaded: bool = False
    data_offset: int = 0
    windows: int = 0  # that were looked into
    limit: Unavailable | None = None
    code: GpuCode | Unavailable = field(default=GpuCode({}, "sampled", {}))
    bytes_read: int = 0
    is_streamed: bool = False  # as far as was enough for someone, or to the end

    @property
    def is_open(self) -> bool:
        """True when reading on may show more."""
        return not isinstance(self.code, Unavailable) and self.code.certainty != "exact" and self.limit is None

    @property
    def is_shown(self) -> bool:
        """True unless it is suspected alone."""
        return not self.suspected or (not isinstance(self.code, Unavailable) and bool(self.code.counts))

    @property
    def sampled(self) -> Sampled:
        """What a sample needs to know."""
        anywhere = self.as_data or self.spans is None
        spans = () if anywhere else (*(self.spans or ()), *self.bundles)
        return Sampled(self.member, self.data_offset, spans, strictly=self.unloaded)

    def stream(self, source: ByteSource, enough: Enough = all_of_it) -> None:
        """Read from its first byte until the code that was seen is ``enough``; else to the end of its last span, or to
        its own end where a sample showed code that is in no span.
        """
        self.is_streamed = True
        chunks = source.stream(self.data_offset, self.member.compressed_size)
        pieces = inflate_stream(self.member, self._counted(chunks))
        size = self.member.size
        seen = GpuCode({}, "sampled", {}) if isinstance(self.code, Unavailable) else self.code
        try:
            if self.as_data:
                code: GpuCode | Unavailable = search_everywhere(pieces, size, enough)
            elif self.spans is None:
                code = search(pieces, size, self.headers_offset, enough)
            else:
                code = scan(pieces, size, self.spans, self.bundles, seen=seen.counts, enough=enough)
        except FormatError as error:
            code = Unavailable(f"it cannot be read: {error}", error.hint)
        finally:
            if isinstance(chunks, Generator):
                chunks.close()  # now, not at some later time: a connection hangs on it
        is_part = isinstance(code, GpuCode) and code.certainty == "sampled"
        self.code = seen + code if is_part and isinstance(code, GpuCode) else code

    def _counted(self, chunks: Iterable[bytes]) -> Iterator[bytes]:
        for chunk in chunks:
            self.bytes_read += len(chunk)
            yield chunk
