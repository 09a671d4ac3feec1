"""Source archives for tests: made member by member, and hostile ones."""

from __future__ import annotations

import gzip
import io
import tarfile
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

RUNS_CODE = "raise SystemExit('the code of an archive was executed')\n"


def tar(members: Mapping[str, bytes | str], form: int = tarfile.PAX_FORMAT) -> bytes:
    """A tar file with these members."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=form) as archive:
        for name, content in members.items():
            data = content.encode() if isinstance(content, str) else content
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return stream.getvalue()


@dataclass
class SourceBuilder:
    """A source archive of a release, with a setup.py that must not run.

    ``computed`` are the fields that PKG-INFO declares dynamic; ``files`` are more members, below the first folder.
    """

    name: str
    version: str = "1.0"
    requires: Sequence[str] = ()
    metadata_version: str = "2.4"
    computed: Sequence[str] = ()
    requires_python: str = ""
    files: Mapping[str, str] = field(default_factory=dict)
    suffix: str = ".tar.gz"

    @property
    def file_name(self) -> str:
        """Such as ``demo-1.0.tar.gz``."""
        return f"{self.name.replace('-', '_')}-{self.version}{self.suffix}"

    @property
    def pkg_info(self) -> str:
        """The text of PKG-INFO."""
        rows = [f"Metadata-Version: {self.metadata_version}", f"Name: {self.name}", f"Version: {self.version}"]
        rows += [f"Requires-Python: {self.requires_python}"] if self.requires_python else []
        rows += [f"Dynamic: {name}" for name in self.computed]
        rows += [f"Requires-Dist: {text}" for text in self.requires]
        return "\n".join(rows) + "\n\nA package for tests.\n"

    def build(self) -> bytes:
        """The bytes of the archive."""
        top = self.file_name.removesuffix(self.suffix)
        files = {"PKG-INFO": self.pkg_info, "setup.py": RUNS_CODE, **self.files}
        members = {f"{top}/{name}": text for name, text in files.items()}
        if self.suffix == ".zip":
            stream = io.BytesIO()
            with zipfile.ZipFile(stream, "w") as archive:
                for name, text in members.items():
                    archive.writestr(name, text)
            return stream.getvalue()
        return gzip.compress(tar(members), mtime=0)
