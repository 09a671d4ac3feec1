"""Which distribution a file belongs to, and the files of a traceback that are not those that were installed: RECORD."""

import base64
import hashlib
import re
from pathlib import Path

from packaging.utils import canonicalize_name

from wheel_checks.errors import WheelproofError
from wheel_checks.facts.installed.record import read_record
from wheel_checks.model import Unavailable
from wheel_checks.sources.file_tree import FileTree

_FRAME = re.compile(
    r'File "(?P<site>/[^"\n]{0,4000}?/(?:site|dist)-packages)/(?P<path>[^"\n/]{1,200}(?:/[^"\n]{1,1000})?)"'
)
_MOST = 40  # frames
_MOST_DISTRIBUTIONS = 5_000
_LARGEST = 1 << 22  # bytes of a Python file


def edited_files(trace: str) -> tuple[str, ...]:
    """The files of the traceback whose hash is another than the one in the RECORD of their package."""
    tree, found = FileTree(), []
    digests: dict[tuple[str, str], dict[str, str]] = {}
    for site, path in list(dict.fromkeys(match.group("site", "path") for match in _FRAME.finditer(trace)))[:_MOST]:
        package = path.partition("/")[0].removesuffix(".py")
        known = digests.setdefault((site, package), _recorded(tree, site, package))
        content = tree.read(f"{site}/{path}", _LARGEST)
        if path in known and content is not None and _sha256(content) != known[path]:
            found.append(f"{site}/{path}")
    return tuple(found)


def owner_of(path: str) -> str:
    """The normalized name of the distribution whose RECORD lists a file next to its metadata; "" if none."""
    folder, _, name = path.rpartition("/")
    tree = FileTree()
    for metadata in sorted(Path(folder or "/").glob("*.dist-info"))[:_MOST_DISTRIBUTIONS]:
        try:
            record = read_record(tree, str(metadata))
        except WheelproofError:
            continue
        if not isinstance(record, Unavailable) and any(row.path == name for row in record.rows):
            return canonicalize_name(metadata.name.partition("-")[0])
    return ""


def _recorded(tree: FileTree, site: str, package: str) -> dict[str, str]:
    """SHA-256 by path, of the distribution that has the package's name."""
    folders = sorted(Path(site).glob(f"{_escaped(package)}-*.dist-info"))
    try:
        record = read_record(tree, str(folders[0])) if len(folders) == 1 else Unavailable("")
    except WheelproofError:
        return {}
    if isinstance(record, Unavailable):
        return {}
    return {row.path: row.digest for row in record.rows if row.algorithm == "sha256"}


def _escaped(name: str) -> str:
    return re.sub(r"([\[\]*?])", r"[\1]", name)


def _sha256(content: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
