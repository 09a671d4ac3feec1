"""Write wheel_checks/data/glibc_symbols.txt: the symbols of this host's C library and libstdc++, except C++ ones.

    python ci/update_glibc_symbols.py "Debian 12, libc6 2.36-9" /lib/x86_64-linux-gnu

Libraries need most of these with a version, which rules compare with the platform tag. Some linkers leave the version
out; then the name alone says that it comes from the C library. A newer glibc only adds names.
"""

from __future__ import annotations

import datetime as dt
import sys
from pathlib import Path

from wheel_checks.formats.elf.bytes import WholeFile
from wheel_checks.formats.elf.file import Part, read_elf
from wheel_checks.formats.elf.symbols import DynamicSymbols

_LIBRARIES = (
    "ld-linux-x86-64.so.2", "libc.so.6", "libm.so.6", "libdl.so.2", "librt.so.1", "libpthread.so.0", "libutil.so.1",
    "libgcc_s.so.1", "libmvec.so.1", "libresolv.so.2", "libanl.so.1", "libstdc++.so.6",
)  # fmt: skip
_TABLE = Path(__file__).parents[1] / "wheel_checks/data/glibc_symbols.txt"


def main(source: str, folder: str) -> None:
    """Write the table from the libraries in ``folder``, which are of ``source``."""
    names: set[str] = set()
    for library in _LIBRARIES:
        symbols = read_elf(WholeFile((Path(folder) / library).read_bytes()), {Part.SYMBOLS}).symbols
        if not isinstance(symbols, DynamicSymbols):
            sys.exit(f"{library} has no dynamic symbols")
        names |= {s.name for s in symbols.defined if s.version and s.version != "GLIBC_PRIVATE" and s.name[0].islower()}
        kept = (s.name for s in symbols.defined if s.version != "GLIBC_PRIVATE" and s.name.startswith("_"))
        names |= {name for name in kept if not name.startswith("_Z")}
    head = [
        "# What the C library and libstdc++ define, but for names of C++ and GLIBC_PRIVATE: some linkers leave the",
        "# versions of these names out.",
        f"# From {source}, {dt.datetime.now(tz=dt.UTC):%Y-%m}, by ci/update_glibc_symbols.py.",
    ]
    _TABLE.write_text("\n".join([*head, *sorted(names)]) + "\n", encoding="ascii")


if __name__ == "__main__":
    main(*sys.argv[1:])
