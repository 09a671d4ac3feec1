"""Where pip, uv and conda are configured to take packages from, each setting with its file or variable."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from wheel_checks.errors import WheelproofError
from wheel_checks.facts.host.software import IndexSetting
from wheel_checks.formats.secrets import redact
from wheel_checks.model import Unavailable
from wheel_checks.sources.installer_config import MERGE, configured_indexes
from wheel_checks.sources.regular_file import read_start

_CHOICES = ("UV_TORCH_BACKEND", "UV_INDEX_STRATEGY", "PIP_CONSTRAINT", "UV_CONSTRAINT", "UV_OVERRIDE", "CONDA_CHANNELS")
_LARGEST_FILE = 1 << 20  # bytes
_BACKEND = re.compile(r"^\s*torch-backend\s*=\s*[\"']([\w.]+)[\"']", re.MULTILINE)


def read_indexes(environ: Mapping[str, str], folder: Path) -> tuple[IndexSetting, ...] | Unavailable:
    """What an installer that is started in ``folder`` would use; the default index of pip is not a setting.

    Nothing is contacted. An index that only files of a tree name is a "declared-index": a cause, and no advice.
    """
    try:
        config = configured_indexes(environ, folder)
    except WheelproofError as error:
        return Unavailable(error.what, error.hint)
    main = config.indexes[0 if config.strategy == MERGE else -1] if config.indexes else ""
    found = [_setting(config.origin[url], "index" if url == main else "extra-index", url) for url in config.indexes]
    found += [_setting(config.origin[url], "find-links", url) for url in config.find_links]
    found += [_setting(address.where, "declared-index", address.url) for address in config.refused]
    named = [setting for setting in found if not setting.source.startswith("the default")]
    if len(config.indexes) > 1:
        named.append(IndexSetting("pip" if config.strategy == MERGE else "uv", "strategy", config.strategy, ""))
    return (*named, *_choices(environ), *_backends(folder))


def _setting(origin: str, name: str, url: str) -> IndexSetting:
    tool = "uv" if origin.startswith("UV_") or "uv.toml" in origin or "pyproject.toml" in origin else "pip"
    return IndexSetting(tool, name, redact(url), origin)


def _choices(environ: Mapping[str, str]) -> Iterator[IndexSetting]:
    for name in _CHOICES:
        if environ.get(name):
            tool = name.partition("_")[0].lower()
            yield IndexSetting(tool, name.partition("_")[2].lower().replace("_", "-"), environ[name], name)


def _backends(folder: Path) -> Iterator[IndexSetting]:
    """``torch-backend`` in the nearest uv.toml or pyproject.toml."""
    for parent in (folder, *folder.parents):
        for name in ("uv.toml", "pyproject.toml"):
            path = parent / name
            try:
                text = read_start(path, _LARGEST_FILE).decode(errors="replace")
            except OSError:
                continue
            for match in _BACKEND.finditer(text):
                line = text.count("\n", 0, match.start(1)) + 1
                yield IndexSetting("uv", "torch-backend", match[1], f"{path}:{line}")
            return
