"""Resolves requirements for a target, from anywhere: uv evaluates every marker for the target and not for this host.

(``pip install --dry-run --platform`` does not: pypa/pip issues 11664 and 10050.) Nothing is built, so no code of a
package runs: wheels alone are considered, as with ``--only-binary :all:``.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol
from urllib.parse import unquote, urlsplit

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from wheel_checks.errors import NetworkError, OfflineError, SourceError, UsageError
from wheel_checks.formats.index.digests import WrongHash, WrongMetadataError
from wheel_checks.formats.lock.model import LockedPackage
from wheel_checks.formats.lock.pylock import parse_pylock
from wheel_checks.formats.lock.tables import MAX_SIZE
from wheel_checks.sources.http.retry import Deadline
from wheel_checks.sources.installers.config import IndexConfig
from wheel_checks.sources.regular_file import read_start
from wheel_checks.sources.uv.explanation import Explanation, explain, unwrapped
from wheel_checks.sources.uv.keeping import Keeping
from wheel_checks.sources.uv.own_configuration import (
    config_options,
    configuration,
    pinning_project,
    private_folder,
    run_uv_alone,
    write_private,
)
from wheel_checks.sources.uv_binary import Answer

UV_GLIBCS = (17, 28, *range(31, 41))
"""The minor versions of glibc 2 that uv knows as ``--python-platform`` (uv 0.9 to 0.13)."""

_MACOS_VERSION = "MACOSX_DEPLOYMENT_TARGET"  # uv takes the target's version from it (uv's reference, --python-platform)
_TRIPLES = {"Windows": "pc-windows-msvc", "macOS": "apple-darwin"}
MOST_UNUSABLE = 16  # packages without a file for the target that are omitted before giving up
DEFAULT_TIMEOUT = 300.0  # seconds; a cold resolution of 200 packages takes 20

_BAD_INPUT = re.compile(
    r"Couldn't parse|Failed to parse|File not found|does not match|Invalid |Unsupported|not found at|No such file"
)
_WRONG_METADATA = re.compile(
    r"Hash mismatch for package metadata at `(?P<url>[^`]+)`.*?Expected:\s*(?P<stated>\w+:[0-9a-f]+)"
    r".*?Computed:\s*(?P<found>\w+:[0-9a-f]+)"
)
_NETWORK = re.compile(r"Failed to fetch|Request failed|error sending request|Failed to download|HTTP status")
_REFUSED = re.compile(r"HTTP status client error \((?!408|429)|Hash mismatch|invalid peer certificate|No space left")


class Platform(Protocol):
    """The interface of a target, such as ``wheel_checks.targets.target.Target``, which sources do not import."""

    @property
    def python(self) -> tuple[int, int]:
        """Major and minor version."""

    @property
    def python_full_version(self) -> str:
        """With the patch release, such as ``3.12.4``."""

    @property
    def free_threaded(self) -> bool:
        """True for the builds without the global interpreter lock."""

    @property
    def machine(self) -> str:
        """Such as ``aarch64``."""

    @property
    def glibc(self) -> tuple[int, int]:
        """The latest glibc whose wheels the target accepts."""

    @property
    def musl(self) -> tuple[int, int]:
        """The version of musl if that is the C library, else (0, 0)."""

    @property
    def system(self) -> str:
        """Linux, Windows or macOS."""

    @property
    def macos(self) -> tuple[int, int]:
        """The version of macOS, (0, 0) elsewhere."""


class NoSolutionError(SourceError):
    """No set of versions satisfies all requirements; ``explanation`` has the requirements that conflict."""

    def __init__(self, explanation: Explanation) -> None:
        super().__init__(f"the requirements cannot be resolved: {explanation}", hint=" ".join(explanation.hints))
        self.explanation = explanation


@dataclass(frozen=True, slots=True)
class Unusable:
    """A package that was omitted since no wheel of it fits the target; ``explanation`` is uv's.

    The requirements of such a package are unknown and not resolved.
    """

    name: str
    explanation: Explanation


@dataclass(frozen=True, slots=True)
class Resolution:
    """The packages that uv would install, each with the files that fit the target, by name; and those omitted."""

    packages: tuple[LockedPackage, ...]
    unusable: tuple[Unusable, ...] = ()


def python_platform(target: Platform) -> str:
    """The target as uv's ``--python-platform`` names it: the latest glibc that uv knows and the target has.

    Raises UsageError for a target older than all that uv knows, and for a free-threaded Python: uv resolves for one
    only if that interpreter is installed.
    """
    if target.free_threaded:
        python = ".".join(map(str, target.python))
        what = f"uv cannot resolve for the free-threaded Python {python} without that interpreter"
        raise UsageError(what, expected="a Python version without t, such as 3.13")
    if any(target.musl):
        return f"{target.machine}-unknown-linux-musl"
    if target.system != "Linux":
        return f"{target.machine}-{_TRIPLES[target.system]}"
    fitting = [minor for minor in UV_GLIBCS if (2, minor) <= target.glibc]
    if not fitting:
        what = f"uv cannot resolve for glibc {target.glibc[0]}.{target.glibc[1]}"
        raise UsageError(what, expected=f"glibc 2.{UV_GLIBCS[0]} or newer")
    return f"{target.machine}-manylinux_2_{fitting[-1]}"


def resolve(
    requirements: Sequence[str],
    target: Platform,
    config: IndexConfig,
    *,
    constraints: Sequence[str] = (),
    pinned: Mapping[str, str] | None = None,
    left_out: Iterable[str] = (),
    pre: bool = False,
    offline: bool = False,
    timeout: float = DEFAULT_TIMEOUT,
    leave_out_unusable: bool = False,
    environ: Mapping[str, str] = os.environ,
    keeping: Keeping | None = None,
) -> Resolution:
    """The packages that uv would install for ``requirements`` (PEP 508), from the indexes of ``config``.

    ``pinned`` maps names of packages to the one index that each comes from, ``left_out`` names packages that no
    resolution may contain. ``leave_out_unusable`` continues without a package that has no wheel for the target, and
    names it in the result. ``timeout`` is in seconds, for all runs of uv. Credentials reach uv in a file of mode 0600.
    ``keeping`` keeps the result for ten minutes.

    Raises UsageError for requirements that do not parse, NoSolutionError, WrongMetadataError, OfflineError when
    ``offline`` and uv's cache lacks a file, DeadlineError, UntrustedAddressError when an index counts that only a tree
    names, and SourceError when uv or an index does not answer.
    """
    if not requirements:
        raise UsageError("nothing to resolve", expected="a requirement, or a requirements file")
    _parsed(requirements)
    config.require_trusted("what is resolved")
    gone = frozenset(map(canonicalize_name, left_out))
    options, settings = _options(target, pre=pre), configuration(config, environ)
    if target.system == "macOS":  # uv's own is 13.0
        environ = {**environ, _MACOS_VERSION: ".".join(map(str, target.macos))}

    def run() -> Resolution:
        with private_folder() as folder:
            arguments = ["pip", "compile", "--quiet", *input_files(folder, requirements, pinned or {})]
            if constraints:
                text = "\n".join(_parsed(constraints)) + "\n"
                arguments += ["--constraints", str(write_private(folder / "constraints.txt", text))]
            arguments += [*options, *(["--offline"] if offline else []), *config_options(folder, settings)]
            return _Run(arguments, folder, environ, timeout, gone).resolve(leave_out_unusable=leave_out_unusable)

    if keeping is None:
        return run()
    words, places = question_of(
        requirements,
        target,
        config,
        constraints=constraints,
        pinned=pinned,
        left_out=gone,
        pre=pre,
        environ=environ,
    )
    return keeping.remember(Resolution, [*words, str(leave_out_unusable)], places, run)


def question_of(
    requirements: Sequence[str],
    target: Platform,
    config: IndexConfig,
    *,
    constraints: Sequence[str] = (),
    pinned: Mapping[str, str] | None = None,
    left_out: Iterable[str] = (),
    pre: bool = False,
    environ: Mapping[str, str] = os.environ,
) -> tuple[list[str], tuple[str, ...]]:
    """All inputs of a resolution besides uv and the indexes' content, for :meth:`Keeping.remember`: the words, and the
    places that are queried. The arguments and errors are those of :func:`resolve`.
    """
    gone = sorted(map(canonicalize_name, left_out))
    words = [*_parsed(requirements), "under", *_parsed(constraints), "without", *gone]
    words += [f"{name} from {url}" for name, url in sorted((pinned or {}).items())]
    words += [*_options(target, pre=pre), configuration(config, environ)]
    words += [f"macOS {target.macos}"] * (target.system == "macOS")
    words += [f"{name}={value}" for name, value in sorted(environ.items()) if name[:3] == "UV_"]
    linked = [url for text in (*requirements, *constraints) if (url := Requirement(text).url)]
    return words, (*config.indexes, *config.find_links, *(pinned or {}).values(), *linked)


def input_files(folder: Path, requirements: Sequence[str], pinned: Mapping[str, str]) -> list[str]:
    """The files, written to ``folder``, that give uv these requirements, and each in ``pinned`` from its one index.

    Raises UsageError for a requirement that does not parse: it could be an option of uv's.
    """
    bound = [text for text in _parsed(requirements) if canonicalize_name(Requirement(text).name) in pinned]
    free = [text for text in _parsed(requirements) if text not in bound]
    files = []
    if free:
        files.append(str(write_private(folder / "requirements.in", "\n".join(free) + "\n")))
    if bound:
        (folder / "pinned").mkdir()
        files.append(str(write_private(folder / "pinned" / "pyproject.toml", pinning_project(bound, pinned))))
    return files


def _parsed(texts: Sequence[str]) -> list[str]:
    """The requirements as they are written to a file: an invalid one could be an option of uv's."""
    try:
        return [str(Requirement(text)) for text in texts]
    except InvalidRequirement as error:
        raise UsageError(
            f"a requirement does not parse: {' '.join(str(error).split())}", expected="one as torch==2.11.0 (PEP 508)"
        ) from None


def _options(target: Platform, *, pre: bool) -> list[str]:
    options = ["--python-platform", python_platform(target), "--python-version", target.python_full_version]
    options += ["--python", sys.executable, "--format", "pylock.toml", "--no-header", "--no-build"]
    return [*options, *(["--prerelease", "allow"] if pre else [])]


@dataclass(frozen=True, slots=True)
class _Run:
    """Runs uv until all unusable packages are omitted."""

    arguments: Sequence[str]
    folder: Path
    environ: Mapping[str, str]
    timeout: float
    left_out: frozenset[str]

    def resolve(self, *, leave_out_unusable: bool) -> Resolution:
        unusable: dict[str, Unusable] = {}
        deadline = Deadline(self.timeout)
        while True:
            run, lock = self.folder / str(len(unusable)), self.folder / str(len(unusable)) / "pylock.toml"
            run.mkdir()
            more = ["--output-file", str(lock)]
            if gone := sorted({*self.left_out, *unusable}):
                # An override whose marker is never true removes a package from everywhere, the user's list included.
                rows = "".join(f'{name} ; python_version < "0"\n' for name in gone)
                more += ["--overrides", str(write_private(run / "overrides.txt", rows))]
            left = deadline.remaining(self.timeout) if unusable else self.timeout
            answer = run_uv_alone([*self.arguments, *more], self.environ, left)
            if answer.status == 0 and lock.is_file():
                packages = parse_pylock(read_start(lock, MAX_SIZE + 1), run)
                return Resolution(packages, tuple(unusable.values()))
            explanation = explain(answer.words)
            if explanation is None:
                raise _failure(answer, self.folder)
            if any("not found in the cache" in sentence for sentence in explanation.sentences):
                raise OfflineError(f"{explanation}", hint="run once without --offline")
            named = {str(canonicalize_name(name)) for name in explanation.unusable} - unusable.keys()
            if not leave_out_unusable or not named or len(unusable) + len(named) > MOST_UNUSABLE:
                raise NoSolutionError(explanation)
            unusable |= {name: Unusable(name, explanation) for name in sorted(named)}


def _failure(answer: Answer, folder: Path) -> SourceError | UsageError:
    """The error for uv's output, with the names of our temporary files made readable."""
    text, hints = unwrapped(answer.words.replace(f"{folder}/", ""))
    hint = " ".join(hints)
    if mismatch := _WRONG_METADATA.search(text):
        name = unquote(urlsplit(mismatch["url"]).path.rpartition("/")[2]).removesuffix(".metadata")
        return WrongMetadataError(WrongHash(name, *(mismatch[of].replace(":", "=") for of in ("stated", "found"))))
    if not text:
        return SourceError(f"uv exited with status {answer.status} without output")
    if not _NETWORK.search(text) and _BAD_INPUT.search(text):
        return UsageError(f"the requirements cannot be read: {text}", hint=hint)
    kind = NetworkError if is_network_failure(text) else SourceError
    return kind(f"uv could not resolve the requirements: {text}", hint=hint)


def is_network_failure(words: str) -> bool:
    """Whether uv's words say that a server did not answer, failed, or broke off; 404 does not count."""
    return bool(_NETWORK.search(words)) and not _REFUSED.search(words)
