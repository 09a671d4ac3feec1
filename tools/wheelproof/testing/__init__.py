"""Builders of what rules judge: wheels, ELF files, fat binaries, drivers, servers: whole, or with one thing broken.

    from wheelproof.testing import WheelBuilder, findings

    def test_another_prefix() -> None:
        assert findings("ACME001", WheelBuilder("demo"))[0].message == "demo does not start with acme"

The names in ``__all__`` are public, and follow the versions of wheelproof (``docs/testing.md``). Needs the extra
``testing`` only to be run by pytest.
"""

from wheelproof.testing.elf import Elf, Symbol
from wheelproof.testing.facts import facts_of, findings, judged
from wheelproof.testing.fatbin import Image, fat_binary, section
from wheelproof.testing.index import simple_index
from wheelproof.testing.range_server import (
    RangeServer,
    Resource,
    basic_auth,
    change_to,
    content_range,
    drip,
    drop_after,
    endless,
    fail,
    garbage,
    no_ranges,
    no_suffix_ranges,
    redirect,
    truncate,
)
from wheelproof.testing.sdists import SourceBuilder
from wheelproof.testing.stub_driver import build as build_driver
from wheelproof.testing.stub_driver import variables as driver_variables
from wheelproof.testing.wheels import WheelBuilder, gpu_library, torch_like
from wheelproof.testing.zips import ZipEntry, write_zip

__all__ = [
    "Elf",
    "Image",
    "RangeServer",
    "Resource",
    "SourceBuilder",
    "Symbol",
    "WheelBuilder",
    "ZipEntry",
    "basic_auth",
    "build_driver",
    "change_to",
    "content_range",
    "drip",
    "driver_variables",
    "drop_after",
    "endless",
    "facts_of",
    "fail",
    "fat_binary",
    "findings",
    "garbage",
    "gpu_library",
    "judged",
    "no_ranges",
    "no_suffix_ranges",
    "redirect",
    "section",
    "simple_index",
    "torch_like",
    "truncate",
    "write_zip",
]
