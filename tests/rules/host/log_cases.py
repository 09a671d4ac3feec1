"""DOC901: logs that show a known cause, and others."""

from __future__ import annotations

from tests.rules.case import NOTE, Case
from wheel_checks.facts.host.log.facts import parse_log

STUB = "the loader takes the toolkit's stub of libcuda (34)"

CASES = [
    Case(
        "DOC901",
        "a text of one cause",
        lambda: parse_log(b"start\n[rank0]: RuntimeError: CUDA error: CUDA driver is a stub library\n"),
        (STUB,),
        evidence=("RuntimeError: CUDA error: CUDA driver is a stub library",),
    ),
    Case(
        "DOC901",
        "a warning that means nothing",
        lambda: parse_log(b"Found GPU0 NVIDIA GB10 which is of cuda capability 12.1.\n"),
        ("harmless: this warning about GB10 is false, code for sm_120 runs on 12.1",),
        NOTE,
    ),
    Case("DOC901", "a failure of something else", lambda: parse_log(b"npm ERR! code ERESOLVE\n")),
    Case("DOC901", "nothing at all", lambda: parse_log(b"")),
]
