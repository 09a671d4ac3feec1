"""The names of files on an index: wheels, source archives, and what a release says of its variants."""

import re

from packaging.utils import canonicalize_name

WHEEL_SUFFIX = ".whl"
VARIANTS_SUFFIX = "-variants.json"  # index-level metadata of variant wheels (PEP 825)
SDIST_SUFFIXES = (".tar.gz", ".zip", ".tar.bz2", ".tar.xz", ".tgz", ".tar")


def sdist_version(file_name: str, project: str) -> str | None:
    """The text after ``project-`` in the name of a source archive, None for any other file.

    Names that predate PEP 625 may hold dashes in both parts, so the project says where its name ends.
    """
    suffix = next((suffix for suffix in SDIST_SUFFIXES if file_name.endswith(suffix)), None)
    if suffix is None:
        return None
    stem, name = file_name.removesuffix(suffix), canonicalize_name(project)
    for dash in re.finditer("-", stem):
        if canonicalize_name(stem[: dash.start()]) == name:
            return stem[dash.end() :]
    return None


def is_file_of(file_name: str, project: str) -> bool:
    """True when ``file_name`` is a wheel or a source archive of ``project``, whose name need not be normalised."""
    if file_name.endswith(WHEEL_SUFFIX):
        return canonicalize_name(file_name.partition("-")[0]) == canonicalize_name(project)
    return sdist_version(file_name, project) is not None


def is_variants_file_of(file_name: str, project: str) -> bool:
    """True for ``{project}-{version}-variants.json``; neither part has a dash when it is normalised for a file name."""
    stem = file_name.removesuffix(VARIANTS_SUFFIX)
    return stem != file_name and canonicalize_name(stem.rpartition("-")[0]) == canonicalize_name(project)
