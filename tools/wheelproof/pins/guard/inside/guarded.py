"""Run pip or uv under the tripwire: held packages are inspected before and after, and restored if broken."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from . import layout, receipt
from .held import Distribution, every, find_held, installed, sites_of
from .installing import refresh
from .layout import Place
from .tripwire import Damage, Seen, Stash, compare, look, remove_hiding

BROKEN = 1  # exit status of a command that broke a held package, or was refused because it would


@dataclass(frozen=True)
class Guard:
    """The guard of an environment, as its files say."""

    place: Place
    settings: Mapping[str, Any]
    packages: Mapping[str, str]

    @property
    def constraints(self) -> str:
        """The file of constraints."""
        return self.place.file(layout.CONSTRAINTS)

    @property
    def sites(self) -> list[str]:
        """The folders from which the environment imports, for this user."""
        return sites_of(self.settings)

    @property
    def names(self) -> list[str]:
        """The names of held packages, in order."""
        return sorted(self.packages)

    @property
    def title(self) -> str:
        """The held packages, for people: the anchors with their versions, and how many more."""
        anchors = [name for one in self.settings["families"] for name in one["anchors"] if name in self.packages]
        shown = [f"{name} {self.packages[name]}" for name in anchors[:2]] or [f"{len(self.packages)} packages"]
        more = len(self.packages) - len(anchors[:2])
        return ", ".join(shown) + (f" and {more} more" if anchors and more else "")

    @property
    def accept(self) -> str:
        """The command that makes the guard accept the installed versions."""
        program = self.place.file(layout.PROGRAM)
        return shlex.join([self.place.python, "-I", "-S", "-B", program, "accept"])


def load(prefix: str) -> Guard | None:
    """The guard of the environment at ``prefix``, None when it has none."""
    share = layout.share_of(prefix)
    found = receipt.read(os.path.join(share, layout.RECEIPT))
    settings = receipt.read_json(os.path.join(share, layout.SETTINGS))
    if found is None or not settings or os.path.realpath(found.prefix) != os.path.realpath(prefix):
        return None
    return Guard(Place(found.prefix, found.python), settings, found.packages)


def say(text: str) -> None:
    """One line on standard error."""
    sys.stderr.write(f"torch-guard: {text}\n")
    sys.stderr.flush()


def run(command: Sequence[str], variables: Mapping[str, str]) -> int:
    """Run a command to its end, an interruption included: it is of the same terminal, and is interrupted itself."""
    kept = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with subprocess.Popen(command, env=variables, preexec_fn=_interruptible) as child:  # noqa: PLW1509  # no threads
            old = signal.signal(signal.SIGTERM, lambda *_: child.terminate())
            try:
                status = child.wait()
            finally:
                signal.signal(signal.SIGTERM, old)
    except OSError as error:
        say(f"{command[0]} cannot be started: {error.strerror}")
        return 127
    finally:
        signal.signal(signal.SIGINT, kept)
    return 128 - status if status < 0 else status


def _interruptible() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def watched(guard: Guard, command: Sequence[str], variables: Mapping[str, str], shown: str) -> int:
    """Run ``command`` under the tripwire; ``shown`` is as typed. Its status, or 1 if it broke a held package."""
    share = guard.place.share
    if variables.get(layout.INSIDE) == share:  # the command of a guarded one, which looks after it
        return run(command, variables)
    try:
        with _locked(guard.place.file("lock")) as may_write:
            damages = compare(known(guard), needed_of(guard), guard.sites)
            if damages:
                say(f"nothing was done, as held packages are already damaged: {damages[0].what}")
                say(f"to put it back: {put_back_command(guard, damages)}")
                say(f"to hold what is installed now: {guard.accept}")
                return BROKEN
            return _run_and_compare(guard, command, variables, shown, may_write=may_write)
    except OSError as error:
        say(f"{error.filename or share} cannot be used ({error.strerror})")
        return BROKEN


def _run_and_compare(
    guard: Guard, command: Sequence[str], variables: Mapping[str, str], shown: str, *, may_write: bool
) -> int:
    sites = guard.sites
    held = find_held(installed(sites), guard.settings["families"])
    before, needed = look(held, sites), dict(held.needed)
    there = {one.folder for one in every(sites)}
    stash = Stash(guard.place.file(f"stash-{os.getpid()}"))
    kept = may_write and stash.fill(needed.values())
    try:
        status = run(command, {**variables, layout.INSIDE: guard.place.share})
        versions = {name: one.version for name, one in needed.items()}
        damages = compare(before, versions, sites)
        if damages:
            say(f"`{shown}` damaged held packages: {'; '.join(damage.what for damage in damages[:5])}")
            remove_hiding(before, there, sites)
            damages = _repair(guard, damages, before, needed, stash if kept else None)
            status = status or BROKEN
        for line in refresh(guard.place, accept=not damages) if may_write else ():
            say(line)
    finally:
        stash.remove()
    return status


def _repair(
    guard: Guard,
    damages: Sequence[Damage],
    before: Mapping[str, Seen],
    needed: Mapping[str, Distribution],
    stash: Stash | None,
) -> list[Damage]:
    """Restore damaged packages from the links, else from the cache, and report it; return the remaining damage."""
    sites = guard.sites
    versions = {name: one.version for name, one in needed.items()}
    if stash is not None:
        with contextlib.suppress(OSError):
            stash.put_back(before, needed, sites)
    elif guard.settings.get("uv"):
        pins = [f"{damage.name}=={versions.get(damage.name, '')}" for damage in damages]
        offline = ["pip", "install", "--quiet", "--offline", "--no-deps", "--reinstall", "--python", guard.place.python]
        with contextlib.suppress(OSError):
            subprocess.run([guard.settings["uv"], *offline, *pins], check=False, stderr=subprocess.DEVNULL)
    left = compare(before, versions, sites)
    back = sorted({damage.name for damage in damages} - {damage.name for damage in left})
    if back:
        say(f"restored: {', '.join(back)}")
    if left:
        names = ", ".join(sorted({damage.name for damage in left}))
        say(f"NOT restored: {names}; run: {put_back_command(guard, left)}")
    return left


def put_back_command(guard: Guard, damages: Sequence[Damage]) -> str:
    """The exact command that reinstalls broken packages: from their wheel, else from the index."""
    versions = {**needed_of(guard), **guard.packages}
    seen = known(guard)
    names = sorted({damage.name for damage in damages if damage.name in versions})
    pins = [
        _origin(seen[name]) if name in seen and _origin(seen[name]) else f"{name}=={versions[name]}" for name in names
    ]
    options = ["-m", "pip", "install", "--no-deps", "--force-reinstall"]
    return f"{layout.OFF}=off {shlex.join([guard.place.python, *options, *pins])}"


def _origin(seen: Seen) -> str:
    """The address of the wheel from which a distribution was installed, if that is known and still written down."""
    url = receipt.read_json(os.path.join(seen.folder, "direct_url.json")).get("url", "")
    return url if isinstance(url, str) and url.endswith(".whl") else ""


def known(guard: Guard) -> dict[str, Seen]:
    """The held packages as they were when the guard was installed or last ran something; {} if that is unreadable."""
    try:
        return _known(receipt.read_json(guard.place.file(layout.STATE)).get("packages", {}))
    except (AttributeError, KeyError, TypeError):
        return {}


def _known(packages: Mapping[str, Any]) -> dict[str, Seen]:
    return {
        name: Seen(
            one["version"],
            one["folder"],
            one["site"],
            one["record"],
            {path: tuple(status) for path, status in one["files"].items()},
            hidden=one.get("hidden", ""),
        )
        for name, one in packages.items()
    }


def needed_of(guard: Guard) -> dict[str, str]:
    """The versions of packages that must stay installed, by name."""
    needed = receipt.read_json(guard.place.file(layout.STATE)).get("needed", {})
    return {name: str(version) for name, version in needed.items()} if isinstance(needed, dict) else {}


@contextlib.contextmanager
def _locked(path: str) -> Iterator[bool]:
    """Hold the lock of the guard; whether this user may write there, without which there is no lock."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError:
        yield False
        return
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            say("waiting for another guarded command")
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield True
    finally:
        os.close(descriptor)
