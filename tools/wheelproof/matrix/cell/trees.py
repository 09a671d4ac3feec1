"""Trees of installed packages: the packages of a lock for a platform, installed by uv and shared by all runs.

uv links the files from its own cache, so a tree takes little room next to that. A tree is never changed: it is made
next to its place and renamed, and every place sees it read-only.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from wheel_checks.errors import DeadlineError, NetworkError, SourceError
from wheel_checks.formats.lock.model import LockedPackage
from wheel_checks.sources.installers.config import IndexConfig
from wheel_checks.sources.uv.own_configuration import (
    config_options,
    configuration,
    private_folder,
    run_uv_alone,
    write_private,
)
from wheel_checks.sources.uv.resolver import is_network_failure, python_platform
from wheel_checks.sources.uv_binary import Answer
from wheel_checks.targets.target import Target
from wheelproof.matrix.cell.steps import digest
from wheelproof.matrix.folders import make_folder, only_writer

UNUSED = 30 * 24 * 3600.0  # seconds after which a tree that no run has taken is removed
ABANDONED = 24 * 3600.0  # seconds after which no one is still writing a tree
_PARTIAL = ".partial-"
_DRY, _WOULD_FETCH = ("--dry-run", "--offline"), "Would download"  # uv's message then (uv 0.13)
_DRY_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Lock:
    """The resolution of a cell: for each project its version and the sha256 digests of the files that fit the target.

    ``direct`` are the URLs of the packages that a requirement names by URL: no index is asked for these. ``sizes`` are
    the bytes of the files as far as the index states them, which change nothing.
    """

    packages: Mapping[str, tuple[str, tuple[str, ...]]]
    direct: Mapping[str, str] = field(default_factory=dict)
    sizes: Mapping[str, int] = field(default_factory=dict)

    @property
    def digest(self) -> str:
        """The same for the same files, whenever and wherever they were resolved."""
        return digest(self.as_json())[:24]

    @property
    def identity(self) -> str:
        """The digest of versions and hashes alone: on another machine the same local file has another path."""
        return digest(self.packages)

    @property
    def versions(self) -> dict[str, str]:
        """Versions by project."""
        return {name: version for name, (version, _) in self.packages.items()}

    def as_json(self) -> dict[str, Any]:
        """For a record."""
        return {
            name: [version, list(digests), *([self.direct[name]] if name in self.direct else [])]
            for name, (version, digests) in sorted(self.packages.items())
        }

    @classmethod
    def from_json(cls, values: Mapping[str, Any], sizes: Mapping[str, int] | None = None) -> Lock:
        """The inverse of :meth:`as_json`, with the ``sizes`` saved with it."""
        packages = {name: (version, tuple(digests)) for name, (version, digests, *_) in values.items()}
        return cls(packages, {name: url for name, (_, _, *urls) in values.items() for url in urls}, sizes or {})

    @classmethod
    def of(cls, packages: Sequence[LockedPackage]) -> Lock:
        """The lock of uv's resolution. Raises SourceError for a package without a digest, which cannot be proven."""
        found, direct, sizes = {}, {}, {}
        for package in packages:
            digests = tuple(sorted({f.hashes["sha256"] for f in package.files if "sha256" in f.hashes}))
            if not digests:
                raise SourceError(f"no sha256 is known for {package.label}, so its wheel cannot be verified")
            found[package.name] = (package.version, digests)
            sizes[package.name] = max(file.size or 0 for file in package.files)
            if package.direct:
                direct[package.name] = package.files[0].url
        return cls(found, direct, sizes)

    def requirements(self) -> str:
        """As a requirements file with hashes."""
        lines = [
            " ".join([self._requirement(name, version), *(f"--hash=sha256:{value}" for value in digests)])
            for name, (version, digests) in sorted(self.packages.items())
        ]
        return "".join(f"{line}\n" for line in lines)

    def _requirement(self, name: str, version: str) -> str:
        return f"{name} @ {self.direct[name]}" if name in self.direct else f"{name}=={version}"


@dataclass(frozen=True, slots=True)
class Trees:
    """The cache of trees below ``folder``."""

    folder: Path

    def path(self, lock: Lock) -> Path:
        """The path of a lock's tree, which may not exist. Targets differ in the digests of their files."""
        return self.folder / lock.digest

    def bytecode(self, lock: Lock) -> Path:
        """The folder for the byte code of a tree's modules: compiling them takes half of an import under emulation."""
        return make_folder(self.folder / f"{lock.digest}.pycache")

    def install(self, lock: Lock, target: Target, config: IndexConfig, *, offline: bool, deadline: float) -> Path:
        """The tree of a lock; it is made unless it is present.

        Raises SourceError when uv cannot install, DeadlineError when that takes longer than ``deadline`` seconds.
        """
        make_folder(self.folder)
        started, path = time.monotonic(), self.path(lock)
        with only_writer(self.folder / f"{lock.digest}.lock", deadline):
            if not path.is_dir():
                # Its own name: the uv of a run that was killed may still be writing into another.
                partial = self.folder / f"{lock.digest}{_PARTIAL}{os.getpid()}"
                left = deadline - (time.monotonic() - started)
                if left <= 0:
                    raise DeadlineError(f"timed out before {path.name} was installed")
                try:
                    _install(lock, target, config, partial, offline=offline, deadline=left)
                    partial.rename(path)
                finally:
                    shutil.rmtree(partial, ignore_errors=True)
            os.utime(path)  # it is in use
        return path

    def is_cached(self, lock: Lock, target: Target, config: IndexConfig) -> bool:
        """Whether uv would fetch nothing to install a lock. Raises SourceError when it does not answer."""
        answer = _run(lock, target, config, self.folder / f"{lock.digest}{_PARTIAL}none", _DRY, _DRY_SECONDS)
        return answer.status == 0 and _WOULD_FETCH not in answer.words

    def prune(self, now: float) -> tuple[str, ...]:
        """Remove trees unused for a month, and leftovers of killed runs; returns the trees' names."""
        if not self.folder.is_dir():
            return ()
        removed = []
        for path in sorted(self.folder.iterdir()):
            with contextlib.suppress(OSError):
                age = now - path.stat().st_mtime
                if _PARTIAL in path.name and age > ABANDONED:
                    shutil.rmtree(path, ignore_errors=True)
                elif "." not in path.name and age > UNUSED:
                    going = path.rename(path.with_name(f"{path.name}{_PARTIAL}old"))  # in one step for others
                    for folder in (going, path.with_name(f"{path.name}.pycache")):
                        shutil.rmtree(folder, ignore_errors=True)
                    path.with_name(f"{path.name}.lock").unlink(missing_ok=True)
                    removed.append(path.name)
        return tuple(removed)


def _install(lock: Lock, target: Target, config: IndexConfig, folder: Path, *, offline: bool, deadline: float) -> None:
    answer = _run(lock, target, config, folder, ["--quiet", *(["--offline"] if offline else [])], deadline)
    if answer.status:
        words = " ".join(answer.words.split())
        what = f"uv could not install the packages: {words[-600:]}"
        if is_network_failure(words):
            raise NetworkError(what, hint="run it again: downloads are cached")
        raise SourceError(what, hint="check whether the disk is full")


def _run(
    lock: Lock, target: Target, config: IndexConfig, folder: Path, options: Sequence[str], deadline: float
) -> Answer:
    with private_folder() as private:
        arguments = ["pip", "install", *options, "--target", str(folder), "--no-deps", "--no-build"]
        arguments += ["--require-hashes", "--python", sys.executable, "--python-platform", python_platform(target)]
        arguments += ["--python-version", ".".join(map(str, target.python))]
        arguments += ["--requirements", str(write_private(private / "requirements.txt", lock.requirements()))]
        arguments += config_options(private, configuration(config, os.environ))
        return run_uv_alone(arguments, os.environ, deadline)


def nearest_folder(path: Path) -> Path:
    """The folder itself, or the nearest one above it that exists."""
    return next(folder for folder in (path, *path.absolute().parents) if folder.is_dir())
