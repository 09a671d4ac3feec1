"""What ``$ORIGIN`` and its like in DT_RPATH, DT_RUNPATH and DT_NEEDED mean in a given folder (ld.so(8))."""

import posixpath
import re
from collections.abc import Mapping

# As glibc's is_dst: in braces, or not followed by a character of an identifier.
_TOKEN = re.compile(r"\$(?:\{(ORIGIN|LIB|PLATFORM)\}|(ORIGIN|LIB|PLATFORM)(?![A-Za-z0-9_]))")


def expand_path(path: str, origin: str, *, lib: str = "lib64", platform: str = "") -> str:
    """``path`` with the loader's tokens replaced and ``.``, ``..`` and doubled slashes resolved as text.

    ``origin`` is the folder of the file that holds the path, such as ``torch/lib`` within site-packages; one of ``..``
    too many stays in front. ``lib`` is what the distribution calls its library folder, ``platform`` the kernel's
    AT_PLATFORM ("x86_64", "aarch64"); without it, ``$PLATFORM`` stays. An empty path is the working directory, ".".
    """
    values: Mapping[str, str] = {"ORIGIN": origin, "LIB": lib, "PLATFORM": platform or "$PLATFORM"}
    return posixpath.normpath(_TOKEN.sub(lambda token: values[token[1] or token[2]], path))
