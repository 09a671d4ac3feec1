"""Which versions to pin: those that are installed, and of torch's companions those that belong to it."""

import re
from collections.abc import Mapping

from wheel_checks.errors import NotFoundError
from wheel_checks.sources.environment import find_environment
from wheelproof.pins.documents.names import normalized

_DISTRIBUTION = re.compile(r"(?P<name>[A-Za-z0-9_.]+)-(?P<version>[^-]+)(?:-py[\d.]+)?\.(?:dist-info|egg-info)")
_LAST_TORCHAUDIO = 11  # of torch 2.x
_RELEASE = re.compile(r"2\.(\d+)\.(\d+)(\+\S+)?")  # a final release of torch 2, with its local version


def versions_to_pin(python: str, variables: Mapping[str, str]) -> dict[str, str]:
    """The version to pin of every installed distribution, and of torchvision and torchaudio where they are missing.

    Raises NotFoundError when there is no environment, or no torch in it.
    """
    found = installed_versions(python, variables)
    if "torch" not in found:
        raise NotFoundError("there is no torch in the environment", hint="name another one: --python PATH")
    return companions_of(found["torch"]) | found


def installed_versions(python: str, variables: Mapping[str, str]) -> dict[str, str]:
    """The version of every distribution in the environment at ``python`` (the active one for ""), by normalised name.

    A version is the one that installers compare, of the metadata: its local part is there when the wheel had one. Only
    file names are read. Raises NotFoundError when there is no environment.
    """
    environment = find_environment(python, variables=variables)
    found: dict[str, str] = {}
    for entry in environment.entries:
        for name in entry.names:
            if match := _DISTRIBUTION.fullmatch(name):
                found.setdefault(normalized(match["name"]), match["version"])
    return found


def companions_of(torch: str) -> dict[str, str]:
    """The torchvision and torchaudio that are released with a torch 2: 0.(x+15).y and 2.x.y, with its local version.

    Empty for a development version, whose companions have their own dates. The relation is that of the table of
    compatible versions in torchvision's README; torchaudio kept to it up to 2.11, the last that vLLM 0.33 pins, with
    torch 2.12 and 2.14.
    """
    match = _RELEASE.fullmatch(torch)
    if match is None:
        return {}
    minor = int(match[1])
    found = {"torchvision": f"0.{minor + 15}.{match[2]}{match[3] or ''}"}
    return found if minor > _LAST_TORCHAUDIO else found | {"torchaudio": torch}
