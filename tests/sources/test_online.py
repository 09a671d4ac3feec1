"""The real index: the design's promises about bytes and requests."""

from __future__ import annotations

import re
import struct
from urllib.parse import urljoin

import pytest

from tests.support.online import configured_index
from wheel_checks.sources.client import HttpClient

WHEEL = "torch-2.11.0-cp312-cp312-manylinux_2_28_aarch64.whl"


@pytest.mark.online
def test_the_central_directory_of_a_torch_wheel_takes_two_requests() -> None:
    index = configured_index()
    with HttpClient() as client:
        page = client.get_page(f"{index}/torch/", {"Accept": "text/html"})
        link = re.search(rf'href="([^"]*/{re.escape(WHEEL)}[^"]*)"', page.body.decode())
        assert link is not None
        wheel = client.open(urljoin(page.final_url, link[1]))
        size, tail = wheel.read_tail(65536)
        entries, length, offset = struct.unpack("<HII", tail[-22 + 10 : -2])
        directory = wheel.read(offset, size - 65536 - offset) + tail[: offset + length - size]

    assert size == 419_731_115
    assert len(directory) == length
    assert directory.count(b"PK\x01\x02") == entries
    assert wheel.cost.requests <= 2
    assert wheel.cost.bytes_read < 1_400_000
