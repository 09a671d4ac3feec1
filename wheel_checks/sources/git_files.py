"""One file at one commit of a repository, read with git's plumbing: nothing of the repository is executed.

A repository is anybody's. ``git cat-file`` without ``--textconv`` and ``--filters`` runs no hook, no filter, no file
system monitor and no pager; every transport is refused, so that a partial clone fetches nothing. git itself refuses the
repository of another user (``safe.directory``).
"""

import os
from collections.abc import Mapping
from pathlib import Path

from wheel_checks.errors import NotFoundError, SourceError, UsageError
from wheel_checks.formats.secrets import redact_text
from wheel_checks.process import Ended, StartError, find_program, run
from wheel_checks.sources.regular_file import real_path
from wheel_checks.sources.repository import repository_of

DEADLINE = 30.0  # seconds of one call of git
_SHOWN = 200  # characters of what git says
_SETTINGS = (
    "core.fsmonitor=false",
    "core.hooksPath=/dev/null",
    "core.pager=cat",
    "core.sshCommand=false",
    "credential.helper=",
    "protocol.allow=never",
)


class CommitFiles:
    """The files of a commit, by their places in the working tree."""

    def __init__(self, near: Path, reference: str, environ: Mapping[str, str] = os.environ) -> None:
        """``near`` is a path within the repository, ``reference`` names the commit.

        Raises UsageError where there is no repository, no git, or no such commit.
        """
        folder = real_path(near.parent)
        root = repository_of(folder)
        if root is None:
            raise UsageError(
                f"{near} is not in a git repository", expected="a file to compare with, or a git repository"
            )
        program = find_program("git", environ)
        if program is None:
            raise UsageError("git not found", expected="git on PATH, or a file to compare with")
        self._root, self._program, self._environ = root, program, environ
        self.reference = reference
        asked = self._git("rev-parse", "--verify", "--quiet", "--end-of-options", f"{reference}^{{commit}}", limit=4096)
        self._commit = asked.output.decode("ascii", "replace").strip()
        if asked.status or not self._commit.isalnum():
            said = redact_text(asked.errors.decode("utf-8", "replace")).strip()[:_SHOWN]
            what = f"{reference[:_SHOWN]!r} is neither a file nor a commit of the repository {root}"
            raise UsageError(what + (f": {said}" if said else ""), expected="a file, a branch, a tag or a commit")

    def read(self, path: Path, limit: int) -> bytes:
        """The file that is at ``path`` in the working tree, as it is in the commit.

        Raises NotFoundError where the commit has none, and SourceError where it has more than ``limit`` bytes.
        """
        place = real_path(path.parent) / path.name
        if not place.is_relative_to(self._root):
            raise NotFoundError(f"{path} is outside of the repository {self._root}")
        inside = place.relative_to(self._root).as_posix()
        found = self._git("cat-file", "blob", f"{self._commit}:{inside}", limit=limit + 1)
        if found.status:
            raise NotFoundError(f"{self.reference[:_SHOWN]} has no file {inside}")
        if len(found.output) > limit:
            raise SourceError(f"{inside} in {self.reference[:_SHOWN]} has more than {limit:,} bytes")
        return found.output

    def _git(self, *words: str, limit: int) -> Ended:
        settings = [word for setting in _SETTINGS for word in ("-c", setting)]
        kept = {name: value for name, value in self._environ.items() if not name.startswith("GIT_")}
        environment = kept | {
            "GIT_ALLOW_PROTOCOL": "none",
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_NO_LAZY_FETCH": "1",
            "GIT_NO_REPLACE_OBJECTS": "1",
            "GIT_OPTIONAL_LOCKS": "0",
            "GIT_TERMINAL_PROMPT": "0",
        }
        command = [self._program, "--no-pager", *settings, "-C", str(self._root), *words]
        try:
            ended = run(command, deadline=DEADLINE, environment=environment, limit=limit)
        except StartError as error:
            raise SourceError(f"git could not be started: {error.reason}") from error
        if ended.timed_out:
            raise SourceError(f"git did not answer within {DEADLINE:g} seconds")
        return ended
