"""Scripts run in the Python that has torch, each in a fork of one process: torch is imported once, not for every test.

assert found("import torch; answer(torch.ones(3).tolist())") == [1.0, 1.0, 1.0]
"""

from __future__ import annotations

import atexit
import functools
import json
import os
from pathlib import Path
from subprocess import PIPE, Popen  # the real one: this process outlives the test that starts it
from typing import Any

PYTHON = os.environ.get("WHEELPROOF_KERNELS_PYTHON", "")  # read now: tests run without it in their environment
ROOT = Path(__file__).resolve().parents[2]

WORKER = """
import json, os, sys, traceback
import kernels_smoke.suite.speed.speeds  # and with it torch and triton

replies = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)

def answer(value):
    replies.write(json.dumps({"answer": value}) + "\\n")
    replies.flush()

for line in sys.stdin:
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        replies.write(json.dumps({"end": True}) + "\\n")
        replies.flush()
        continue
    try:
        exec(json.loads(line), {"answer": answer, "__name__": "script"})
    except BaseException:
        replies.write(json.dumps({"error": traceback.format_exc()}) + "\\n")
        replies.flush()
    os._exit(0)
"""


@functools.cache
def _worker() -> Popen[str]:
    process = Popen(
        [PYTHON, "-c", WORKER],
        env=os.environ | {"PYTHONPATH": str(ROOT), "TRITON_INTERPRET": "1"},
        stdin=PIPE,
        stdout=PIPE,
        text=True,
    )
    atexit.register(process.kill)
    return process


def found(script: str) -> Any:
    """What ``script`` passes to ``answer``. Fails with the traceback of what it raises."""
    process = _worker()
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps(script) + "\n")
    process.stdin.flush()
    replies: dict[str, Any] = {}
    while "end" not in replies:
        line = process.stdout.readline()
        assert line, f"the process with torch exited with code {process.wait()}"
        replies.update(json.loads(line))
    assert "error" not in replies, replies["error"]
    return replies["answer"]
