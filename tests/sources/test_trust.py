"""Which addresses of a tree the values of ``--trust-index`` allow."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wheel_checks.errors import UsageError
from wheel_checks.sources.trust import REPOSITORY, Address, Trust, UntrustedAddressError

TRUST = Trust.parse(
    [
        "good.example",
        "Port.Example:8443",
        "*.sub.example",
        "https://path.example/a/b/",
        "http://127.0.0.1:8000",
        "xn--bcher-kva.example",
        "[::1]:8080",
    ]
)


@pytest.mark.parametrize(
    ("url", "contacted"),
    [
        ("https://good.example/x", "https://good.example/x"),
        ("HTTPS://GOOD.example.:443/x?y=1#z", "https://good.example/x?y=1#z"),
        ("https://user:password@good.example/x", "https://good.example/x"),
        ("https://port.example:8443/", "https://port.example:8443/"),
        ("http://port.example:8443/", "http://port.example:8443/"),
        ("https://a.sub.example/", "https://a.sub.example/"),
        ("https://a.b.sub.example/", "https://a.b.sub.example/"),
        ("https://path.example/a/b", "https://path.example/a/b"),
        ("https://path.example/a/b/c", "https://path.example/a/b/c"),
        ("http://127.0.0.1:8000/simple", "http://127.0.0.1:8000/simple"),
        ("https://bücher.example/", "https://xn--bcher-kva.example/"),
        ("https://\uff47ood.example/", "https://good.example/"),
        ("http://[::1]:8080/x", "http://[::1]:8080/x"),
    ],
)
def test_what_is_trusted_is_contacted_in_one_form(url: str, contacted: str) -> None:
    assert TRUST.allowed(url) == contacted


@pytest.mark.parametrize(
    "url",
    [
        "http://good.example/",  # nothing proves who answers
        "https://good.example:8443/",
        "https://evil-good.example/",
        "https://www.good.example/",
        "https://good.example.evil/",
        "https://good.example@evil/",
        "https://good.example:443@evil/",
        "https://evil\\@good.example/",
        "https://evil/@good.example/",
        "https://evil#@good.example/",
        "https://evil?@good.example/",
        "https:/good.example/",
        "https:good.example/",
        "https:///good.example/",
        "//good.example/",
        " https://good.example/",
        "https://good.exam\tple/",
        "https://good.example\n/",
        "https://go%6fd.example/",
        "https://good.example/${TOKEN}",
        "https://${TOKEN}@good.example/",
        "https://good.example\u2044evil/",
        "https://sub.example/",
        "https://asub.example/",
        "https://path.example/",
        "https://path.example/a",
        "https://path.example/a/bc",
        "https://path.example/a/b/../c",
        "https://path.example/a/b/%2e%2E/c",
        "https://path.example/a/b/..%2fc",
        "https://path.example/a/b/%252e%252e/c",
        "https://path.example/a/b\\..\\c",
        "http://127.0.0.1/",
        "http://127.1:8000/",
        "http://0x7f.0.0.1:8000/",
        "git+https://good.example/x",
        "ftp://good.example/",
        "file:///etc/passwd",
        "good.example",
        "https://good.example:99999/",
        "",
    ],
)
def test_what_only_looks_trusted(url: str) -> None:
    assert TRUST.allowed(url) is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "*",
        "*.org",
        "a b",
        "user@good.example",
        "https://me:hunter2@good.example/",
        "ftp://good.example",
        "a/b",
        "good.example:0",
        "good.example:70000",
        "https://",
        "https://good.example/?x",
        "good..example",
        "%65vil",
    ],
)
def test_values_that_name_no_host(text: str) -> None:
    with pytest.raises(UsageError, match="names no host; expected HOST") as caught:
        Trust.parse([text])
    assert "hunter2" not in str(caught.value)


def test_a_configured_place_is_trusted_with_what_lies_below() -> None:
    trust = Trust().with_places(["https://me:secret@mine.example/team/simple/", "file:///srv", "https://q.example/?a"])
    assert trust.allowed("https://mine.example/team/simple/torch/") == "https://mine.example/team/simple/torch/"
    for url in ("https://mine.example/other/simple/", "https://mine.example/team/simple/../other/", "file:///srv/x"):
        assert trust.allowed(url) is None
    assert trust.allowed("https://q.example/") is None


@given(st.text(alphabet="ab.:/@\\#?%[]- \t\u2024é$*{}", max_size=30))
def test_whatever_is_written_only_the_trusted_host_is_contacted(text: str) -> None:
    trust = Trust.parse(["a.b"])
    for url in (f"https://{text}", f"https://a.b{text}", f"https://{text}a.b/", text):
        allowed = trust.allowed(url)
        assert allowed is None or (urlsplit(allowed).netloc == "a.b" and allowed.startswith("https://a.b"))


@pytest.mark.parametrize(
    ("address", "flag"),
    [
        (Address("https://user:hunter2@torch.example/whl", "r.txt:1"), "--trust-index torch.example "),
        (Address("https://torch.example:8443/whl", "r.txt:1"), "--trust-index torch.example:8443 "),
        (Address("http://torch.example/whl", "r.txt:1"), "--trust-index http://torch.example "),
        (Address("https://torch.example/x", "r.txt:1", REPOSITORY), "it is not contacted"),
        (Address("https://torch.example/${TOKEN}", "r.txt:1"), "it is not contacted"),
        (Address("https://a$(id).example/", "r.txt:1"), "it is not contacted"),
    ],
)
def test_the_message_names_the_flag_that_works(address: Address, flag: str) -> None:
    error = UntrustedAddressError("torch", [address])
    assert flag in f"{error.hint} "
    assert "hunter2" not in str(error)
    assert "(r.txt:1); only the tree names it, so it was not contacted" in error.what
    named = re.findall(r"--trust-index (\S+)", error.hint)
    assert [bool(Trust.parse([value]).allowed(address.url)) for value in named] == [True] * len(named)
