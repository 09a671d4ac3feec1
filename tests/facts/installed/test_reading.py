"""Reading an installed environment: distributions, closure on disk, and that hostile files do no harm."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.rules.installed.installed_cases import nccl, user, wheel
from tests.support.environments import MODULE, Installed, ld_cache, library
from wheel_checks.facts.installed.facts import InstalledEnvironment, RecordedFiles
from wheel_checks.facts.installed.reading import Reading, read_installed
from wheel_checks.facts.links.closure import Closure, Need, Status
from wheel_checks.model import Unavailable
from wheel_checks.sources.environment import find_environment

HERE = "x86_64"


def needs(inside: InstalledEnvironment) -> dict[str, Need]:
    assert isinstance(inside.closure, Closure)
    return {need.soname: need for need in inside.closure.needs}


def test_torch_comes_first_then_what_it_requires_then_the_others(tmp_path: Path) -> None:
    env = Installed(tmp_path).install(wheel("aaa")).install(wheel("b", "1.0", "c")).install(wheel("c"))
    env.install(wheel("torch", "2.11.0", "b").add(MODULE, library()))

    assert [d.name for d in env.facts().distributions] == ["torch", "b", "c", "aaa"]


def test_where_a_distribution_came_from(tmp_path: Path) -> None:
    url = '{"url": "file:///src/demo", "dir_info": {"editable": true}}'
    (found,) = Installed(tmp_path).install(wheel(), **{"direct_url.json": url}).facts().distributions

    assert (found.installer, found.requested, found.url, found.editable) == ("uv", True, "file:///src/demo", True)


@pytest.mark.parametrize("content", ["", "[]", "{", '{"dir_info": 1}', "[" * 10_000])
def test_a_malformed_direct_url_tells_nothing(tmp_path: Path, content: str) -> None:
    (found,) = Installed(tmp_path).install(wheel(), **{"direct_url.json": content}).facts().distributions

    assert (found.url, found.editable) == ("", False)


def test_thousands_of_rows_of_byte_code_as_pip_writes_them_are_no_faults(tmp_path: Path) -> None:
    built = wheel(demo__a=b"1")
    for number in range(1_500):
        built.record_extra(f"demo/__pycache__/m{number}.cpython-312.pyc,,")
    (found,) = Installed(tmp_path, installer="pip").install(built).facts().distributions

    assert isinstance(found.files, RecordedFiles)
    assert found.files.missing == ()


def test_a_record_that_names_devices_and_impossible_paths_only_lists_missing_files(tmp_path: Path) -> None:
    digest = "sha256=" + "A" * 43
    os.mkfifo(tmp_path / "pipe")
    built = wheel()
    for path in ("/dev/zero", "../../../../../../dev/zero", "pipe", "a\0b", "x" * 5000, "../" * 3000 + "y"):
        built.record_extra(f'"{path}",{digest},')
    (found,) = Installed(tmp_path).install(built).facts(full=True).distributions

    assert isinstance(found.files, RecordedFiles)
    assert len(found.files.missing) == 6
    assert found.files.digests == ()


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.sampled_from(["METADATA", "RECORD", "INSTALLER", "direct_url.json"]),
    st.binary(max_size=200),
    st.binary(max_size=200),
)
def test_no_content_whatever_crashes_the_reader(tmp_path: Path, name: str, metadata: bytes, elf: bytes) -> None:
    env = Installed(tmp_path).install(user())
    env.write(f"demo-1.0.dist-info/{name}", metadata).write(MODULE, b"\x7fELF" + elf).write("a.pth", metadata)

    assert len(env.facts(full=True).distributions) == 1


def test_a_needed_library_from_ld_library_path_before_the_wheels_own(tmp_path: Path) -> None:
    """RUNPATH loses to LD_LIBRARY_PATH, so torch's NCCL would be another than the one it pins."""
    module = library("", ["libnccl.so.2"], HERE, runpath="$ORIGIN/../nvidia/nccl/lib")
    env = Installed(tmp_path / "env").install(wheel("demo", "1.0", "nccl").add("demo/_C.abi3.so", module))
    own = library("libnccl.so.2", machine=HERE)
    env.install(wheel("nccl").add("nvidia/nccl/lib/libnccl.so.2", own))
    env.install(wheel("other").add("other/m.cpython-312-x86_64-linux-gnu.so", library(machine=HERE)))
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign" / "libnccl.so.2").write_bytes(own)

    reading: dict[str, Any] = {"host_machine": HERE}
    assert needs(env.facts(**reading))["libnccl.so.2"].status is Status.RESOLVED
    found = needs(env.facts(**reading, library_path=(str(tmp_path / "foreign"),)))["libnccl.so.2"]
    assert (found.status, found.by) == (Status.WRONG_VERSION, f"{tmp_path}/foreign/libnccl.so.2")
    assert found.how.endswith("outside the environment, before that of nccl")


def test_torch_opens_the_libraries_of_nvidia_itself_when_its_rpath_does_not_reach_them(tmp_path: Path) -> None:
    env = Installed(tmp_path).install(nccl())
    without = wheel("demo").add(MODULE, library("", ["libnccl.so.2"]))
    assert needs(env.install(without).facts())["libnccl.so.2"].status is Status.MISSING

    env.install(wheel("torch").add("torch/__init__.py", b""))
    assert needs(env.facts())["libnccl.so.2"].status is Status.PRELOAD


def test_a_container_is_searched_with_its_own_ld_so_cache(tmp_path: Path) -> None:
    env = Installed(tmp_path, "opt/conda/lib/python3.12/site-packages")
    env.install(wheel().add(MODULE, library("", ["libz.so.1", "libGL.so.1", "libfar.so"])))
    for folder in ("etc", "usr/lib/aarch64-linux-gnu", "opt/far"):
        (tmp_path / folder).mkdir(parents=True)
    cache = ld_cache(("libfar.so", "/opt/far/libfar.so", 0x0A03), ("libGL.so.1", "/opt/far/libGL.so.1", 0x0303))
    (tmp_path / "etc/ld.so.cache").write_bytes(cache)
    (tmp_path / "usr/lib/aarch64-linux-gnu/libz.so.1.3").write_bytes(library("libz.so.1"))
    (tmp_path / "usr/lib/aarch64-linux-gnu/libz.so.1").symlink_to("/usr/lib/aarch64-linux-gnu/libz.so.1.3")
    (tmp_path / "opt/far/libfar.so").write_bytes(library("libfar.so"))

    found = needs(read_installed(find_environment(str(tmp_path), variables={}), Reading(host_machine=HERE)))
    assert {(n.soname, n.status, n.by) for n in found.values()} == {
        ("libz.so.1", Status.SYSTEM, "/usr/lib/aarch64-linux-gnu/libz.so.1"),
        ("libfar.so", Status.SYSTEM, "/opt/far/libfar.so"),
        ("libGL.so.1", Status.MISSING, ""),
    }


def test_a_pure_environment_has_no_machine_and_so_no_closure(tmp_path: Path) -> None:
    inside = Installed(tmp_path).install(wheel("demo", "1.0", "missing")).facts()

    assert isinstance(inside.closure, Unavailable)
    assert isinstance(inside.unmet, Unavailable)
