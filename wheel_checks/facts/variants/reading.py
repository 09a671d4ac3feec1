"""Reads the index-level metadata of variants: finds the document next to the wheels of a release, and reads it once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

from packaging.utils import canonicalize_name

from wheel_checks.errors import FormatError, SourceError
from wheel_checks.facts.wheel.variant import VariantIndex
from wheel_checks.formats.index.file_names import VARIANTS_SUFFIX
from wheel_checks.formats.index.page import IndexFile
from wheel_checks.formats.wheel.wheel_name import WheelName, wheel_name_or_none
from wheel_checks.model import Unavailable
from wheel_checks.parsing import version_or_none
from wheel_checks.sources.variant_files import VariantFiles

_MOST_WHEELS = 20_000  # of one release; an index page may list a hundred thousand files


def variants_on_index(name: WheelName, listed: Sequence[IndexFile], place: str, files: VariantFiles) -> VariantIndex:
    """The variants of the release of ``name`` at ``place``, one of the indexes that ``listed`` is from.

    A document that is missing or cannot be read is Unavailable in the result; nothing is raised.
    """
    here = [file for file in listed if file.index == place]
    wheels = _by_label(name, (file.file_name for file in here))
    document = next((file for file in here if is_variants_file(file.file_name, name)), None)
    if document is None:
        file_name = f"{name.distribution}-{name.version}{VARIANTS_SUFFIX}"
        missing = Unavailable(f"{place} does not list {file_name}")
        return VariantIndex(file_name, place, missing, listed=False, wheels=wheels)
    try:
        metadata, size = files.read(document)
    except (FormatError, SourceError) as error:
        return VariantIndex(document.file_name, place, Unavailable(str(error)), listed=True, wheels=wheels)
    return VariantIndex(document.file_name, place, metadata, listed=True, wheels=wheels, bytes_read=size)


def variants_in_folder(name: WheelName, folder: Path, files: VariantFiles) -> VariantIndex | Unavailable:
    """The variants of the release of ``name`` in a folder; Unavailable without a document, which is optional."""
    documents = sorted(folder.glob(f"*{VARIANTS_SUFFIX}"))
    path = next((each for each in documents if each.is_file() and is_variants_file(each.name, name)), None)
    if path is None:
        return Unavailable(f"{name.distribution}-{name.version}{VARIANTS_SUFFIX} is missing next to the wheel")
    place = folder.absolute().as_uri()
    listed = [IndexFile(each.name, each.absolute().as_uri(), index=place) for each in (path, *folder.glob("*.whl"))]
    return variants_on_index(name, listed, place, files)


def is_variants_file(file_name: str, name: WheelName) -> bool:
    """True for the index-level metadata of the release of ``name``, however name and version are normalised."""
    project, dash, version = file_name.removesuffix(VARIANTS_SUFFIX).rpartition("-")
    return bool(dash) and file_name.endswith(VARIANTS_SUFFIX) and _is_release(project, version, name)


def _is_release(project: str, version: str, name: WheelName) -> bool:
    """Whether name and version, as written, are those of the release of ``name``."""
    same_project = canonicalize_name(project) == canonicalize_name(name.distribution)
    return same_project and version_or_none(version) == name.parsed_version


def _by_label(name: WheelName, file_names: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """The wheels of the release, by label."""
    spellings: dict[tuple[str, ...], bool] = {}  # a page lists a thousand files, of one release only thirty
    found: defaultdict[str, list[str]] = defaultdict(list)
    count = 0
    for file_name in file_names:
        written = tuple(file_name.split("-", 2)[:2])
        if written not in spellings:
            spellings[written] = len(written) == 2 and _is_release(*written, name)
        if not spellings[written]:
            continue
        count += 1
        if count > _MOST_WHEELS:
            break
        if wheel := wheel_name_or_none(file_name):
            found[wheel.variant].append(file_name)
    return {label: tuple(sorted(names)) for label, names in sorted(found.items())}
