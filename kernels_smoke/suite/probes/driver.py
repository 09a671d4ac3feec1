"""Runs ``driver_program.py`` in its own process, and answers even when the driver hangs or crashes that process."""

import contextlib
import json
import signal
import subprocess
import tempfile
import time
from typing import IO, Any

from kernels_smoke.suite import start
from kernels_smoke.suite.advice import command
from kernels_smoke.suite.probes.answer import Answer, record
from kernels_smoke.suite.probes.driver_faults import HANG
from kernels_smoke.suite.silence import TICK, Silence

PATIENCE = 20.0  # seconds: cuInit takes a second or two on a server with eight GPUs


def ask(patience: float = PATIENCE, environment: dict[str, str] | None = None) -> dict[str, Any]:
    """What ``driver_program.answers()`` says last, also when the driver hangs, or crashes the process that asks."""
    begun = time.monotonic()
    program = start.command("suite.probes.driver_program")
    with tempfile.TemporaryFile() as said, tempfile.TemporaryFile() as complaints:
        process = subprocess.Popen(
            program, stdin=subprocess.DEVNULL, stdout=said, stderr=complaints, env=environment, start_new_session=True
        )
        hang = _hangs(process, patience)
        printed, words = _all_of(said), _all_of(complaints)[-2000:]
    evidence = {"last words": words.strip()} if words.strip() else {}
    found = _last_answer(printed)
    if found is not None:  # also where NVML, which is asked last, hangs or breaks
        return found
    if hang:
        message = f"the NVIDIA driver does not answer: it was asked for its GPUs, and was silent for {patience:g} s"
        return _lost(Answer("fail", message, evidence, HANG), begun)
    message = f"the process that asked the NVIDIA driver {_end(process.returncode)}"
    return _lost(Answer("fail", message, evidence, (command("nvidia-smi"), *HANG[:1])), begun)


def _last_answer(printed: str) -> dict[str, Any] | None:
    """The last line that is an answer: a library may print something before, and behind."""
    for line in reversed(printed.splitlines()):
        with contextlib.suppress(ValueError):
            found = json.loads(line)
            if isinstance(found, dict) and "probe" in found:
                return found
    return None


def _lost(found: Answer, begun: float) -> dict[str, Any]:
    return {"driver": None, "gpus": [], "listed": [], "probe": record("driver", found, time.monotonic() - begun)}


def _hangs(process: subprocess.Popen[bytes], patience: float) -> bool:
    silence = Silence(process.pid)
    try:
        while not silence.exceeds(patience):
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(TICK)
                return False
            silence.look()
    except BaseException:  # an interrupted run leaves no process behind, either
        process.kill()
        raise
    process.kill()
    with contextlib.suppress(subprocess.TimeoutExpired):  # inside the kernel even SIGKILL waits for the driver
        process.wait(1.0)
    return True


def _all_of(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode(errors="replace")


def _end(status: int) -> str:
    if status < 0:
        with contextlib.suppress(ValueError):
            return f"was killed by {signal.Signals(-status).name}"
    return f"ended with exit code {status} and no answer"
