"""The GPU code of what is compiled against torch, read from the headers of its fat binaries alone."""

from collections.abc import Collection

from wheel_checks.facts.host.software import ExtensionCode
from wheel_checks.facts.installed.facts import InstalledEnvironment, RecordedFiles
from wheel_checks.facts.installed.gpu import read_installed_gpu_code
from wheel_checks.model import Unavailable

MOST = 64  # libraries of one distribution; those with the most have about twenty


def read_extension_code(inside: InstalledEnvironment, names: Collection[str]) -> tuple[ExtensionCode, ...]:
    """The code of the main library of each of these distributions; nothing of those that have none, or none that can be
    read.
    """
    chosen = [one for one in inside.distributions if one.name in names and not one.shadowed_by]
    paths = [path for one in chosen if isinstance(one.files, RecordedFiles) for path in _libraries(one.files)]
    code = read_installed_gpu_code(inside.environment, chosen, paths) if paths else {}
    found = ((one.name, code[one.folder].verdict) for one in chosen if one.folder in code)
    return tuple(
        ExtensionCode(name, verdict[0], (*verdict[1].sass, *verdict[1].ptx))
        for name, verdict in found
        if verdict is not None and not isinstance(verdict, Unavailable)
    )


def _libraries(files: RecordedFiles) -> list[str]:
    return [path for path in files.owned if path.endswith(".so")][:MOST]
