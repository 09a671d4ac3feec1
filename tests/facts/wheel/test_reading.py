"""Reading a wheel: its cost, files that are no wheels, lying archives, and the findings of depth full."""

from __future__ import annotations

import base64
import random
from itertools import pairwise
from pathlib import Path

import pytest

from tests.support.wheel_facts import AARCH64, MemorySource, archive_of, facts_of, findings, judged, listed
from tests.support.wheels import WheelBuilder, torch_like
from tests.support.zips import ZipEntry, write_zip
from wheel_checks.errors import NotFoundError
from wheel_checks.facts.accelerator.verdict import AcceleratorFacts
from wheel_checks.facts.archive.reading import TAIL
from wheel_checks.facts.wheel.contents_reading import QUICK_BYTES
from wheel_checks.facts.wheel.depth import Depth
from wheel_checks.facts.wheel.reading import Request, read_wheel
from wheel_checks.facts.wheel.summary import headline, summarize
from wheel_checks.formats.wheel.core_metadata import CoreMetadata
from wheel_checks.formats.wheel.record import Record
from wheel_checks.model import Unavailable
from wheel_checks.sources.local import LocalFile

NAME = "demo-1.0-py3-none-any.whl"


def noise(size: int) -> bytes:
    """Bytes that no compression makes smaller."""
    return random.Random(size).randbytes(size)


def large_torch(members: int) -> WheelBuilder:
    """A torch wheel with a large central directory and RECORD."""
    wheel = torch_like("cuda", "2.11.0", "aarch64")
    for number in range(members):
        wheel.add(f"torch/include/ATen/ops/a_long_name_of_a_header_{number}.h", noise(20), method=0)
    return wheel


def read_once(source: MemorySource) -> bool:
    """No byte was requested twice."""
    spans = sorted((offset, offset + length) for offset, length in source.ranges)
    return all(end <= start for (_, end), (start, _) in pairwise(spans))


class TestCost:
    def test_a_remote_wheel_takes_few_requests_and_no_byte_twice(self) -> None:
        wheel = large_torch(1_000)
        source = MemorySource(wheel.build(), remote=True)

        facts = read_wheel(source, Request(wheel.file_name))

        assert archive_of(facts).end.directory_size > TAIL
        assert isinstance(facts.record, Record)
        # The tail, the rest of the directory, version.py, the dist-info folder, and libraries until CUDA is shown.
        assert len(source.ranges) == 6
        assert read_once(source)
        assert (facts.bytes_read, facts.requests) == (source.cost.bytes_read, 6)

    def test_a_small_wheel_is_read_by_its_tail_and_its_members(self) -> None:
        source = MemorySource(WheelBuilder().build(), remote=True)

        read_wheel(source, Request(NAME))

        assert len(source.ranges) == 2

    def test_a_record_that_is_too_dear_is_left_out_and_read_at_depth_full(self) -> None:
        digests = base64.urlsafe_b64encode(noise(33 * 20_000)).decode()
        rows = [f"a{number},sha256={digests[44 * number :][:43]},1\n" for number in range(20_000)]
        description = base64.b64encode(noise(QUICK_BYTES // 2)).decode()
        wheel = torch_like("cuda", "2.11.0").metadata("", description).dist_info_file("RECORD", "".join(rows))
        data = wheel.build()

        quick = facts_of(data, wheel.file_name, remote=True)

        assert isinstance(quick.record, Unavailable)
        assert quick.record.reason.startswith("RECORD (")
        assert quick.record.reason.endswith(" bytes) of a remote wheel is not read at depth quick")
        assert quick.record.hint == "--depth full reads it"
        assert [result.outcome for result in judged("WHL120", quick)] == ["skip"]
        assert isinstance(facts_of(data, wheel.file_name, remote=True, depth=Depth.FULL).record, Record)
        assert isinstance(facts_of(data, wheel.file_name).record, Record)

    def test_a_wheel_without_a_record_has_none_however_dear_the_rest_is(self) -> None:
        wheel = WheelBuilder().dist_info_file("METADATA", "Name: demo\n").build(record=False)

        assert facts_of(wheel, remote=True).record == Unavailable("the wheel has no demo-1.0.dist-info/RECORD")

    def test_the_sidecar_counts_as_a_request(self) -> None:
        wheel = WheelBuilder()
        plain, with_sidecar = facts_of(wheel), facts_of(wheel, read_sidecar=lambda: b"Name: demo\n")

        assert with_sidecar.requests == plain.requests + 1
        assert with_sidecar.bytes_read == plain.bytes_read + len(b"Name: demo\n")


class TestArchives:
    @pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
    def test_zip64(self, machine: str) -> None:
        wheel = torch_like("cuda", "2.11.0", machine).add("torch/lib/large.so", b"x", zip64=True)

        facts = facts_of(wheel.build(zip64=True), wheel.file_name)

        assert archive_of(facts).end.zip64
        assert headline(facts) == "CUDA 13.0 (2.11.0+cu130)"

    def test_a_long_comment_hides_the_end_from_the_first_read(self) -> None:
        source = MemorySource(WheelBuilder().build(comment=b"c" * 65_535, zip64=True), remote=True)

        facts = read_wheel(source, Request(NAME))

        assert archive_of(facts).end.comment_size == 65_535
        assert read_once(source)

    @pytest.mark.parametrize(
        ("data", "why"),
        [
            (b"", "the file is empty"),
            (b"not a wheel\n", "the file has no zip end record; it looks like text"),
            (
                b"<!DOCTYPE html><title>Sign in</title>" + bytes(2 * TAIL),
                "the file has no zip end record; it looks like an HTML page (an error or sign-in page?)",
            ),
            (
                WheelBuilder().add("demo/a", noise(2 * TAIL)).build()[:TAIL],
                "the file has no zip end record; it looks like the beginning of a zip archive",
            ),
        ],
        ids=["empty", "text", "html", "truncated"],
    )
    def test_what_is_no_archive_says_what_it_is_instead(self, data: bytes, why: str) -> None:
        source = MemorySource(data)

        facts = read_wheel(source, Request(NAME))

        assert facts.broken == why
        assert headline(facts) == "not a readable wheel"
        assert summarize(facts)["size"] == len(data)
        assert read_once(source)

    def test_bytes_in_front_of_the_archive(self) -> None:
        facts = facts_of(WheelBuilder().build(prefix=b"#!/bin/sh\n"))

        assert facts.broken.startswith("the central directory should end at byte ")
        assert facts.broken.endswith("; it looks like binary data")

    def test_a_broken_wheel_is_judged_by_what_is_known_of_it(self) -> None:
        facts = facts_of(b"no", "demo.whl")

        assert len(findings("WHL001", facts)) == len(findings("WHL101", facts)) == 1
        assert [result.outcome for result in judged("WHL121", facts)] == ["skip"]

    def test_a_wheel_on_disk(self, tmp_path: Path) -> None:
        source = LocalFile(torch_like("cpu", "2.10.0").write(tmp_path))
        try:
            facts = read_wheel(source, Request(Path(source.location).name))
        finally:
            source.close()

        assert (facts.location, headline(facts)) == (source.location, "CPU only (2.10.0+cpu)")


class TestDistInfo:
    def test_without_one(self) -> None:
        facts = facts_of(write_zip([ZipEntry("demo/__init__.py")]))

        assert facts.dist_infos == ()
        assert facts.metadata == Unavailable("the wheel has no *.dist-info/METADATA")
        assert [result.message for result in findings("WHL013", facts)] == [
            "the wheel has no dist-info folders; expected one"
        ]

    def test_of_two_the_one_with_the_wheels_name_is_read(self) -> None:
        wheel = WheelBuilder().add("other-2.0.dist-info/METADATA", "Name: other\n")

        facts = facts_of(wheel)

        assert facts.dist_infos == ("other-2.0.dist-info", "demo-1.0.dist-info")
        assert isinstance(facts.metadata, CoreMetadata)
        assert facts.metadata.name == "demo"

    def test_only_version_files_at_the_top_are_read(self) -> None:
        wheel = WheelBuilder().add("demo/version.py", "a = 1\n").add("demo/sub/version.py", "b = 2\n")

        assert [file.member for file in facts_of(wheel).version_files] == ["demo/version.py"]

    def test_a_version_file_that_is_no_python_tells_nothing(self) -> None:
        facts = facts_of(WheelBuilder().add("demo/version.py", "cuda = = '13.0'\n"))

        assert facts.version_files == ()
        assert isinstance(facts.accelerator, AcceleratorFacts)
        assert facts.accelerator.label == "no accelerator"


class TestLies:
    @pytest.mark.parametrize("offset", [5, 500, 10**6, 2**32 - 2])
    def test_an_offset_at_which_no_member_begins(self, offset: int) -> None:
        wheel = WheelBuilder().add("demo/version.py", "cuda = '13.0'\n", directory={"header_offset": offset})

        facts = facts_of(wheel)

        told = [result.message for result in findings("WHL006", facts)]
        assert any(
            message.startswith("'demo/version.py': the central directory refers to a local header") for message in told
        )
        assert facts.version_files == ()

    def test_a_compressed_size_that_reaches_into_the_next_member(self) -> None:
        wheel = WheelBuilder().add("demo/version.py", "cuda = '13.0'\n", directory={"compressed_size": 10**9})

        facts = facts_of(wheel)

        assert findings("WHL003", facts)[0].message == "demo/version.py overlaps the central directory"
        assert findings("WHL006", facts)[0].message == (
            "'demo/version.py' claims 1,000,000,000 bytes; at most 32,768 are read"
        )

    def test_a_member_that_inflates_to_more_than_it_claims(self) -> None:
        wheel = WheelBuilder().add("demo/version.py", b"#" * 10**6, local={"size": 10}, directory={"size": 10})

        (finding,) = findings("WHL006", facts_of(wheel))

        assert finding.message == "'demo/version.py' is larger than it claims; expected 10 bytes"


class TestSidecar:
    def test_equal(self) -> None:
        text = b"Metadata-Version: 2.4\nName: demo\nVersion: 1.0\n"

        facts = facts_of(WheelBuilder(), read_sidecar=lambda: text)

        assert facts.sidecar == facts.metadata

    def test_different(self) -> None:
        facts = facts_of(WheelBuilder(), read_sidecar=lambda: b"Metadata-Version: 2.4\nName: demo\nVersion: 1.1\n")

        assert [result.message for result in findings("WHL109", facts)] == [
            "version differs between the index's METADATA and the wheel's"
        ]

    def test_not_offered(self) -> None:
        (result,) = judged("WHL109", facts_of(WheelBuilder()))

        assert result.message == "the index offers no METADATA separate from the wheel (PEP 658)"

    def test_another_hash_than_stated_is_not_used(self) -> None:
        wrong = listed(core_metadata={"sha256": "0" * 64})
        facts = facts_of(WheelBuilder(), listing=wrong, read_sidecar=lambda: b"Name: evil\n")

        assert isinstance(facts.sidecar, Unavailable)
        assert [result.outcome for rule in ("WHL109", "WHL112") for result in judged(rule, facts)] == ["skip", "skip"]
        assert [result.outcome for result in judged("WHL111", facts)] == ["fail"]

    @pytest.mark.parametrize(
        ("hashes", "says"),
        [
            ({}, "the index states no hash of the METADATA"),
            ({"x9": "0" * 32}, f"the index states x9={'0' * 32}, a hash algorithm that is not supported"),
        ],
    )
    def test_a_hash_that_cannot_be_compared(self, hashes: dict[str, str], says: str) -> None:
        (result,) = judged("WHL111", facts_of(WheelBuilder(), listing=listed(core_metadata=hashes), read_sidecar=bytes))

        assert (result.outcome, result.message) == ("skip", says)

    def test_promised_but_not_there(self) -> None:
        def missing() -> bytes:
            raise NotFoundError("there is no demo.whl.metadata")

        (result,) = judged("WHL109", facts_of(WheelBuilder(), read_sidecar=missing))

        assert (result.outcome, result.message) == (
            "skip",
            "the METADATA that the index offers for the wheel cannot be fetched: there is no demo.whl.metadata",
        )


def test_the_facts_of_the_report() -> None:
    wheel = torch_like("cuda", "2.10.0", "x86_64", build="3")
    on_index = listed(wheel.file_name, hashes={"sha256": "00ff"}, yanked="", upload_time="2026-01-01T00:00:00Z")

    facts = summarize(facts_of(wheel, listing=on_index))

    expected = {
        "name": "torch",
        "version": "2.10.0",
        "build": "3",
        "tags": ["cp312-cp312-manylinux_2_28_x86_64"],
        "machine": "x86_64",
        "sha256": "00ff",
        "accelerator": "cuda",
        "cuda": "12.8",
        "local_version": "2.10.0+cu128",
        "yanked": True,
    }
    assert expected.items() <= facts.items()
    assert "nvidia-cublas-cu12==12.8.4.1" in " ".join(facts["requirements"])


def test_markers_are_those_of_the_target_that_was_asked_for() -> None:
    wheel = WheelBuilder().metadata(requires=['nvidia-nccl-cu13; platform_machine == "aarch64"'])

    assert headline(facts_of(wheel, target=AARCH64)) == "CUDA 13 (declared: requirements)"
