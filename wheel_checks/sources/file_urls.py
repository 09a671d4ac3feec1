"""file:// URLs (RFC 8089): pip configurations name indexes and folders of wheels by them."""

import mimetypes
from pathlib import Path
from urllib.parse import unquote, urlsplit

from wheel_checks.errors import SourceError
from wheel_checks.sources.http.pages import Page
from wheel_checks.sources.local import LocalFile
from wheel_checks.sources.meter import Meter


def is_file_url(url: str) -> bool:
    """True for a URL of the scheme ``file``."""
    return url[:5].lower() == "file:"


def path_of(url: str) -> Path:
    """The path of a file URL. Raises SourceError when it names another host or no absolute path."""
    try:
        parts = urlsplit(url)
    except ValueError as error:
        raise SourceError(f"{url!r} is not a valid URL") from error
    if parts.netloc not in ("", "localhost") or not parts.path.startswith("/"):
        raise SourceError(f"{url!r} cannot be read", expected="file:///an/absolute/path")
    return Path(unquote(parts.path))


def read_page(url: str, parent: Meter, largest: int) -> Page:
    """The file, or the ``index.html`` of the folder, at a file URL. Raises NotFoundError and SourceError."""
    path = path_of(url)
    path = path / "index.html" if path.is_dir() else path
    meter = Meter(parent)
    file = LocalFile(path)
    try:
        size, _ = file.read_tail(0)
        if size > largest:
            raise SourceError(f"{path} is too large", expected=f"at most {largest} bytes")
        body = file.read(0, size)
    finally:
        file.close()
    meter.add(bytes_read=size)
    content_type = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
    return Page(body, content_type, path.absolute().as_uri(), from_cache=False, cost=meter.cost)
