"""Reading the dependencies of wheels from an index on loopback: which wheels, how often, and errors."""

from __future__ import annotations

import contextlib
import random
import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.support.elf import Elf, Symbol
from tests.support.environments import library
from tests.support.patience import PATIENCE
from tests.support.range_server import RangeServer, Resource, change_to, fail, truncate
from tests.support.simple_index import simple_index
from tests.support.wheel_facts import AARCH64, X86_64, facts_of
from tests.support.wheels import WheelBuilder
from wheel_checks.errors import FormatError, NotFoundError, SourceError
from wheel_checks.facts.links.closure import Status
from wheel_checks.facts.links.linking import LinkFacts
from wheel_checks.facts.links.unresolved import SymbolFacts
from wheel_checks.facts.wheel.dependencies import Dependencies, Resolved
from wheel_checks.facts.wheel.depth import Depth
from wheel_checks.facts.wheel.facts import WheelFacts
from wheel_checks.facts.wheel.neighbours import Neighbour
from wheel_checks.formats.index.page import IndexFile
from wheel_checks.model import Unavailable
from wheel_checks.sources.client import HttpClient
from wheel_checks.sources.installers.config import IndexConfig
from wheel_checks.sources.simple_index import SimpleIndex
from wheel_checks.targets.target import Target

LINUX = "py3-none-manylinux_2_28_aarch64"
RPATH = "$ORIGIN/../nvidia/cu13/lib"


def nvidia(
    project: str, *needed: str, version: str = "13.0", requires: Sequence[str] = (), tags: str = LINUX
) -> WheelBuilder:
    """A wheel that brings the library of its name: nvidia_cublas brings libcublas.so.13."""
    soname = f"lib{project.rpartition('_')[2]}.so.13"
    built = WheelBuilder(project, version, tags).metadata(requires=requires, name=project.replace("_", "-"))
    return built.add(f"nvidia/cu13/lib/{soname}", library(soname, needed))


def demo(*needed: str, requires: Sequence[str] = (), name: str = "demo") -> WheelFacts:
    """The facts of a wheel whose one module needs these."""
    built = WheelBuilder(name, "1.0", "cp312-cp312-manylinux_2_28_aarch64").metadata(requires=requires)
    built.add(f"{name}/_C.cpython-312-aarch64-linux-gnu.so", library("", needed, rpath=RPATH))
    return facts_of(built, depth=Depth.LINKS, target=AARCH64)


SERVED = f'data-core-metadata="sha256={"0" * 64}"'


def pages(*wheels: WheelBuilder, attributes: Mapping[str, str] | None = None) -> dict[str, bytes | Resource]:
    """An index of these, whose pages have the normalised names that installers ask for."""
    made = simple_index(*wheels, attributes=attributes)
    return {p.replace("_", "-") if p.startswith("/simple") else p: body for p, body in made.items()}


class Opened:
    """Dependencies on a server, without a cache, and the requirements that the resolver was requested."""

    def __init__(
        self, server: RangeServer, answer: Resolved | None, *, whole: bool = False, beside: Sequence[str] = ()
    ) -> None:
        self.server = server
        self.answer = answer
        self.asked: list[list[str]] = []
        self.client = HttpClient(retries=0)
        self._index = SimpleIndex(self.client, IndexConfig((server.url("/simple"),)))
        also = tuple(map(Requirement, beside))
        self.dependencies = Dependencies(self.client, self._listing, self._resolve, whole=whole, installed_with=also)

    def link(self, wheel: WheelFacts) -> LinkFacts:
        found = self.dependencies.link(wheel)
        assert isinstance(found, LinkFacts)
        return found

    def requests(self) -> Counter[str]:
        """How often each wheel's end, and each page, was requested: once for each reading."""
        reads = (r for r in self.server.requests if r.path.startswith("/simple/") or r.range == "bytes=-65536")
        return Counter(request.path.removeprefix("/files/") for request in reads)

    def _listing(self, project: str) -> Sequence[IndexFile]:
        try:
            return self._index.files(project).files
        except NotFoundError:
            return ()

    def _resolve(self, requirements: Sequence[Requirement], _: Target) -> Resolved:
        self.asked.append([str(requirement) for requirement in requirements])
        assert self.answer is not None, "no resolver was expected"
        return self.answer


@contextlib.contextmanager
def opened(
    files: Mapping[str, bytes | Resource | Path],
    answer: Resolved | None = None,
    *,
    whole: bool = False,
    beside: Sequence[str] = (),
) -> Iterator[Opened]:
    with RangeServer(files) as server:
        one = Opened(server, answer, whole=whole, beside=beside)
        with one.client, one.dependencies:
            yield one


def statuses(facts: LinkFacts) -> dict[str, Status]:
    return {need.soname: need.status for need in facts.closure.needs}


# Which wheels are read.


def test_a_wheel_that_needs_nobody_asks_nobody() -> None:
    with opened({}) as one:
        found = one.link(demo("libc.so.6", "libcuda.so.1", requires=["nvidia-cublas==13.0"]))
        assert one.server.requests == []

    assert statuses(found) == {"libc.so.6": Status.SYSTEM, "libcuda.so.1": Status.DRIVER}
    assert isinstance(found.absent, Unavailable)


def test_exact_pins_need_no_resolver_and_extras_lead_on() -> None:
    toolkit = WheelBuilder("cuda_toolkit", "13.0.2").metadata(
        "Provides-Extra: cublas", requires=['nvidia-cublas==13.1.0.3.*; extra == "cublas"', 'x==1; extra == "nvrtc"'],
        name="cuda-toolkit",
    )  # fmt: skip
    wheels = (nvidia("nvidia_cublas", version="13.1.0.3.1"), nvidia("nvidia_cublas", version="13.1.0.4"), toolkit)
    with opened(pages(*wheels)) as one:
        found = one.link(demo("libcublas.so.13", requires=["cuda-toolkit[cublas]==13.0.2", "sympy>=1"]))

    assert statuses(found)["libcublas.so.13"] is Status.RESOLVED
    assert found.wheels[1:] == ("nvidia_cublas-13.1.0.3.1-py3-none-manylinux_2_28_aarch64.whl",)
    assert found.not_followed == ("sympy>=1 is requested",)
    assert found.bytes_read > 0


def test_a_requirement_of_another_machine_is_none() -> None:
    requires = ['nvidia-cublas==13.0; platform_machine == "x86_64"']
    with opened(pages(nvidia("nvidia_cublas"))) as one:
        found = one.link(demo("libcublas.so.13", requires=requires))
        assert one.server.requests == []

    assert statuses(found)["libcublas.so.13"] is Status.MISSING


def test_the_resolver_is_asked_when_pins_leave_a_library_unfound() -> None:
    answer = Resolved((Requirement("nvidia-cublas==13.0"), Requirement("six==1.0")))
    with opened(pages(nvidia("nvidia_cublas"), WheelBuilder("six")), answer) as one:
        found = one.link(demo("libcublas.so.13", requires=["nvidia-cublas>=13"]))

    assert one.asked == [["nvidia-cublas>=13"]]
    assert (found.how, found.not_followed) == ("uv", ())
    assert statuses(found)["libcublas.so.13"] is Status.RESOLVED
    assert all("six" not in wheel for wheel in found.wheels)  # a wheel for any machine is not even opened


@pytest.mark.parametrize(
    ("listed", "why"),
    [
        ([], "nvidia-cublas has no files"),
        ([nvidia("nvidia_cublas", tags="py3-none-manylinux_2_28_x86_64")],
         "nvidia-cublas 13.0 has no file for cp312 aarch64; its wheels are for manylinux_2_28_x86_64"),
    ],
    ids=["nowhere", "not here"],
)  # fmt: skip
def test_a_pin_without_a_wheel_is_absent_and_its_library_is_missing(listed: list[WheelBuilder], why: str) -> None:
    with opened(pages(*listed)) as one:
        found = one.link(demo("libcublas.so.13", requires=["nvidia-cublas==13.0"]))

    assert statuses(found)["libcublas.so.13"] is Status.MISSING
    assert isinstance(found.absent, tuple)
    assert [(a.name, a.why, a.required_by) for a in found.absent] == [("nvidia-cublas", why, ("",))]


def test_what_the_resolver_left_out_is_absent_even_if_another_version_would_fit() -> None:
    with opened(pages(nvidia("nvidia_cublas")), Resolved((), ("nvidia-cublas", "gone"))) as one:
        found = one.link(demo("libcublas.so.13", requires=["nvidia-cublas>=14", "gone"]))

    assert statuses(found)["libcublas.so.13"] is Status.MISSING
    assert isinstance(found.absent, tuple)
    assert [(a.name, a.why) for a in found.absent] == [
        ("nvidia-cublas", "no version of it satisfies all its requirements"),
        ("gone", "gone has no files"),
    ]


def test_wheels_that_require_one_another_and_the_judged_one() -> None:
    one_of, other = (
        nvidia("nvidia_cublas", "libcufft.so.13", requires=["nvidia-cufft==13.0"]),
        nvidia("nvidia_cufft", "libcublas.so.13", requires=["nvidia-cublas==13.0", "demo==2.0"]),
    )
    mine = nvidia("demo", "libnowhere.so.13", version="2.0")
    with opened(pages(one_of, other, mine)) as one:
        found = one.link(demo("libcublas.so.13", requires=["nvidia-cublas==13.0"]))

    assert set(found.wheels[1:]) == {one_of.file_name, other.file_name}
    assert "libnowhere.so.13" not in statuses(found)


def test_members_of_data_folders_lie_where_they_are_installed() -> None:
    built = WheelBuilder("nvidia_cublas", "13.0", LINUX).metadata(name="nvidia-cublas")
    built.add("nvidia_cublas-13.0.data/platlib/nvidia/cu13/lib/libcublas.so.13", library("libcublas.so.13"))
    with opened(pages(built)) as one:
        found = one.link(demo("libcublas.so.13", requires=["nvidia-cublas==13.0"]))

    assert [need.by for need in found.closure.needs] == ["nvidia/cu13/lib/libcublas.so.13"]


@pytest.mark.parametrize("whole", [False, True])
def test_a_library_too_deep_for_head_and_tail_is_unread_unless_all_is_streamed(whole: bool) -> None:
    code, data = (bytes(random.Random(seed).choices(range(40), k=1_200_000)) for seed in (1, 2))
    deep = library("libcublas.so.13", ("libhidden.so.1",), moved=True, contents={".text": code}) + data
    wheel = WheelBuilder("nvidia_cublas", "13.0", LINUX).metadata(name="nvidia-cublas")
    wheel.add("nvidia/cu13/lib/libcublas.so.13", deep)
    judged = demo("libcublas.so.13", requires=["nvidia-cublas==13.0"])

    with opened(pages(wheel), whole=whole) as one:
        found = one.link(judged)

    assert bool(found.closure.unread) is not whole
    assert ("libhidden.so.1" in statuses(found)) is whole


def test_programs_of_a_dependency_are_not_read() -> None:
    built = nvidia("nvidia_cublas").add("nvidia/bin/tool", library("", ["libQt6Core.so.6"]), mode=0o100755)
    with opened(pages(built)) as one:
        assert "libQt6Core.so.6" not in statuses(one.link(demo("libcublas.so.13", requires=["nvidia-cublas==13.0"])))


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"target": None}, "the wheel is not for a single Linux machine, so linking is not checked"),
        ({"elfs": Unavailable("not read")}, "not read"),
        ({"metadata": Unavailable("the wheel has no METADATA")}, "the wheel has no METADATA"),
    ],
)
def test_without_a_target_elf_files_or_metadata_there_is_no_closure(change: dict[str, object], why: str) -> None:
    facts = replace(demo("libcublas.so.13"), **change)  # type: ignore[arg-type]  # fields of the facts by name
    with opened({}) as one:
        found = one.dependencies.link(facts)

    assert isinstance(found, Unavailable)
    assert found.reason == why


# Each once.


def test_what_several_wheels_require_is_read_once_even_at_the_same_time() -> None:
    files = pages(nvidia("nvidia_cublas", requires=["nvidia-cufft==13.0"]), nvidia("nvidia_cufft"))
    wheels = [
        demo("libcublas.so.13", "libcufft.so.13", requires=["nvidia-cublas==13.0"], name=f"demo{n}") for n in range(8)
    ]
    wheels.append(replace(wheels[0], target=replace(AARCH64, python=(3, 13))))
    with opened(files) as one:
        with ThreadPoolExecutor(len(wheels)) as pool:
            found = list(pool.map(one.link, wheels))
        requests = one.requests()

    assert all(set(statuses(facts).values()) == {Status.RESOLVED} for facts in found)
    assert {path: number for path, number in requests.items() if path.startswith("/simple/")} == {
        "/simple/nvidia-cublas/": 1,
        "/simple/nvidia-cufft/": 1,
    }
    # its METADATA, and its libraries
    assert set(requests.values()) <= {1, 2}


def test_two_targets_take_their_own_wheels() -> None:
    intel = WheelBuilder("nvidia_cublas", "13.0", "py3-none-manylinux_2_28_x86_64").metadata(name="nvidia-cublas")
    intel.add("nvidia/cu13/lib/libcublas.so.13", library("libcublas.so.13", machine="x86_64"))
    built = WheelBuilder("demo", "1.0", "cp312-cp312-manylinux_2_28_x86_64").metadata(requires=["nvidia-cublas==13.0"])
    built.add("demo/_C.abi3.so", library("", ["libcublas.so.13"], "x86_64", rpath=RPATH))
    grace = nvidia("nvidia_cublas")
    with opened(pages(grace, intel)) as one:
        on_grace = one.link(demo("libcublas.so.13", requires=["nvidia-cublas==13.0"]))
        on_intel = one.link(facts_of(built, depth=Depth.LINKS, target=X86_64))

    assert (on_grace.wheels[1:], on_intel.wheels[1:]) == ((grace.file_name,), (intel.file_name,))
    assert statuses(on_grace) == statuses(on_intel) == {"libcublas.so.13": Status.RESOLVED}


# Errors.


def damaged(how: str) -> dict[str, bytes | Resource]:
    """An index of two libraries, one of them unreadable."""
    good, bad = nvidia("nvidia_cublas"), nvidia("nvidia_cufft")
    files = pages(good, bad)
    path, data = f"/files/{bad.file_name}", bad.build()
    resources = {
        "unavailable": Resource(data, behave=[fail(503)]),
        "gone": Resource(data, behave=[fail(404)]),
        "truncated": Resource(data, behave=[truncate(100)]),
        "no archive": Resource(b"<html>an error page</html>" * 10),
        "changing": Resource(data, behave=[change_to(data + b"x", after=1)]),
    }
    return files | {path: resources[how]}


@pytest.mark.parametrize("how", ["unavailable", "gone", "truncated", "no archive", "changing"])
def test_a_dependency_that_cannot_be_read_is_an_error_for_all_who_need_it_and_for_nobody_else(how: str) -> None:
    requires = ["nvidia-cublas==13.0", "nvidia-cufft==13.0"]
    with opened(damaged(how)) as one:
        for _ in range(2):
            with pytest.raises((SourceError, FormatError)):
                one.link(demo("libcublas.so.13", "libcufft.so.13", requires=requires))
        assert statuses(one.link(demo("libcublas.so.13", requires=requires[:1])))["libcublas.so.13"] is Status.RESOLVED


def test_an_index_page_that_does_not_answer_is_an_error() -> None:
    with opened({"/simple/nvidia-cublas/": Resource(b"", behave=[fail(500)])}) as one, pytest.raises(SourceError):
        one.link(demo("libcublas.so.13", requires=["nvidia-cublas==13.0"]))


def test_an_error_of_the_resolver_reaches_the_caller() -> None:
    def refuse(_: Sequence[Requirement], __: Target) -> Resolved:
        raise SourceError("the requirements cannot be resolved")

    with HttpClient() as client, Dependencies(client, lambda _: (), refuse) as dependencies, pytest.raises(SourceError):
        dependencies.link(demo("libcublas.so.13", requires=["nvidia-cublas>=13"]))


def test_threads_that_wait_for_a_failure_learn_of_it() -> None:
    began, calls = threading.Barrier(4), count()

    def listing(_: str) -> Sequence[IndexFile]:
        next(calls)
        raise SourceError("the index does not answer")

    def link(dependencies: Dependencies) -> str:
        began.wait(PATIENCE)
        with pytest.raises(SourceError) as error:
            dependencies.link(demo("libcublas.so.13", requires=["nvidia-cublas==13.0"]))
        return str(error.value)

    with (
        HttpClient() as client,
        Dependencies(client, listing, lambda *_: Resolved(())) as dependencies,
        ThreadPoolExecutor(4) as pool,
    ):
        told = {future.result(PATIENCE) for future in [pool.submit(link, dependencies) for _ in range(4)]}

    assert told == {"the index does not answer"}
    assert next(calls) == 1


def test_what_is_kept_of_a_dependency_is_small(tmp_path: Path) -> None:
    """A library of 3 MB is not held: a release of twenty wheels shares thirty dependencies."""
    built = WheelBuilder("nvidia_cublas", "13.0", LINUX).metadata(name="nvidia-cublas")
    data = Elf(machine=183, soname="libcublas.so.13", contents={".text": bytes(3_000_000)}).build().data
    built.add("nvidia/cu13/lib/libcublas.so.13", data)
    with opened(pages(built)) as one:
        found = one.link(demo("libcublas.so.13", requires=["nvidia-cublas==13.0"]))

    assert len(repr(found.files["nvidia/cu13/lib/libcublas.so.13"])) < 10_000


def test_served_metadata_with_another_hash_than_stated_is_told_and_not_followed() -> None:
    toolkit = WheelBuilder("toolkit").metadata(requires=["nvidia-cublas==13.0"])
    files = pages(nvidia("nvidia_cublas"), toolkit, attributes={toolkit.file_name: SERVED})
    files[f"/files/{toolkit.file_name}.metadata"] = b"Metadata-Version: 2.4\nName: toolkit\nVersion: 1.0\n"
    with opened(files) as one:
        found = one.link(demo("libcublas.so.13", requires=["toolkit==1.0"]))
        alone = one.link(demo("libcublas.so.13", requires=["nvidia-cublas==13.0"]))

    assert statuses(found)["libcublas.so.13"] is Status.RESOLVED  # by the wheel's own METADATA
    assert [(wrong.file_name, wrong.stated) for wrong in found.wrong_metadata] == [
        (toolkit.file_name, f"sha256={'0' * 64}")
    ]
    assert alone.wrong_metadata == ()


# Symbols.

TORCH_99 = "torch-99.0-cp312-cp312-manylinux_2_28_aarch64.whl"  # no table has it


def torch_that_defines(*names: str) -> WheelBuilder:
    built = WheelBuilder("torch", "99.0", "cp312-cp312-manylinux_2_28_aarch64").metadata()
    defined = [Symbol(name) for name in names]
    return built.add("torch/lib/libc10.so", library("libc10.so", ["libc.so.6"], symbols=defined))


def extension(folder: Path, *wanted: str) -> tuple[WheelFacts, Neighbour]:
    """A wheel whose METADATA names no torch, and whose module needs these names."""
    symbols = [*(Symbol(name, defined=False) for name in wanted), Symbol("PyInit__C")]
    built = WheelBuilder("demo", "1.0", "cp312-cp312-manylinux_2_28_aarch64").metadata()
    built.add("demo/_C.cpython-312-aarch64-linux-gnu.so", library("", ["libc10.so"], symbols=symbols))
    path = built.write(folder)
    return facts_of(built, depth=Depth.LINKS, target=AARCH64), Neighbour(path.name, path)


def symbols_beside(torch: WheelBuilder, judged: tuple[WheelFacts, Neighbour]) -> SymbolFacts:
    answer = Resolved((Requirement("torch==99.0"),))
    with opened(pages(torch), answer, beside=["torch==99.0"]) as one:
        found = one.dependencies.link(judged[0], place=judged[1])
    assert isinstance(found, LinkFacts)
    assert statuses(found) == {"libc10.so": Status.PRELOAD}
    assert isinstance(found.symbols, SymbolFacts)
    return found.symbols


def test_names_that_the_torch_beside_it_defines(tmp_path: Path) -> None:
    found = symbols_beside(torch_that_defines("_ZN3c104hereEv"), extension(tmp_path, "_ZN3c104hereEv", "PyList_New"))

    assert found.unresolved == ()
    assert found.unread == ()
    assert (found.judged, found.torch, found.torch_wheel) == (1, "99.0", TORCH_99)


def test_a_name_that_the_torch_beside_it_lacks(tmp_path: Path) -> None:
    found = symbols_beside(torch_that_defines("_ZN3c104hereEv"), extension(tmp_path, "_ZN3c104goneEv"))

    assert [(item.of_torch, item.imported) for item in found.unresolved] == [(("_ZN3c104goneEv",), True)]


@pytest.mark.parametrize(("defined", "reasons"), [("_ZN3c103oldEv", []), ("_ZN3c103newEv", ["_torch1.so"])])
def test_a_library_for_each_torch_that_a_function_opens(tmp_path: Path, defined: str, reasons: list[str]) -> None:
    built = WheelBuilder("demo", "1.0", "cp312-cp312-manylinux_2_28_aarch64").metadata()
    built.add("demo/_C.cpython-312-aarch64-linux-gnu.so", library("", ["libc10.so"], symbols=[Symbol("PyInit__C")]))
    source = "import ctypes, os\nimport demo._C\ndef load(torch):\n  folder = os.path.dirname(__file__)\n"
    source += "  ctypes.CDLL(f'{folder}/libdemo_torch{torch}.so')\n"
    built.add("demo/__init__.py", source)
    for number in (1, 2):
        wanted = [Symbol("_ZN3c103oldEv" if number == 2 else "_ZN3c104goneEv", defined=False), Symbol("own")]
        built.add(f"demo/libdemo_torch{number}.so", library("", ["libc10.so"], symbols=wanted))
    path = built.write(tmp_path)
    judged = facts_of(built, depth=Depth.LINKS, target=AARCH64), Neighbour(path.name, path)

    found = symbols_beside(torch_that_defines(defined), judged)

    assert [member[-len("_torch1.so") :] for member, _ in found.unread] == reasons
    assert not any(item.imported for item in found.unresolved)
