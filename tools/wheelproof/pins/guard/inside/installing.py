"""Puts the files of a guard into an environment, keeps them right when pip or uv is upgraded, and removes them."""

from __future__ import annotations

import base64
import csv
import hashlib
import json
import os
import re
import shutil
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from . import layout, pip_conf, receipt
from .held import Distribution, Held, find_held, installed, sites_of, version_of
from .layout import Place
from .receipt import Entry, Receipt
from .tripwire import look, status_of

_PINS_OF_UV = "constraint-dependencies = ["  # the first line of the user's uv.toml, where the guard writes it
_PIPS = re.compile(r"pip(?:3(?:\.\d+)?)?")


class InstallError(Exception):
    """Why the guard cannot be installed or removed, in a sentence."""


@dataclass(frozen=True)
class Step:
    """One file to write: its content, mode and role; ``why`` is for the plan that the user sees."""

    path: str
    data: bytes
    role: str
    why: str
    mode: int = 0o644
    record: str = ""


@dataclass(frozen=True)
class Plan:
    """The files to write, and the held packages. ``notes`` are sentences about limits of the guard."""

    place: Place
    held: Held
    settings: Mapping[str, Any]
    steps: Sequence[Step]
    notes: Sequence[str] = field(default_factory=tuple)


def plan(place: Place, settings: Mapping[str, Any], variables: Mapping[str, str], user_file: str = "") -> Plan:
    """The plan of an installation. ``settings`` name families, extensions, the folders on sys.path and a uv.

    ``user_file`` is the user's uv.toml, when it is to be written, too. Raises InstallError if that cannot work.
    """
    distributions = installed(sites_of(settings))
    held = find_held(distributions, settings["families"])
    if not held.pinned:
        names = ", ".join(family["name"] for family in settings["families"])
        raise InstallError(f"none of {names} is installed in {place.prefix}")
    if not os.access(place.prefix, os.W_OK):
        raise InstallError(f"{place.prefix} cannot be written")
    old = receipt.read(place.file(layout.RECEIPT))
    settings = {**settings, "pip_constraints": _other_constraints(place, old, variables)}
    pip_notes, pip_steps = _pip_conf(place, old, settings)
    steps = [*_texts(place, held, settings), *_program(place), *pip_steps, *_fronts(place, distributions, settings)]
    if user_file:
        steps.append(_user_step(place, user_file, old, held))
    return Plan(place, held, settings, steps, [*pip_notes, *_damaged_before(held, sites_of(settings))])


def _damaged_before(held: Held, sites: Sequence[str]) -> list[str]:
    """Held packages that already differ from RECORD, by file sizes: the guard holds them as they are."""
    notes = [f"{seen.hidden}: remove it first, or it stays" for seen in look(held, sites).values() if seen.hidden]
    for name, one in sorted(held.pinned.items()):
        for row in _rows(one.record):
            size = row[2] if len(row) > 2 else ""
            status = status_of(os.path.normpath(os.path.join(one.site, row[0])))
            if size.isdigit() and (status is None or status[0] != int(size)):
                what = "is missing" if status is None else "is not the installed file"
                notes.append(f"{row[0]} of {name} {one.version} {what}: fix that first, or it is held as it is")
                break
    return notes


def apply(plan: Plan) -> Receipt:
    """Write the planned files; replaced files are kept. Raises InstallError after undoing everything."""
    place = plan.place
    old = receipt.read(place.file(layout.RECEIPT))
    made = list(old.made) if old else []
    packages = {name: version_of(one) for name, one in plan.held.pinned.items()}
    entries = {entry.path: entry for entry in old.files} if old else {}
    try:
        for folder in (os.path.dirname(place.share), place.share, place.file(layout.ORIGINALS)):
            if not os.path.isdir(folder):
                os.makedirs(folder, exist_ok=True)
                made.append(folder)
        for step in plan.steps:
            entries.update((entry.path, entry) for entry in _put(place, step, entries))
            _save(place, packages, entries, made)
    except OSError as error:
        raise InstallError(f"{error.filename or place.share} cannot be written: {error.strerror}") from error
    remember(place, plan.held, sites_of(plan.settings))
    return _save(place, packages, entries, made)


def remember(place: Place, held: Held, sites: Sequence[str]) -> None:
    """Record the state of held packages, for the tripwire and the next check."""
    seen = look(held, sites)
    state = {
        "packages": {
            name: {
                "version": one.version,
                "folder": one.folder,
                "site": one.site,
                "record": one.record,
                "hidden": one.hidden,
                "files": one.files,
            }
            for name, one in seen.items()
        },
        "needed": {name: version_of(one) for name, one in held.needed.items()},
    }
    data = json.dumps(state, sort_keys=True).encode() + b"\n"
    if receipt.digest(data) != receipt.digest_of(place.file(layout.STATE)):
        receipt.replace(place.file(layout.STATE), data, 0o644)


def refresh(place: Place, *, accept: bool) -> list[str]:
    """Make the front programs right again after a command; sentences about that.

    With ``accept`` the pins become the installed versions. Without it they stay, and a broken package is not pinned.
    """
    settings = receipt.read_json(place.file(layout.SETTINGS))
    old = receipt.read(place.file(layout.RECEIPT))
    if old is None or not settings:
        return []
    distributions = installed(sites_of(settings))
    held = find_held(distributions, settings["families"])
    entries = {entry.path: entry for entry in old.files}
    messages = []
    for path, entry in list(entries.items()):
        if entry.role in ("front", "record") and not os.path.lexists(path):  # its package was removed
            del entries[path]
            _forget(entry.kept)
    texts = _texts(place, held, settings) if accept else []
    for step in [*texts, *_fronts(place, distributions, settings)]:
        known = entries.get(step.path)
        if known is None or receipt.digest_of(step.path) != receipt.digest(step.data):
            entries.update((entry.path, entry) for entry in _put(place, step, entries))
            if step.role == "front":
                messages.append(f"put the front program {step.path} in place of the new {os.path.basename(step.path)}")
    if accept:
        remember(place, held, sites_of(settings))
        _save(place, {name: version_of(one) for name, one in held.pinned.items()}, entries, old.made)
    else:
        _save(place, old.packages, entries, old.made)
    return messages


def uninstall(place: Place) -> list[str]:
    """Remove every file of the guard and restore the files it replaced. Returns changed files, which stay."""
    found = receipt.read(place.file(layout.RECEIPT))
    if found is None:
        raise InstallError(f"there is no guard in {place.prefix}")
    left = []
    for entry in found.files:
        if not os.path.lexists(entry.path):
            continue
        if entry.role in ("front", "record", "pip.conf", "uv.toml") and receipt.digest_of(entry.path) != entry.sha256:
            if not _take_out(place, entry):
                left.append(entry.path)
            continue
        if entry.kept:
            os.replace(entry.kept, entry.path)
        else:
            os.unlink(entry.path)
    _remove_share(place, [entry.kept for entry in found.files if entry.path in left and entry.kept])
    for folder in reversed(found.made):
        if os.path.isdir(folder) and not os.listdir(folder):
            os.rmdir(folder)
    return left


def _remove_share(place: Place, wanted: Sequence[str]) -> None:
    """Remove the folder of the guard, except the originals of files that stay."""
    if not wanted:
        shutil.rmtree(place.share)
        return
    for name in os.listdir(place.share):
        path = place.file(name)
        if name == layout.ORIGINALS:
            for folder, _, files in os.walk(path):
                for file in files:
                    if os.path.join(folder, file) not in wanted:
                        os.unlink(os.path.join(folder, file))
        elif os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path)
        else:
            os.unlink(path)


def _take_out(place: Place, entry: Entry) -> bool:
    """Take our lines out of a file that was changed since; whether none of our lines is left in it."""
    if entry.role == "front":
        return not layout.is_front(entry.path)  # pip or uv was installed again, and put its own there
    if entry.role == "record":
        return True  # of a later install, whose rows are its own
    if entry.role not in ("pip.conf", "uv.toml"):
        return False
    kept = _without_guard(place, entry.role, pip_conf.read_text(entry.path))
    receipt.replace(entry.path, kept.encode("utf-8", "surrogateescape"), _mode(entry.path))
    return True


def _without_guard(place: Place, role: str, text: str) -> str:
    """The text of a configuration file without the lines of the guard."""
    if role == "uv.toml":
        first, _, rest = text.partition("\n")
        return rest if first.startswith(_PINS_OF_UV) else text
    others = [word for word in pip_conf.value(text, "install", "constraint").split() if layout.FOLDER not in word]
    if others:
        text = pip_conf.with_value(text, "install", "constraint", " ".join(others))
    text = "".join(line for line in text.splitlines(keepends=True) if place.share not in line)
    return re.sub(r"^\[(?:global|install)\]\r?\n(?=\[|\Z)", "", text, flags=re.MULTILINE)  # made for our lines


def _users_text(place: Place, role: str, path: str, known: Entry | None) -> str:
    """The user's text of a configuration file: the kept one, or the present one if it was edited."""
    if known is not None and receipt.digest_of(path) == known.sha256:
        return pip_conf.read_text(_as_it_stood(known.kept, path)) if known.kept else ""
    text = pip_conf.read_text(path)
    return text if known is None else _without_guard(place, role, text)


def _as_it_stood(kept: str, path: str) -> str:
    """The path from which a kept file is read: a relative link only works from its former place."""
    return os.path.join(os.path.dirname(path), os.readlink(kept)) if os.path.islink(kept) else kept


# The planned files.


def _texts(place: Place, held: Held, settings: Mapping[str, Any]) -> list[Step]:
    pins = "".join(f"{name}=={version_of(one)}\n" for name, one in sorted(held.pinned.items()))
    never = sorted({name for family in settings["families"] for name in family.get("forbidden", ())} - set(held.pinned))
    forbidden = "".join(f"{name}<0\n" for name in never)
    constraints = f"# What is installed, local versions included: it is kept, or the install fails.\n{pins}"
    constraints += f"# These provide modules of the same name.\n{forbidden}" if forbidden else ""
    needed = "".join(f"{name}=={version_of(one)}\n" for name, one in sorted(held.needed.items()))
    document = (json.dumps(dict(settings), indent=1, sort_keys=True) + "\n").encode()
    why = f"{len(held.pinned)} held packages, with their exact versions"
    return [
        Step(place.file(layout.CONSTRAINTS), constraints.encode(), "text", why),
        Step(place.file(layout.KEEP), needed.encode(), "text", "these, and their dependencies"),
        Step(place.file(layout.SETTINGS), document, "text", "the packages to hold"),
    ]


def _program(place: Place) -> list[Step]:
    """The program itself: this package, under the name that it has in an environment."""
    main = Step(
        place.file(layout.PROGRAM, layout.MAIN), layout.MAIN_TEXT.encode(), "program", "the program of the guard"
    )
    here = Path(__file__).parent
    modules = [
        Step(place.file(layout.PROGRAM, layout.PACKAGE, path.name), path.read_bytes(), "program", main.why)
        for path in sorted(here.glob("*.py"))
    ]
    return [main, *modules]


def _pip_conf(place: Place, old: Receipt | None, settings: Mapping[str, Any]) -> tuple[list[str], list[Step]]:
    """The configuration of pip for the environment: constraints, and the hook that ``python -m pip`` runs through."""
    path = place.pip_conf
    text = _users_text(place, "pip.conf", path, old.find(path) if old else None)
    hook, notes = place.file(layout.HOOK), []
    constraints = [*settings["pip_constraints"], _as_word(place.file(layout.CONSTRAINTS))]
    text = pip_conf.with_value(text, "install", "constraint", " ".join(constraints))
    steps = []
    if pip_conf.value(text, "global", "python"):
        notes.append(f"{path} already names a Python for pip: python -m pip is constrained, but not watched")
    else:
        text = pip_conf.with_value(text, "global", "python", hook)
        program = layout.front_text(layout.HOOK, place.python, place.file(layout.PROGRAM))
        steps.append(Step(hook, program.encode(), "hook", "what python -m pip runs through", 0o755))
    data = text.encode("utf-8", "surrogateescape")
    return notes, [*steps, Step(path, data, "pip.conf", "pip's configuration of this environment", _mode(path))]


def _other_constraints(place: Place, old: Receipt | None, variables: Mapping[str, str]) -> list[str]:
    """The constraints that pip's files name already, which one in the environment's file would replace."""
    if old is not None:
        return list(receipt.read_json(place.file(layout.SETTINGS)).get("pip_constraints", []))
    plain = {name: text for name, text in variables.items() if not name.startswith("PIP_")}
    return pip_conf.configured(place.prefix, plain, "constraint").split()


def _fronts(place: Place, distributions: Mapping[str, Distribution], settings: Mapping[str, Any]) -> list[Step]:
    """Front programs for the pip and uv of the environment, and for a uv elsewhere."""
    present: set[str] = set()
    for folder in {os.path.join(place.prefix, "bin"), place.bin}:
        if os.path.isdir(folder):
            present.update(os.listdir(folder))
    names = [name for name in sorted(present) if _PIPS.fullmatch(name)]
    if "uv" in present or settings.get("uv"):
        names.append("uv")
    steps = []
    for name in names:
        path = os.path.join(place.bin, name)
        record = _record_with(path, distributions.get("uv" if name == "uv" else "pip"))
        text = layout.front_text(name, place.python, place.file(layout.PROGRAM))
        steps.append(Step(path, text.encode(), "front", f"front program for {name}", 0o755, record))
    return steps


def _record_with(path: str, owner: Distribution | None) -> str:
    """The RECORD of ``owner``, if it lists ``path``."""
    if owner is None or not os.path.isfile(owner.record):
        return ""
    row = os.path.relpath(path, owner.site)
    return owner.record if any(found[:1] == [row] for found in _rows(owner.record)) else ""


def _user_step(place: Place, path: str, old: Receipt | None, held: Held) -> Step:
    text = _users_text(place, "uv.toml", path, old.find(path) if old else None)
    if re.search(r"^constraint-dependencies\s*=", text, re.MULTILINE):
        raise InstallError(f"{path} has constraint-dependencies already; add the constraints of the guard by hand")
    pins = ", ".join(f'"{name}=={version_of(one)}"' for name, one in sorted(held.pinned.items()))
    data = f"{_PINS_OF_UV}{pins}]\n{text}".encode("utf-8", "surrogateescape")
    return Step(path, data, "uv.toml", "the user's configuration of uv: it holds in every environment of the user")


def _as_word(path: str) -> str:
    """A path as pip's configuration takes it, where white space separates values."""
    return Path(path).as_uri() if any(char.isspace() for char in path) else path


# Writing


def _put(place: Place, step: Step, entries: Mapping[str, Entry]) -> list[Entry]:
    """Write the file of a step; its entry, and the entry of the RECORD whose row changed."""
    known, kept = entries.get(step.path), ""
    if known is not None and receipt.digest_of(step.path) == known.sha256:
        kept = known.kept  # ours: the original is kept already
    elif os.path.lexists(step.path) and not (step.role == "front" and layout.is_front(step.path)):
        if known is not None:
            _take_out(place, known)  # the user edited it: the kept text must not name the guard
            _forget(known.kept)
        kept = layout.kept(place, step.path)
        _keep(step.path, kept)
    os.makedirs(os.path.dirname(step.path), exist_ok=True)
    receipt.replace(step.path, step.data, step.mode)
    found = [Entry(step.path, step.role, receipt.digest(step.data), kept, step.record)]
    if step.record:
        found.append(_with_row(place, step, entries))
    return found


def _with_row(place: Place, step: Step, entries: Mapping[str, Entry]) -> Entry:
    """Give the row of RECORD the digest and size of the front program, in the bytes of that row alone."""
    path, known = step.record, entries.get(step.record)
    if known is not None and receipt.digest_of(path) == known.sha256:
        kept = known.kept
    else:
        kept = layout.kept(place, path)
        _keep(path, kept)
    row = os.path.relpath(step.path, os.path.dirname(os.path.dirname(path)))
    hashed = base64.urlsafe_b64encode(hashlib.sha256(step.data).digest()).rstrip(b"=").decode()
    with open(path, "rb") as file:
        data = file.read()
    pattern = rb"^" + re.escape(row.encode()) + rb",[^\r\n]*"
    new = f"{row},sha256={hashed},{len(step.data)}".encode()
    data = re.sub(pattern, lambda _: new, data, count=1, flags=re.MULTILINE)
    receipt.replace(path, data, _mode(path))
    return Entry(path, "record", receipt.digest(data), kept)


def _save(place: Place, packages: Mapping[str, str], entries: Mapping[str, Entry], made: Sequence[str]) -> Receipt:
    found = Receipt(place.prefix, place.python, dict(packages), list(entries.values()), list(made))
    receipt.write(place.file(layout.RECEIPT), found)
    return found


def _keep(path: str, kept: str) -> None:
    """Keep a file with its mode and times: as a hard link where that goes, else as a copy."""
    os.makedirs(os.path.dirname(kept), exist_ok=True)
    if os.path.lexists(kept):
        os.unlink(kept)
    try:
        os.link(path, kept, follow_symlinks=False)
    except OSError:
        shutil.copy2(path, kept, follow_symlinks=False)


def _forget(kept: str) -> None:
    if kept and os.path.lexists(kept):
        os.unlink(kept)


def _mode(path: str) -> int:
    try:
        return stat.S_IMODE(os.stat(path).st_mode)
    except OSError:
        return 0o644


def _rows(path: str) -> list[list[str]]:
    try:
        with open(path, encoding="utf-8", errors="surrogateescape", newline="") as file:
            return [row for row in csv.reader(file) if row]
    except (OSError, csv.Error):
        return []
