"""DOC002: is there a torch at all?"""

from __future__ import annotations

from tests.rules.case import NOTE, Case
from tests.support.hosts import healthy, replaced, without_gpu

SAYS = ("torch is not installed for /opt/env/bin/python",)

CASES = [
    Case(
        "DOC002",
        "an environment without torch, on a machine with a GPU",
        lambda: replaced(healthy(), "installed", torch=None),
        SAYS,
        evidence=("/opt/env/bin/python",),
    ),
    Case(
        "DOC002",
        "an environment without torch, on a machine without a GPU",
        lambda: without_gpu(replaced(healthy(), "installed", torch=None)),
        SAYS,
        severity=NOTE,
    ),
    Case("DOC002", "an environment with torch", healthy),
]
