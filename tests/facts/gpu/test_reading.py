"""The GPU code of wheels: the members with some, their code, and the bytes read for it."""

from __future__ import annotations

import random
import zlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.elf import Elf
from tests.support.fatbin import Image, fat_binary, section
from tests.support.wheel_facts import MemorySource, archive_of, facts_of
from tests.support.wheels import WheelBuilder, torch_like
from wheel_checks.errors import FormatError, SourceError
from wheel_checks.facts.gpu import reading as gpu_reading
from wheel_checks.facts.gpu import sampling, streaming
from wheel_checks.facts.gpu.code import GpuCodeFacts, LibraryGpuCode
from wheel_checks.facts.gpu.reading import read_gpu_code, read_until
from wheel_checks.facts.gpu.streaming import scan, search
from wheel_checks.facts.gpu.targets import parse_gpus
from wheel_checks.facts.wheel.depth import Depth
from wheel_checks.formats.gpu.fatbin import GpuCode, read_fatbins
from wheel_checks.model import Unavailable

LINKED = section(fat_binary("sm_90", "sm_100"), fat_binary("sm_90"))
RELOCATABLE = section(fat_binary("sm_80"))
NOISE = random.Random(7).randbytes(1 << 20)  # incompressible data, the same in every run
LINUX = "cp312-cp312-manylinux_2_28_x86_64"


def library(**sections: bytes) -> bytes:
    """A shared library; ``nv_fatbin`` and ``nv_relfatbin`` are its GPU code."""
    names = {"nv_fatbin": ".nv_fatbin", "nv_relfatbin": "__nv_relfatbin"}
    return Elf(contents={names[name]: content for name, content in sections.items()}).build().data


def far(*, gpu_code: bytes = b"") -> bytes:
    """A library whose section headers are a megabyte of incompressible bytes away from both of its ends."""
    return Elf(contents={".rodata": NOISE, ".nv_fatbin": gpu_code}).build().data + NOISE


def read(wheel: WheelBuilder, *, exact: bool = True) -> GpuCodeFacts:
    """The GPU code of a wheel."""
    archive = archive_of(facts_of(wheel))
    return read_gpu_code(MemorySource(wheel.build(), remote=True), archive, exact=exact)


def cuda_wheel(**members: bytes) -> WheelBuilder:
    """A wheel with these libraries: ``_C=...`` is demo/_C.so."""
    wheel = WheelBuilder("demo", "1.0", LINUX)
    for name, data in members.items():
        wheel.add(f"demo/{name}.so", data)
    return wheel


def counts(facts: GpuCodeFacts) -> dict[str, dict[str, int] | str]:
    """The facts of each library, or the reason without them."""
    return {
        item.member: item.code.reason if isinstance(item.code, Unavailable) else dict(item.code.counts)
        for item in facts.libraries
    }


def test_libraries_with_gpu_code_and_without() -> None:
    found = read(cuda_wheel(_host=library(), _C=library(nv_fatbin=LINKED)))

    assert counts(found) == {"demo/_C.so": {"sm_90": 2, "sm_100": 1}}
    assert found.main is not None
    assert found.main[1].certainty == "exact"
    assert found.main[1].containers == {frozenset({"sm_90", "sm_100"}): 1, frozenset({"sm_90"}): 1}


def test_relocatable_code_counts_only_where_nothing_else_is_loaded() -> None:
    both = library(nv_relfatbin=RELOCATABLE, nv_fatbin=LINKED)

    found = read(cuda_wheel(_both=both, _objects=library(nv_relfatbin=RELOCATABLE)))

    assert counts(found) == {"demo/_both.so": {"sm_90": 2, "sm_100": 1}, "demo/_objects.so": {"sm_80": 1}}


def test_section_headers_far_from_the_end_are_waited_for() -> None:
    found = read(cuda_wheel(_C=far(gpu_code=LINKED), _host=far()))

    assert counts(found) == {"demo/_C.so": {"sm_90": 2, "sm_100": 1}, "demo/_host.so": {}}
    assert found.libraries[0].bytes_read > len(NOISE)
    assert [member for member, _ in found.known] == ["demo/_C.so"]


def test_a_library_is_read_no_further_than_its_gpu_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.support.wheel_facts.CHUNK", 4096)
    elf = Elf(contents={".nv_fatbin": LINKED, ".rodata": NOISE}).build().data

    (read_library,) = read(cuda_wheel(_C=elf)).libraries

    assert 0 < read_library.bytes_read < 20_000


def test_code_that_a_library_keeps_as_data(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wheel_checks.facts.gpu.places._MUCH_DATA", 10_000)
    kept = section(*[fat_binary("sm_100")] * 100)
    fft = Elf(contents={".nv_fatbin": section(fat_binary("sm_75")), ".ldata": kept}).build().data
    found = {"sm_75": 1, "sm_100": 100}

    assert counts(read(cuda_wheel(_fft=fft))) == {"demo/_fft.so": found}
    headers_unknown = fft + NOISE
    assert counts(read(cuda_wheel(_far=headers_unknown))) == {"demo/_far.so": found}


@pytest.mark.parametrize("exact", [True, False])
def test_code_as_data_where_no_section_says_so(monkeypatch: pytest.MonkeyPatch, *, exact: bool) -> None:
    monkeypatch.setattr("wheel_checks.facts.gpu.places._MUCH_DATA", 10_000)
    kept = section(*[fat_binary("sm_100")] * 100)
    fft = Elf(contents={".data": kept}).build().data
    tables = Elf(contents={".data": NOISE[:20_000]}).build().data  # data, and no code
    host = Elf(contents={".data": kept, ".text": NOISE[: 2 * len(kept)]}).build().data  # most of it is no data

    assert counts(read(cuda_wheel(_fft=fft, _tables=tables, _host=host), exact=exact)) == {
        "demo/_fft.so": {"sm_100": 100}
    }
    headers_unknown = fft + NOISE
    assert counts(read(cuda_wheel(_far=headers_unknown))) == {"demo/_far.so": {"sm_100": 100}}


def test_stored_members_are_read_too() -> None:
    wheel = WheelBuilder("demo", "1.0", LINUX).add("demo/_C.so", library(nv_fatbin=LINKED), method=0)

    assert counts(read(wheel)) == {"demo/_C.so": {"sm_90": 2, "sm_100": 1}}


def test_fat_binaries_of_their_own() -> None:
    found = read(WheelBuilder("demo", "1.0", LINUX).add("demo/k.fatbin", LINKED))

    assert counts(found) == {"demo/k.fatbin": {"sm_90": 2, "sm_100": 1}}
    assert found.verdict == found.main


def test_unsound_gpu_code_is_told_with_its_reason() -> None:
    broken = bytearray(LINKED)
    broken[0] = 1

    (found,) = read(cuda_wheel(_C=library(nv_fatbin=bytes(broken)))).libraries

    assert isinstance(found.code, Unavailable)
    assert "has magic 0xBA55ED01; expected 0xBA55ED50" in found.code.reason


def test_a_broken_member_is_told_with_its_reason() -> None:
    wheel = cuda_wheel().add("demo/_C.so", far(gpu_code=LINKED), directory={"crc32": 1})

    (found,) = read(wheel).libraries

    assert isinstance(found.code, Unavailable)
    assert "has CRC-32" in found.code.reason


def test_members_on_the_same_bytes_are_not_read_over_and_over() -> None:
    wheel = cuda_wheel(_C=far(gpu_code=LINKED))
    archive = archive_of(facts_of(wheel))
    member = next(member for member in archive.members if member.name == "demo/_C.so")
    members = tuple(member._replace(name=f"demo/_{number}.so") for number in range(20))

    found = read_gpu_code(MemorySource(wheel.build()), replace(archive, members=members), exact=True)

    first, second, *_ = counts(found).values()
    assert first == {"sm_90": 2, "sm_100": 1}
    assert "more than are read" in second
    assert len(found.unread) == 19


def large(*labels: str, seed: int = 1) -> bytes:
    """A library with 45 containers of these labels: megabytes that no compressor shortens."""
    chance = random.Random(seed)
    empty = section(*[fat_binary(*(Image(label, 40_000) for label in labels))] * 45)
    first, *pieces = empty.split(b"\xa5" * 39_996)
    code = first + b"".join(chance.randbytes(39_996) + piece for piece in pieces)
    return Elf(contents={".rodata": NOISE[:300_000], ".nv_fatbin": code}).build().data


def certainties(facts: GpuCodeFacts) -> dict[str, str]:
    """How sure each library's code is."""
    return {item.member: item.code.certainty for item in facts.libraries if not isinstance(item.code, Unavailable)}


def test_not_exact_small_libraries_are_read_and_big_ones_sampled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_reading, "CHEAP", 100_000)
    monkeypatch.setattr(sampling, "WINDOW", 120_000)
    found = read(cuda_wheel(_C=library(nv_fatbin=LINKED), _big=large("sm_90", "sm_100a")), exact=False)

    assert certainties(found) == {"demo/_C.so": "exact", "demo/_big.so": "sampled"}
    assert set(counts(found)["demo/_big.so"]) == {"sm_90", "sm_100a"}
    assert found.libraries[1].bytes_read == sampling.SIZES[0] * 120_000


def test_a_sample_grows_until_nothing_is_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_reading, "CHEAP", 100_000)
    monkeypatch.setattr(sampling, "WINDOW", 100_000)
    wheel = cuda_wheel(_big=large("sm_90", "sm_100a"), _other=large("sm_80", "sm_90", seed=2))
    source, archive = MemorySource(wheel.build(), remote=True), archive_of(facts_of(wheel))
    asked: list[dict[str, str]] = []

    def missed(label: str, facts: GpuCodeFacts) -> list[str]:
        asked.append(certainties(facts))
        return [library for library, code in facts.known if label not in code.counts]

    present = read_until(source, archive, partial(missed, "sm_90"))
    assert set(certainties(present).values()) == {"sampled"}
    assert len(asked) == 1

    found = read_until(source, archive, partial(missed, "sm_100a"))
    assert certainties(found) == {"demo/_big.so": "sampled", "demo/_other.so": "exact"}
    assert counts(found)["demo/_other.so"] == {"sm_80": 45, "sm_90": 45}

    little = read_until(source, archive, partial(missed, "sm_70"), max_read=2_000_000)
    assert set(certainties(little).values()) == {"sampled"}
    limits = [library.limit for library in little.libraries]
    assert all(limit is not None and "--max-read" in limit.hint for limit in limits)


def test_a_library_with_relocatable_code_is_not_sampled(monkeypatch: pytest.MonkeyPatch) -> None:
    """A window does not say whether its code is loaded."""
    monkeypatch.setattr(gpu_reading, "CHEAP", 100_000)
    both = Elf(contents={".nv_fatbin": LINKED, "__nv_relfatbin": RELOCATABLE, ".rodata": NOISE}).build().data

    found = read(cuda_wheel(_both=both), exact=False)

    assert counts(found) == {"demo/_both.so": {}}
    assert certainties(found) == {"demo/_both.so": "sampled"}
    assert counts(read(cuda_wheel(_both=both))) == {"demo/_both.so": {"sm_90": 2, "sm_100": 1}}


def test_a_library_is_streamed_until_what_is_missed_was_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_reading, "CHEAP", 100_000)
    monkeypatch.setattr(sampling, "WINDOW", 4_000_000)  # so a sample would take as much as streaming
    monkeypatch.setattr(streaming, "_STEP", 1 << 19)
    wheel = cuda_wheel(_big=large("sm_90", "sm_100a"))
    source, archive = MemorySource(wheel.build(), remote=True), archive_of(facts_of(wheel))

    def read_for(label: str) -> GpuCodeFacts:
        def missed(facts: GpuCodeFacts) -> list[str]:
            return [library.member for library in facts.libraries if label not in dict(facts.whole.counts)]

        return read_until(source, archive, missed)

    (part,), (whole,) = read_for("sm_100a").libraries, read_for("sm_70").libraries
    assert certainties(read_for("sm_100a")) == {"demo/_big.so": "sampled"}
    assert set(counts(read_for("sm_100a"))["demo/_big.so"]) == {"sm_90", "sm_100a"}
    assert part.bytes_read < 1_500_000 < 3_000_000 < whole.bytes_read
    assert certainties(read_for("sm_70")) == {"demo/_big.so": "exact"}


def test_what_was_enough_for_one_question_is_not_kept_for_another() -> None:
    archive = archive_of(facts_of(cuda_wheel(_C=library(nv_fatbin=LINKED))))
    kept: dict[str, GpuCodeFacts] = {}
    open_code = GpuCodeFacts((LibraryGpuCode("demo/_C.so", GpuCode({"sm_80": 1}, "sampled", {})),))

    def remember(part: str, _: Callable[[], GpuCodeFacts]) -> GpuCodeFacts:
        return kept.setdefault(part, open_code)

    for question in ("GB200", "H100", "GB200"):
        read_until(MemorySource(b""), archive, lambda _: ["demo/_C.so"], question=question, remember=remember)

    assert "sampled gpu code" in kept
    rounds = len(kept) - 1
    assert rounds % 2 == 0
    assert rounds > 0


def test_code_outside_of_its_section_is_found_in_one_pass() -> None:
    """A sample showed sm_80, and the section has none: code elsewhere is included, too."""
    data = RELOCATABLE + LINKED + RELOCATABLE
    spans = [(len(RELOCATABLE), len(LINKED))]
    pieces = [data[start : start + 100] for start in range(0, len(data), 100)]

    assert dict(scan(iter(pieces), len(data), spans, seen=["sm_90"]).counts) == {"sm_90": 2, "sm_100": 1}
    assert dict(scan(iter(pieces), len(data), spans, seen=["sm_80"]).counts) == {"sm_90": 2, "sm_100": 1, "sm_80": 2}


def both_kinds(loaded: bytes, *, before: int) -> bytes:
    """A library with relocatable code for sm_80, so many incompressible bytes, and then ``loaded`` code."""
    noise = random.Random(3).randbytes(before)
    contents = {"__nv_relfatbin": RELOCATABLE, ".rodata": noise, ".nv_fatbin": loaded}
    return Elf(contents=contents).build().data


def test_beside_relocatable_code_only_windows_count_that_certainly_show_what_is_loaded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(gpu_reading, "CHEAP", 100_000)
    monkeypatch.setattr(sampling, "WINDOW", 120_000)
    chance = random.Random(5)
    code = section(*[fat_binary(Image("sm_90", 40_000), Image("sm_100", 40_000))] * 30)
    first, *pieces = code.split(b"\xa5" * 39_996)
    noisy = first + b"".join(chance.randbytes(39_996) + piece for piece in pieces)
    wheel = cuda_wheel(_both=both_kinds(noisy, before=1_000_000))

    found = read(wheel, exact=False)

    assert certainties(found) == {"demo/_both.so": "sampled"}
    assert set(counts(found)["demo/_both.so"]) == {"sm_90", "sm_100"}
    member = next(m for m in archive_of(facts_of(wheel)).members if m.name == "demo/_both.so")
    sections = ((member.size - len(noisy) - 5_000, len(noisy)),)
    places = sampling.window_places(sampling.Sampled(member, 0, sections, strictly=True), 31)
    packed_before = sum(length for _, length in places[:1])
    assert min(offset for offset, _ in places) >= sections[0][0]
    assert max(offset for offset, _ in places) + packed_before <= member.compressed_size


@given(
    before=st.integers(0, 200_000), loaded=st.integers(1, 400_000), after=st.integers(0, 200_000), seed=st.integers()
)
@settings(max_examples=30, deadline=None)
def test_a_certain_window_inflates_to_the_inside_of_the_span(before: int, loaded: int, after: int, seed: int) -> None:
    """Wherever the bytes that compress well lie."""
    chance = random.Random(seed)
    parts = [chance.randbytes(size) if chance.random() < 0.6 else bytes(size) for size in (before, loaded, after)]
    packer = zlib.compressobj(6, zlib.DEFLATED, -15)
    packed = packer.compress(b"".join(parts)) + packer.flush()
    (member,) = archive_of(facts_of(WheelBuilder("demo", "1.0", LINUX))).members[:1]
    member = member._replace(size=before + loaded + after, compressed_size=len(packed), method=8)

    low, room = sampling._certain_room(sampling.Sampled(member, 0, ((before, loaded),), strictly=True))

    if room > 0:
        assert len(zlib.decompressobj(-15).decompress(packed[:low])) >= before
        until = zlib.decompressobj(-15)
        assert len(until.decompress(packed[: low + room])) <= before + loaded


def test_a_library_without_section_headers_is_searched() -> None:
    stripped = Elf(contents={".nv_fatbin": LINKED}).build().with_fields({"e_shoff": 0, "e_shnum": 0, "e_shstrndx": 0})

    assert counts(read(cuda_wheel(_C=stripped))) == {"demo/_C.so": {"sm_90": 2, "sm_100": 1}}


def torch_that_declares(labels: str) -> WheelBuilder:
    """A torch whose libtorch_python.so names these architectures."""
    python = Elf(contents={".rodata": b"\0" + labels.encode() + b"\0"}).build().data
    cuda = library(nv_fatbin=LINKED)
    return (
        WheelBuilder("torch", "2.11.0", LINUX)
        .add("torch/lib/libtorch_cuda.so", cuda)
        .add("torch/lib/libtorch_python.so", python)
    )


def test_what_is_declared_is_read_only_where_all_is() -> None:
    found = read(torch_that_declares("sm_90 sm_100"), exact=False)

    assert found.declared is None
    assert found.verdict == found.main


def test_exact_both_are_known_and_the_code_counts() -> None:
    found = read(torch_that_declares("sm_90 sm_100"))

    assert found.declared is not None
    assert found.verdict == found.main == ("torch/lib/libtorch_cuda.so", found.libraries[0].code)


def test_depths() -> None:
    wheel = cuda_wheel(_C=library(nv_fatbin=LINKED))

    assert isinstance(facts_of(wheel).gpu_code, Unavailable)
    assert isinstance(facts_of(wheel, depth=Depth.LINKS).gpu_code, Unavailable)
    for wanted in ({"depth": Depth.GPU}, {"depth": Depth.FULL}, {"gpus": parse_gpus("GB200")}):
        found = facts_of(wheel, **wanted).gpu_code
        assert isinstance(found, GpuCodeFacts)
        assert counts(found) == {"demo/_C.so": {"sm_90": 2, "sm_100": 1}}


def test_nothing_is_read_of_a_cpu_wheel_unless_all_is() -> None:
    wheel = torch_like("cpu", "2.10.0", "aarch64")

    assert facts_of(wheel, gpus=parse_gpus("GB200")).gpu_code == Unavailable("the wheel is CPU only")
    assert isinstance(facts_of(wheel, depth=Depth.GPU).gpu_code, GpuCodeFacts)


def test_what_reading_costs_is_counted() -> None:
    wheel = cuda_wheel(_C=library(nv_fatbin=LINKED) + NOISE)

    quick, deep = facts_of(wheel, remote=True), facts_of(wheel, remote=True, depth=Depth.GPU)

    assert deep.bytes_read > quick.bytes_read + len(NOISE)


def test_a_source_that_fails_is_an_error() -> None:
    class Failing(MemorySource):
        def stream(self, offset: int, length: int) -> Iterator[bytes]:
            yield self.read(offset, length // 2)
            raise SourceError("the server went away")

    wheel = cuda_wheel(_C=library(nv_fatbin=LINKED))
    with pytest.raises(SourceError, match="went away"):
        read_gpu_code(Failing(wheel.build()), archive_of(facts_of(wheel)), exact=True)


@settings(max_examples=100)
@given(before=st.binary(max_size=100), chunk=st.integers(1, 400), after=st.binary(max_size=100))
def test_scanning_spans_in_chunks_of_any_size(before: bytes, chunk: int, after: bytes) -> None:
    data = before + LINKED + after + RELOCATABLE
    spans = [(len(data) - len(RELOCATABLE), len(RELOCATABLE)), (len(before), len(LINKED))]
    pieces = (data[start : start + chunk] for start in range(0, len(data), chunk))

    code = scan(pieces, len(data), spans)

    assert sum(code.counts.values()) == len(read_fatbins(LINKED)) + len(read_fatbins(RELOCATABLE))


@pytest.mark.parametrize("spans", [[(0, 100), (50, 10)], [(90, 20)]])
def test_spans_that_overlap_or_leave_the_file(spans: list[tuple[int, int]]) -> None:
    with pytest.raises(FormatError, match="their own place inside the file of 0x64 bytes"):
        scan([bytes(100)], 100, spans)


def test_a_file_shorter_than_it_claims() -> None:
    with pytest.raises(FormatError, match="ends at byte 10"):
        scan([bytes(10)], 100, [(0, 100)])


ELF = Elf(contents={".nv_fatbin": LINKED}).build()
patches = st.lists(st.tuples(st.integers(0, len(ELF.data) - 1), st.binary(min_size=1, max_size=8)), max_size=4)


@settings(max_examples=200)
@given(patches=patches, headers=st.integers(0, 1 << 40) | st.just(ELF.value("e_shoff")))
def test_a_damaged_library_is_read_or_refused(patches: list[tuple[int, bytes]], headers: int) -> None:
    data = bytearray(ELF.data)
    for offset, patch in patches:
        data[offset : offset + len(patch)] = patch[: len(data) - offset]
    try:
        code = search([bytes(data)], len(data), headers)
    except FormatError:
        return
    assert isinstance(code, Unavailable) or sum(code.counts.values()) <= len(data) // 64
