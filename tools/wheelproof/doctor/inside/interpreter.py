"""Describes the Python that runs it: its version, its folders, and where it searches for modules.

It is started by its path, with the variables of the user, so that the search path is the user's own: .pth files,
sitecustomize and PYTHONPATH take part. The first entry, this folder, is in place of the working directory, which is
first for a user's ``python -c`` or ``python -m``, without PYTHONSAFEPATH. It is not started in that directory.
"""

from __future__ import annotations

import os
import sys

# Before anything else is imported: nothing that is next to this file is meant.
_HERE = os.path.dirname(os.path.realpath(__file__))  # strings are wanted here and below
STARTED_FROM = sys.path.pop(0) if sys.path and os.path.realpath(sys.path[0]) == _HERE else None

import importlib.util  # noqa: E402
import json  # noqa: E402
import site  # noqa: E402
import sysconfig  # noqa: E402


def search_path() -> list[str]:
    """The search path of a user's ``python -c``: "" is the working directory."""
    return sys.path if STARTED_FROM is None else ["", *sys.path]


def scheme() -> str:
    """The installation scheme whose folder of headers Triton's build uses: not Debian's for local packages."""
    default = getattr(sysconfig, "get_default_scheme", None) or getattr(sysconfig, "_get_default_scheme", None)
    name = str(default()) if default else "posix_prefix"
    return "posix_prefix" if name == "posix_local" else name


def libc() -> str:
    """The C library as it names itself, "glibc 2.39"; "" if it does not, as musl."""
    try:
        return os.confstr("CS_GNU_LIBC_VERSION") or ""
    except (OSError, ValueError):
        return ""


def has_pip() -> bool:
    """Whether this Python would find pip; it is not imported."""
    try:
        return importlib.util.find_spec("pip") is not None
    except (ImportError, ValueError):
        return False


def user_site() -> str:
    """The user's site-packages when they are searched, else ""."""
    folder = site.getusersitepackages() if site.ENABLE_USER_SITE else ""
    return folder if folder in sys.path else ""


def readable(value: object) -> object:
    """The value with texts that are valid Unicode: bytes of a path that are not are escaped."""
    if isinstance(value, str):
        return os.fsencode(value).decode("utf-8", "backslashreplace")
    if isinstance(value, (list, tuple)):
        return [readable(item) for item in value]
    return value


def describe() -> dict[str, object]:
    """Everything."""
    include = sysconfig.get_paths(scheme())["include"]
    marker = os.path.join(sysconfig.get_path("stdlib"), "EXTERNALLY-MANAGED")
    return {
        "executable": sys.executable,
        "version": sys.version.split()[0],
        "implementation": sys.implementation.name,
        "prefix": sys.prefix,
        "base_prefix": sys.base_prefix,
        "purelib": sysconfig.get_path("purelib"),
        "platlib": sysconfig.get_path("platlib"),
        "search_path": search_path(),
        "include": include,
        "python_h": os.path.isfile(os.path.join(include, "Python.h")),
        "libc": libc(),
        "free_threaded": bool(sysconfig.get_config_var("Py_GIL_DISABLED")),
        "user_site": user_site(),
        "externally_managed": os.path.exists(marker),
        "has_pip": has_pip(),
    }


print("\nwheelproof: " + json.dumps({name: readable(value) for name, value in describe().items()}))  # noqa: T201
