"""Installs the guard into an environment: describes it, and runs the guard's own program from here."""

import contextlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from wheel_checks.errors import NotFoundError, SourceError, UsageError
from wheel_checks.facts.pins.families import TORCH, as_pattern, families_of, family
from wheel_checks.process import StartError, run
from wheel_checks.sources.environment import Environment, find_environment
from wheelproof.pins.guard.inside import installing, layout, receipt, uv_front
from wheelproof.pins.guard.inside.guarded import load
from wheelproof.pins.guard.inside.held import find_held, installed, sites_of
from wheelproof.pins.guard.inside.layout import Place
from wheelproof.pins.guard.inside.main import ASK

_TIMEOUT = 60.0  # seconds that a Python has to start


def families_held(
    packages: Sequence[str], extensions: Sequence[str], before: Sequence[dict[str, Any]] = ()
) -> dict[str, Any]:
    """The settings of a guard: families as its program reads them, and what is built without isolation.

    ``packages`` are names of families, of packages, or globs; none means torch. What a guard held ``before`` is held
    further.
    """
    asked = [_family(name) for name in packages or ([] if before else [TORCH])]
    names = {one["name"] for one in asked}
    kept = [one for one in before if one.get("name") not in names]
    return {"families": [*asked, *kept], "extensions": list(extensions)}


def families_before(place: Place) -> list[dict[str, Any]]:
    """The families that a guard which is installed holds already."""
    found = receipt.read_json(place.file(layout.SETTINGS)).get("families")
    known = [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []
    return [_family(name) for one in known if isinstance(name := one.get("name"), str)]


def held_in(environment: Environment, packages: Sequence[str]) -> list[str]:
    """The names of what a guard would hold in an environment, the anchors of its families first."""
    families = families_held(packages, ())["families"]
    held = find_held(installed([entry.path for entry in environment.entries]), families).pinned
    anchors = [name for one in families for name in one["anchors"] if name in held]
    return list(dict.fromkeys((*anchors, *held)))


def _family(name: str) -> dict[str, Any]:
    pattern = as_pattern(name)
    try:
        found = family(pattern)
    except UsageError:
        return {
            "name": pattern,
            "anchors": [pattern],
            "companions": [],
            "closure": list(_all_closures()),
            "forbidden": [],
        }
    anchors = [found.anchor, *found.alternatives] if found.anchor else [*found.core, *found.wide]
    forbidden = [other for other in found.alternatives if not set(other) & set("*?[")]
    return {
        "name": found.name,
        "anchors": anchors,
        "companions": list(found.companions),
        "closure": list(found.closure),
        "forbidden": forbidden,
    }


def _all_closures() -> Iterator[str]:
    """The libraries that any family loads: what an unknown package may need, too."""
    yield from dict.fromkeys((*family("nvidia").core, *family("nvidia").wide, *family(TORCH).closure))


def place_of(python: str, variables: Mapping[str, str]) -> tuple[Place, dict[str, Any]]:
    """The environment at ``python`` (the active one for ""), and what its Python says of where it imports from.

    Raises NotFoundError when no environment is found, SourceError when its Python does not start.
    """
    environment = find_environment(python, variables=variables)
    if not environment.interpreter:
        raise NotFoundError(
            f"{environment.path} has no interpreter", expected="an environment whose Python can be started"
        )
    try:
        ended = run([environment.interpreter, "-E", "-c", ASK], deadline=_TIMEOUT, cwd="/")
    except StartError as error:
        raise SourceError(f"{environment.interpreter} cannot be started: {error}") from error
    try:
        found: dict[str, Any] = json.loads(ended.output.decode().splitlines()[-1])
        prefix = found.pop("prefix")
    except (ValueError, IndexError, KeyError):
        said = ended.errors.decode(errors="replace").strip().splitlines()
        raise SourceError(f"{environment.interpreter} does not start: {said[-1] if said else ended.status}") from None
    return Place(prefix, environment.interpreter), found


def make_plan(
    place: Place, found: Mapping[str, Any], settings: Mapping[str, Any], variables: Mapping[str, str], *, user: bool
) -> installing.Plan:
    """What installing would write. Raises SourceError where that cannot work, NotFoundError for no torch."""
    uv = uv_front.find_uv(load(place.prefix), variables)
    home = variables.get("XDG_CONFIG_HOME") or f"{variables.get('HOME', '')}/.config"
    user_file = str(Path(home) / "uv" / "uv.toml") if user else ""
    there = installed(sites_of(found))
    anchors = [name for one in settings["families"] for name in one["anchors"]]
    if anchors == [TORCH] and TORCH not in there:
        others = [one.name for one in families_of(there)]
        hint = f"--package {others[0]}" if others else "name another environment: --python PATH"
        raise NotFoundError(f"there is no torch in {place.prefix}", hint=hint)
    with _as_errors():
        return installing.plan(place, {**settings, **found, "uv": uv}, variables, user_file)


def install(plan: installing.Plan) -> None:
    """Write what is planned. Raises SourceError."""
    with _as_errors():
        installing.apply(plan)


def uninstall(place: Place) -> list[str]:
    """Remove the guard; return the files that were changed since and stay. Raises SourceError, also without a guard."""
    with _as_errors():
        return installing.uninstall(place)


def describe_plan(plan: installing.Plan) -> str:
    """The plan, for people."""
    held = [f"  {name} {one.version}" for name, one in sorted(plan.held.pinned.items())]
    program = sum(step.role == "program" for step in plan.steps)
    shown = [step for step in plan.steps if step.role != "program"]
    width = max(len(step.path) for step in shown)
    lines = [f"  {step.path:{width}}  {_verb(step.path)}: {step.why}" for step in shown]
    lines.append(f"  {plan.place.file(layout.PROGRAM) + '/':{width}}  new: the program of the guard, {program} files")
    changed = [
        f"  {path:{width}}  changed: the rows of the front programs"
        for path in sorted({s.record for s in shown} - {""})
    ]
    notes = [f"note: {note}" for note in plan.notes]
    return "\n".join(
        [f"The guard of {plan.place.prefix} will hold", *held, "by these files:", *lines, *changed, *notes, ""]
    )


def describe_installed(place: Place) -> str:
    """The files of an installed guard, for people. Raises SourceError when no guard is installed."""
    found = receipt.read(place.file(layout.RECEIPT))
    if found is None:
        raise SourceError(f"there is no guard in {place.prefix}", hint="name another environment: --python PATH")
    shown = [entry for entry in found.files if entry.role != "program"]
    lines = [f"  {entry.path}  {'is restored' if entry.kept else 'is removed'}" for entry in shown]
    return "\n".join([f"The guard of {place.prefix}:", *lines, f"  {place.share}/  is removed", ""])


def _verb(path: str) -> str:
    if layout.is_front(path):
        return "again"
    return "replaced, and kept" if os.path.lexists(path) else "new"


@contextlib.contextmanager
def _as_errors() -> Iterator[None]:
    try:
        yield
    except installing.InstallError as error:
        raise SourceError(str(error)) from error
    except OSError as error:
        raise SourceError(f"{error.filename}: {error.strerror}") from error
