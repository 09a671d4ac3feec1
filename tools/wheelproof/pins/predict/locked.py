"""What an install of a lock file does: it names the version of every package, so nothing has to be resolved.

poetry and pdm install what differs from the lock, and compare whole versions: 2.7.0+cu128 is another release than
2.7.0. They uninstall what the lock does not name only when they are asked to (``poetry sync``, ``pdm sync --clean``).
"""

from pathlib import Path

from packaging.utils import canonicalize_name

from wheel_checks.errors import SourceError, UsageError
from wheel_checks.formats.lock.model import PROJECT
from wheel_checks.formats.lock.reading import read_lock
from wheel_checks.parsing import version_or_none
from wheel_checks.sources.requirement_files import read_requirements_file
from wheel_checks.targets.extras_and_groups import ExtrasAndGroups
from wheel_checks.targets.locked import select, validated
from wheelproof.pins.installers import UV, DryRun
from wheelproof.pins.predict.model import PredictRequest
from wheelproof.pins.predict.plan import Planned
from wheelproof.pins.predict.step import Step


def plan_lock(step: Step, request: PredictRequest) -> Planned:
    """What the install of a lock changes. Raises UsageError for one that cannot be read, SourceError for a lock that is
    not for the target.
    """
    path = Path(step.project)
    if not path.is_file():
        raise UsageError(f"there is no {path}", expected="the lock file of the project")
    lock = read_lock(read_requirements_file(path), path)
    selected = select(lock, request.place.target, validated(lock, ExtrasAndGroups(), path.name))
    if selected.outside:
        raise SourceError(f"{path.name} is not for {request.place.target.label}: {selected.outside}")
    seen = request.place.seen_by(UV if UV in step.installers else "")
    installed, removed = {}, {}
    named = set()
    for package in selected.packages:
        name = str(canonicalize_name(package.name))
        named.add(name)
        if package.source == PROJECT:
            continue
        there = seen.get(name)
        if there is not None and package.version and version_or_none(there.version) == version_or_none(package.version):
            continue
        installed[name] = package.version
        if there is not None:
            removed[name] = there.version
    if step.is_exact:
        removed |= {name: copy.version for name, copy in seen.items() if name not in named and name not in _KEPT}
    return Planned(DryRun(installed, removed, {}), tuple(selected.open))


_KEPT = {"pip", "setuptools", "wheel", "poetry", "pdm"}  # which neither uninstalls
