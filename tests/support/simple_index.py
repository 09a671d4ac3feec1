"""A simple index (PEP 503) of wheels and source archives, for :class:`tests.support.range_server.RangeServer`."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from tests.support.range_server import Resource
from tests.support.sdists import SourceBuilder
from tests.support.wheels import WheelBuilder


def simple_index(
    *wheels: WheelBuilder | SourceBuilder, attributes: Mapping[str, str] | None = None
) -> dict[str, bytes | Resource]:
    """Paths to bodies: ``/simple/NAME/`` lists the wheels by relative links with hashes, ``/files/`` has them.

    ``attributes`` maps a file name to more attributes of its link (``data-yanked="reason"``).
    """
    links: dict[str, list[str]] = {}
    files: dict[str, bytes | Resource] = {}
    for wheel in wheels:
        data = wheel.build()
        digest = hashlib.sha256(data).hexdigest()
        more = (attributes or {}).get(wheel.file_name, "")
        files[f"/files/{wheel.file_name}"] = data
        links.setdefault(wheel.name, []).append(
            f'<a href="../../files/{wheel.file_name}#sha256={digest}" {more}>{wheel.file_name}</a>'
        )
    pages = {
        f"/simple/{name}/": Resource("<br/>\n".join(rows).encode(), content_type="text/html")
        for name, rows in links.items()
    }
    return {**files, **pages}
