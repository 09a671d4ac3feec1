"""Limits of this process and this host that make CUDA and NCCL fail far from their cause."""

import os
import resource
from pathlib import Path

from wheel_checks.facts.host.machine import Limits
from wheel_checks.model import Unavailable


def read_limits(root: str = "/") -> Limits | Unavailable:
    """The size of /dev/shm below ``root``, and how much memory this process may lock and map (RLIMIT_MEMLOCK, _AS)."""
    shared = Path(root, "dev/shm")
    try:
        sizes = os.statvfs(shared)
    except FileNotFoundError:
        size = 0
    except OSError as error:
        return Unavailable(f"the shared memory folder cannot be inspected: {error.strerror}")
    else:
        # A folder of a larger file system has no size: only a mount is what `--shm-size` sets.
        size = sizes.f_frsize * sizes.f_blocks if os.path.ismount(shared) or root != "/" else 0
    (locked, _), mapped = resource.getrlimit(resource.RLIMIT_MEMLOCK), resource.getrlimit(resource.RLIMIT_AS)
    return Limits(size, *(None if limit == resource.RLIM_INFINITY else limit for limit in (locked, *mapped)))
