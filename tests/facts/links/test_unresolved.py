"""Symbols that nothing defines: given files, their needs, and the definitions of others."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from tests.support.elf import AARCH64, WEAK, Elf, Symbol
from wheel_checks.facts.links.closure import Need, Status
from wheel_checks.facts.links.unresolved import UnresolvedFile, find_unresolved
from wheel_checks.formats.elf.bytes import WholeFile
from wheel_checks.formats.elf.file import LINKAGE_PARTS, ElfFacts, Part, read_elf
from wheel_checks.formats.elf.linkage import symbol_hash

MODULE = "demo/_C.so"
RAISE, GONE = "_ZN2at5raiseEv", "_ZN3c104goneEv"
C10 = Need(MODULE, "libc10.so", Status.PRELOAD, "torch/lib/libc10.so")
NCCL = Need(MODULE, "libnccl.so.2", Status.RESOLVED, "nvidia/nccl/lib/libnccl.so.2")


@dataclass
class Beside:
    """Libraries by path with the names that they define, None if unreadable; ``asked`` are those read.

    ``process_names`` are those of the interpreter and the C library, None where these are unknown.
    """

    files: Mapping[str, Collection[str] | None] = field(default_factory=dict)
    torch_names: Collection[str] | None = None
    process_names: Collection[str] | None = None
    most_libraries: int = 80
    asked: list[str] = field(default_factory=list)

    @property
    def torch(self) -> Collection[int] | None:
        return None if self.torch_names is None else set(map(symbol_hash, self.torch_names))

    @property
    def process(self) -> Collection[int] | None:
        return None if self.process_names is None else set(map(symbol_hash, self.process_names))

    def of(self, paths: Sequence[str]) -> Mapping[str, Collection[int] | None]:
        self.asked += paths
        known = {path: self.files.get(path) for path in paths}
        return {path: None if names is None else set(map(symbol_hash, names)) for path, names in known.items()}

    def libraries(self) -> Sequence[str]:
        return list(self.files)


def file(*wanted: str, defines: Sequence[str] = (), weak: Sequence[str] = (), **options: object) -> ElfFacts:
    symbols = [Symbol(name, defined=False) for name in wanted] + [Symbol(name) for name in defines]
    symbols += [Symbol(name, defined=False, binding=WEAK) for name in weak]
    built = Elf(machine=AARCH64, symbols=symbols or [Symbol("nothing")], **options).build()  # type: ignore[arg-type]  # passed on
    return read_elf(WholeFile(built.data), LINKAGE_PARTS | {Part.VERSIONS, Part.DYNAMIC})


def judged(
    files: Mapping[str, ElfFacts], beside: Beside, *needs: Need, imported: Collection[str] = (MODULE,)
) -> tuple[tuple[UnresolvedFile, ...], tuple[tuple[str, str], ...]]:
    return find_unresolved(files, needs, imported, beside)[:2]


def test_a_name_of_torch_that_torch_lacks() -> None:
    found, open_ = judged({MODULE: file(RAISE, GONE)}, Beside(torch_names=[RAISE]), C10)

    assert found == (UnresolvedFile(MODULE, (GONE,), (GONE,), imported=True),)
    assert open_ == ()


def test_the_interpreter_the_own_files_and_weak_names_count() -> None:
    files = {MODULE: file("PyList_New", "_Py_Dealloc", "own", weak=[GONE]), "demo/libown.so": file(defines=["own"])}

    assert judged(files, Beside(torch_names=[]), C10) == ((), ())


def test_a_needed_library_that_is_not_of_torch_is_read() -> None:
    beside = Beside({NCCL.by: ["ncclSend"]}, torch_names=[])
    found, _ = judged({MODULE: file("ncclSend", "ncclNewest")}, beside, NCCL)

    assert [item.names for item in found] == [("ncclNewest",)]
    assert found[0].of_torch == ()


def test_nothing_is_read_for_names_that_torch_defines() -> None:
    beside = Beside({NCCL.by: []}, torch_names=[RAISE])
    judged({MODULE: file(RAISE)}, beside, C10, NCCL)

    assert beside.asked == []


def test_a_library_that_a_package_may_have_opened_for_all_to_see_counts() -> None:
    beside = Beside({"other/libother.so": ["other_function"]}, torch_names=[])

    assert judged({MODULE: file("other_function")}, beside, C10) == ((), ())


def test_a_library_that_is_named_as_the_symbol_begins_is_read_first() -> None:
    others = {f"a/lib{number}.so": None for number in range(100)}  # more than are read, and none is readable
    beside = Beside({**others, "nvidia/cu13/lib/libcublas.so.13": ["cublasHgemm"]}, torch_names=[])

    assert judged({MODULE: file("cublasHgemm")}, beside, C10) == ((), ())
    assert beside.asked == [C10.by, "nvidia/cu13/lib/libcublas.so.13"]


def test_what_could_not_be_read_leaves_the_question_open() -> None:
    found, open_ = judged({MODULE: file("ncclSend")}, Beside({NCCL.by: None}, torch_names=[]), NCCL)

    assert found == ()
    assert open_ == ((MODULE, "it needs ncclSend, and what libnccl.so.2 defines could not be read"),)


def test_a_missing_library_may_have_what_is_not_in_the_namespaces_of_torch() -> None:
    lost = Need(MODULE, "libgone.so.1", Status.MISSING)
    found, _ = judged({MODULE: file("gone_function", GONE)}, Beside(torch_names=[]), lost, C10)

    assert [item.names for item in found] == [(GONE,)]


def test_names_of_the_c_library_that_lack_a_version() -> None:
    libc = Need(MODULE, "libc.so.6", Status.SYSTEM)

    assert judged({MODULE: file("dlclose", "malloc")}, Beside(torch_names=[]), libc) == ((), ())


def test_where_the_interpreter_is_known_its_names_and_those_of_the_c_library_are_looked_up() -> None:
    libc = Need(MODULE, "libc.so.6", Status.SYSTEM, "/lib/libc.so.6")
    beside = Beside({libc.by: ["malloc"]}, process_names=["PyList_New", "malloc"])

    found, _ = judged({MODULE: file("PyList_New", "PyNever_Was", "malloc", "shm_open")}, beside, libc)
    assert [item.names for item in found] == [("PyNever_Was", "shm_open")]


def test_a_library_of_torch_that_is_missing_may_have_what_torch_does_not_export() -> None:
    lost = Need(MODULE, "libtorch_cuda.so", Status.MISSING)

    assert judged({MODULE: file(GONE)}, Beside(torch_names=[]), lost, C10) == ((), ())


def test_more_libraries_than_may_be_read_leave_the_question_open() -> None:
    beside = Beside({"a/liba.so": ["a"], "b/libb.so": ["wanted"]}, torch_names=[], most_libraries=1)

    assert judged({MODULE: file("wanted")}, beside) == (
        (),
        ((MODULE, "it needs wanted, and what a library next to it defines could not be read"),),
    )


def test_names_of_the_driver_and_of_the_library_of_c_plus_plus() -> None:
    needs = [Need(MODULE, "libcuda.so.1", Status.DRIVER), Need(MODULE, "libstdc++.so.6", Status.SYSTEM)]
    files = {MODULE: file("cuMemCreate", "nvmlInit_v2", "_ZTIi", "_ZSt4cout", "_Znwm")}

    assert judged(files, Beside(torch_names=[]), *needs) == ((), ())


def test_names_with_versions_of_the_system_are_judged_elsewhere() -> None:
    symbol = Symbol("new_function", defined=False, version="GLIBC_2.99", library="libc.so.6")
    built = Elf(machine=AARCH64, symbols=[symbol, Symbol("x")], needs={"libc.so.6": ["GLIBC_2.99"]}).build()
    elf = read_elf(WholeFile(built.data), LINKAGE_PARTS | {Part.VERSIONS})

    assert judged({MODULE: elf}, Beside(torch_names=[]), Need(MODULE, "libc.so.6", Status.SYSTEM)) == ((), ())


def test_one_for_each_cuda_is_enough() -> None:
    good, bad = "demo/libdemo_cuda130.so", "demo/libdemo_cuda126.so"
    found, _ = judged({good: file(), bad: file(GONE)}, Beside(torch_names=[]), imported=[good, bad])
    assert [(item.path, item.imported) for item in found] == [(bad, False)]

    module = {"demo/sm90/ops.abi3.so": file(GONE), "demo/sm100/ops.abi3.so": file(GONE)}
    found, _ = judged(module, Beside(torch_names=[]), imported=module)
    assert all(item.imported for item in found)
    assert len(found) == 2


def test_one_that_loads_is_enough_where_others_are_open_too() -> None:
    one, other = "demo/libdemo_torch24.so", "demo/libdemo_torch28.so"
    needs = [replace(NCCL, elf=one)]
    beside = Beside({NCCL.by: None}, torch_names=[])

    assert judged({one: file("ncclSend"), other: file()}, beside, *needs, imported=[one, other]) == ((), ())
    assert judged({one: file("ncclSend")}, beside, *needs, imported=[]) == ((), ()), "nothing loads it"

    found, open_ = judged({one: file("ncclSend"), other: file(GONE)}, beside, *needs, imported=[one, other])
    assert [item.imported for item in found] == [False], "the other may load"
    assert [path for path, _ in open_] == [one]


def test_operators_and_functions_of_torch_that_lie_in_no_class() -> None:
    names = ("_ZN3c10lsERSoRKNS_4HalfE", "_Z16THPVariable_WrapN2at10TensorBaseE")
    found, _ = judged({MODULE: file(*names, "_Z3ownv")}, Beside({"a/liba.so": ["_Z3ownv"]}, torch_names=[]), C10)

    assert [item.of_torch for item in found] == [names]


def test_versions_of_a_lost_library_prove_what_strings_only_suggest() -> None:
    symbol = Symbol("cublasCreate_v2", defined=False, version="libcublas.so.13", library="libcublas.so.13")
    built = Elf(machine=AARCH64, symbols=[symbol, Symbol("x")], needs={"libcublas.so.13": ["libcublas.so.13"]}).build()
    elf = read_elf(WholeFile(built.data), LINKAGE_PARTS | {Part.VERSIONS})
    supposed = Need(MODULE, "libcublas.so.13", Status.MISSING, certain=False)

    found, _ = judged({MODULE: elf}, Beside(torch_names=[]), supposed)
    assert [item.names for item in found] == [("cublasCreate_v2@libcublas.so.13",)]

    certain = Need(MODULE, "libcublas.so.13", Status.MISSING)  # WHL521 speaks of it
    assert judged({MODULE: elf}, Beside(torch_names=[]), certain) == ((), ())
