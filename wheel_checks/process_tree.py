"""The processes below a process, as Linux lists them, and when each was started: a number alone may be given again."""

import contextlib
from pathlib import Path

_LARGEST_FAMILY = 1024  # processes


def family(pid: int) -> dict[int, str]:
    """``pid`` and the processes below it, with the time at which each was started.

    Those that lead their own sessions are among them; those whose parent has ended are not.
    """
    found: dict[int, str] = {}
    waiting = [pid]
    while waiting and len(found) < _LARGEST_FAMILY:
        process = waiting.pop(0)
        with contextlib.suppress(OSError):  # it has ended meanwhile
            found[process] = start_time(process)
            for task in Path(f"/proc/{process}/task").iterdir():
                waiting += map(int, (task / "children").read_text(encoding="ascii").split())
    return found


def start_time(pid: int | str) -> str:
    """When a process was started, in clock ticks since the boot; "" for one that has ended.

    It is field 22 of /proc/PID/stat (proc(5)); the name in field 2 may hold anything.
    """
    try:
        status = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    fields = status.rpartition(")")[2].split()
    return "" if fields[0] in {"Z", "X"} else fields[19]
