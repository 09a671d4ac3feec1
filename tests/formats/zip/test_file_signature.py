"""The apparent kind of a file that is not an archive."""

from __future__ import annotations

import gzip

import pytest

from tests.support.wheels import WheelBuilder, elf_stub
from wheel_checks.formats.zip.file_signature import describe_head


@pytest.mark.parametrize(
    ("head", "description"),
    [
        (b"", "empty"),
        (b"\r\n <!DOCTYPE html><html>", "an HTML page (an error or sign-in page?)"),
        (b"<?xml version='1.0'?><Error>", "an XML document (a storage service's error message?)"),
        (b"version https://git-lfs.example.org/spec/v1\n", "a Git LFS pointer (the file itself was not downloaded)"),
        (elf_stub("aarch64"), "an ELF binary"),
        (WheelBuilder().build()[:100], "the beginning of a zip archive"),
        (bytes(512), "only zero bytes"),
        ("text, cut within a character: ü".encode()[:-1], "text"),
        (b"\x80\x81\x82\x83", "binary data"),
        (b"text\0and more", "binary data"),
    ],
)
def test_descriptions(head: bytes, description: str) -> None:
    assert describe_head(head) == description


def test_a_gzip_file() -> None:
    assert describe_head(gzip.compress(b"x")).startswith("a gzip file")
