"""The effect of an install on imports: copies in several folders, requirements, and shared files."""

from __future__ import annotations

from packaging.requirements import Requirement

from wheel_checks.facts.pins.changes import Fate, PackageChange
from wheel_checks.facts.pins.import_order import Copy, ImportOrder
from wheel_checks.facts.pins.outcome import Watch, changes_between, shares_files
from wheel_checks.model import Unavailable
from wheel_checks.targets.target import parse_targets

(TARGET,) = parse_targets(["x86_64"], ["3.12"])
TORCH = ("torch", "2.7.0+cu128", ("nvidia-cudnn-cu12==9.5.1.17", "sympy>=1.13"))


def copy(name: str, version: str, requires: tuple[str, ...] = (), folder: int = 0) -> Copy:
    return Copy(name, version, folder, tuple(map(Requirement, requires)))


def change(before: list[Copy], new: list[Copy], name: str = "torch", gone: tuple[str, ...] = ()) -> PackageChange:
    """The effect on one package; a new copy replaces one of its name in the same folder."""
    folders = ("/first", "/second")
    order = ImportOrder.of(folders, before)
    names = {one.name: one for one in new}
    after = order.after(names, {*names, *gone}, lambda one: one.folder == 0)
    watch = Watch.of(order.copies)
    changes = changes_between(order, after, watch, TARGET.markers(), "uv", "x86_64")
    return next(one for one in changes if one.name == name)


def test_a_library_that_torch_allows_no_other_release_of() -> None:
    there = [copy(*TORCH), copy("nvidia-cudnn-cu12", "9.5.1.17"), copy("sympy", "1.13.3")]

    found = change(there, [copy("nvidia-cudnn-cu12", "9.10.2.21")])

    assert found.fate is Fate.BROKEN
    assert found.broken == (
        "it requires nvidia-cudnn-cu12==9.5.1.17, but nvidia-cudnn-cu12 9.10.2.21 would be installed",
    )
    assert found.culprits == ("nvidia-cudnn-cu12",)


def test_a_library_that_goes() -> None:
    there = [copy(*TORCH), copy("nvidia-cudnn-cu12", "9.5.1.17"), copy("sympy", "1.13.3")]

    assert change(there, [], gone=("sympy",)).broken == ("it requires sympy>=1.13, but no sympy would be installed",)


def test_what_was_broken_before_is_not_blamed_on_the_install() -> None:
    there = [copy(*TORCH), copy("nvidia-cudnn-cu12", "9.10.2.21"), copy("sympy", "1.13.3")]

    assert change(there, [copy("nvidia-cudnn-cu12", "9.12.0")]).fate is Fate.KEPT


def test_a_requirement_of_a_requirement() -> None:
    there = [copy(*TORCH), copy("nvidia-cudnn-cu12", "9.5.1.17"), copy("sympy", "1.13.3", ("mpmath<1.4",))]
    there.append(copy("mpmath", "1.3.0"))

    found = change(there, [copy("mpmath", "1.4.0")])

    assert found.broken == ("sympy 1.13.3 requires mpmath<1.4, but mpmath 1.4.0 would be installed",)


def test_an_extra_of_another_package_does_not_count() -> None:
    there = [copy(*TORCH), copy("nvidia-cudnn-cu12", "9.5.1.17"), copy("pytest", "8.0")]
    there.append(copy("sympy", "1.13.3", ("pytest>=7; extra == 'dev'",)))

    assert change(there, [copy("pytest", "6.0")]).fate is Fate.KEPT


def test_the_same_library_for_another_cuda_overwrites_it() -> None:
    there = [copy("torch", "2.11.0+cu130", ("nvidia-cudnn-cu13==9.15.1.9",)), copy("nvidia-cudnn-cu13", "9.15.1.9")]

    new = [copy("nvidia-cudnn-cu12", "9.10.2.21")]

    assert change(there, new, "nvidia-cudnn-cu13").fate is Fate.OVERWRITTEN
    found = change(there, new)
    assert (found.fate, found.culprits) == (Fate.BROKEN, ("nvidia-cudnn-cu12",))


def test_the_same_files_in_another_folder_overwrite_nothing() -> None:
    there = [copy("torch", "2.11.0+cu130", ("nvidia-cudnn-cu13==9.15.1.9",), 1)]
    there.append(copy("nvidia-cudnn-cu13", "9.15.1.9", (), 1))

    assert change(there, [copy("nvidia-cudnn-cu12", "9.10.2.21")]).fate is Fate.KEPT


def test_a_copy_behind_another_one() -> None:
    there = [copy("torch", "2.7.0", folder=0), copy("torch", "2.6.0", folder=1)]

    removed = change(there, [], gone=("torch",))

    assert (removed.fate, removed.before, removed.after) == (Fate.REPLACED, "2.7.0", "2.6.0")


def test_a_torchaudio_that_declares_no_torch() -> None:
    there = [copy(*TORCH), copy("nvidia-cudnn-cu12", "9.5.1.17"), copy("sympy", "1.13.3")]

    found = change(there, [copy("torchaudio", "2.11.0")], "torchaudio")

    assert found.fate is Fate.BROKEN
    assert found.unfit == ("torchaudio 2.11.0 does not match torch 2.7.0+cu128: torch 2.7.0 needs torchaudio==2.7.0",)


def test_a_companion_of_which_no_table_says_anything() -> None:
    there = [copy(*TORCH), copy("nvidia-cudnn-cu12", "9.5.1.17"), copy("sympy", "1.13.3")]

    found = change(there, [copy("torchcodec", "0.99")], "torchcodec")

    assert (found.fate, found.open) == (
        Fate.ADDED,
        ("it is unknown whether torchcodec 0.99 matches torch 2.7.0+cu128",),
    )


def test_a_framework_of_which_only_the_version_is_known() -> None:
    there = [Copy("torch", "2.7.0+cu128", 0, Unavailable("only its version is known"))]

    found = change(there, [copy("nvidia-cudnn-cu12", "9.10.2.21")])

    assert found.fate is Fate.KEPT
    assert found.open == (
        "nvidia-cudnn-cu12 9.10.2.21 would be installed: the requirements of torch 2.7.0+cu128 are unknown",
    )


def test_shared_files() -> None:
    assert shares_files("nvidia-nccl-cu12", "nvidia-nccl-cu13")
    assert shares_files("tensorflow", "tensorflow-cpu")
    assert shares_files("cupy-cuda12x", "cupy-cuda13x")
    assert not shares_files("nvidia-nccl-cu12", "nvidia-cudnn-cu12")
    assert not shares_files("torch", "torchvision")
