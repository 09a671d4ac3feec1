"""What a file that is not a zip archive looks like, for messages: people rename and misdownload files."""

_SIGNATURES = (
    (b"PK\3\4", "the beginning of a zip archive"),
    (b"PK\5\6", "an empty zip archive"),
    (b"\x7fELF", "an ELF binary"),
    (b"\x1f\x8b", "a gzip file (an sdist, or a compressed transfer that was not unpacked)"),
    (b"BZh", "a bzip2 file"),
    (b"\xfd7zXZ\0", "an xz file"),
    (b"\x28\xb5\x2f\xfd", "a zstd file"),
    (b"7z\xbc\xaf\x27\x1c", "a 7-Zip archive"),
    (b"version https://git-lfs.", "a Git LFS pointer (the file itself was not downloaded)"),
    (b"%PDF-", "a PDF file"),
    (b"MZ", "a Windows executable"),
)
_MARKUP = (
    ((b"<!doctype html", b"<html", b"<head", b"<body"), "an HTML page (an error or sign-in page?)"),
    ((b"<?xml", b"<error"), "an XML document (a storage service's error message?)"),
)


def describe_head(head: bytes) -> str:
    """What a file is that starts with ``head`` (512 bytes are plenty): "empty", "an HTML page ...", "text"."""
    if not head:
        return "empty"
    for signature, description in _SIGNATURES:
        if head.startswith(signature):
            return description
    markup = head.lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    for beginnings, description in _MARKUP:
        if markup.startswith(beginnings):
            return description
    if not head.strip(b"\0"):
        return "only zero bytes"
    return "text" if _is_text(head) else "binary data"


def _is_text(head: bytes) -> bool:
    """True for UTF-8 without control characters; the last character may be cut in two."""
    return (
        not any(byte < 32 and byte not in b"\t\n\r\f\x1b" for byte in head)
        and "\ufffd" not in (head.decode("utf-8", "replace")[:-1])
    )
