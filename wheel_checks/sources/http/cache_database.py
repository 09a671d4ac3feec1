"""The sqlite file under the byte cache. It never raises: a cache that cannot be used is a cache that contains nothing.

Several processes may use one file. WAL lets readers and a writer work side by side; opening, creating and rebuilding
happen under a lock file, so that no process removes a file that another has just made or is opening. Waiting for other
processes is bounded for the whole run. A folder that another user may write to is not used, since its content is not
trusted.
"""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import stat
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import sqlite3

_log = logging.getLogger(__name__)
_APPLICATION = 0x57504243  # "WPBC" in the file header marks the database as ours
_LOCK_TIMEOUT = 1.0  # seconds of waiting for other processes in one run, all waits together
_PAUSE = 0.01  # seconds between two tries

Statement = tuple[str, tuple[Any, ...]]


class _RefusedError(OSError):
    """The database is not used for the rest of the run, and the user shall know why."""


class CacheDatabase:
    """The database at ``path`` with ``schema`` (a script), opened at first use. Safe for many threads and processes.

    A corrupt or foreign file is replaced, with a warning. The database stays closed for the rest of the run when the
    folder cannot be written, and, with a warning, when it belongs to another user, or other processes have locked it
    for a second before it was opened. Once it is open, what would have to wait for more than that second in sum is
    dropped: reading goes on.
    """

    def __init__(self, path: Path, schema: str, version: int) -> None:
        self._path = path
        self._schema = schema
        self._version = version
        self._connection: sqlite3.Connection | None = None
        self._usable = True
        self._waited = 0.0
        self._lock = threading.RLock()

    def query(self, sql: str, parameters: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        """All rows, or none when the database cannot be used."""
        rows: list[tuple[Any, ...]] = []

        def read(connection: sqlite3.Connection) -> None:
            rows[:] = connection.execute(sql, parameters)

        self._use(read)
        return rows

    def write(self, statements: Sequence[Statement]) -> None:
        """Execute the statements in one transaction, or not at all when the database cannot be used."""

        def transaction(connection: sqlite3.Connection) -> None:
            with connection:
                connection.execute("BEGIN IMMEDIATE")
                for sql, parameters in statements:
                    connection.execute(sql, parameters)

        self._use(transaction)

    def close(self) -> None:
        """Close the database; it is not opened again."""
        with self._lock:
            self._usable = False
            self._disconnect()

    def _use(self, action: Callable[[sqlite3.Connection], None]) -> None:
        """Run ``action`` on the open database; errors end here."""
        import sqlite3

        with self._lock:
            while self._usable:
                try:
                    self._connection = self._connection or self._open()
                    action(self._connection)
                    return
                except sqlite3.OperationalError as error:  # locked, disk full, no permission
                    if not _is_busy(error):
                        _log.info("the cache %s was not used: %s", self._path, error)
                        self._usable = self._connection is not None
                        return
                    if not self._wait():
                        _log.info("the cache %s was not used: %s", self._path, error)
                        return
                except sqlite3.DatabaseError as error:
                    self._disconnect()
                    self._usable = self._rebuild(str(error))
                    return
                except _RefusedError as error:
                    _log.warning("the cache %s is not used: %s", self._path, error)
                    self._usable = False
                except OSError as error:
                    _log.info("the cache %s is not used: %s", self._path, error.strerror)
                    self._usable = False

    def _wait(self) -> bool:
        """Wait a moment for other processes; False when the run has waited long enough."""
        if self._waited >= _LOCK_TIMEOUT:
            return False
        started = time.monotonic()
        time.sleep(_PAUSE)
        self._waited += time.monotonic() - started
        return True

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _open(self) -> sqlite3.Connection:
        import sqlite3

        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _check_folder(self._path.parent)
        # without the lock, a file that another process removes now would be read with the log (-wal) of its successor
        with self._hold(fcntl.LOCK_SH), contextlib.suppress(sqlite3.DatabaseError):
            connection = self._connect()
            if connection is not None:
                return connection
        with self._hold(fcntl.LOCK_EX):
            try:
                connection = self._connect()  # another process may have made it meanwhile
            except sqlite3.OperationalError:
                raise
            except sqlite3.DatabaseError as error:
                self._remove(str(error))
                connection = None
            return connection if connection is not None else self._create()

    def _connect(self) -> sqlite3.Connection | None:
        """The database if it is ours and complete, None if none exists. Raises sqlite3.DatabaseError."""
        import sqlite3

        if not os.path.isfile(self._path) or self._path.stat().st_size == 0:
            return None
        with self._raw_connection() as connection:
            application = connection.execute("PRAGMA application_id").fetchone()[0]
            version = connection.execute("PRAGMA user_version").fetchone()[0]
            if (application, version) != (_APPLICATION, self._version):
                raise sqlite3.DatabaseError("it is a cache of another version")
        return connection

    @contextlib.contextmanager
    def _raw_connection(self) -> Iterator[sqlite3.Connection]:
        """A new connection, closed when the block raises."""
        import sqlite3

        connection = sqlite3.connect(
            self._path, timeout=0, isolation_level=None, check_same_thread=False, cached_statements=32
        )
        try:
            connection.execute("PRAGMA synchronous=NORMAL")
            yield connection
        except BaseException:
            connection.close()
            raise

    def _create(self) -> sqlite3.Connection:
        self._path.touch(mode=0o600)  # pages of private indexes are for this user only
        with self._raw_connection() as connection:
            # a half-made database that is found locked would be removed, by name, while others use it
            connection.execute(f"PRAGMA busy_timeout={_LOCK_TIMEOUT * 1000:.0f}")
            connection.execute("PRAGMA auto_vacuum=INCREMENTAL")
            connection.execute("PRAGMA journal_mode=WAL")
            connection.executescript(self._schema)
            connection.execute(f"PRAGMA application_id={_APPLICATION}")
            connection.execute(f"PRAGMA user_version={self._version}")  # last: it says that all is there
            connection.execute("PRAGMA busy_timeout=0")
        return connection

    def _rebuild(self, reason: str) -> bool:
        """Remove a database in which damage showed. True when a new one can be made at the next use."""
        try:
            with self._hold(fcntl.LOCK_EX):
                self._remove(reason)
        except OSError:
            return False
        return True

    def _remove(self, reason: str) -> None:
        _log.warning("the cache %s is recreated: %s", self._path, reason)
        for suffix in ("", "-wal", "-shm"):
            Path(f"{self._path}{suffix}").unlink(missing_ok=True)

    @contextlib.contextmanager
    def _hold(self, lock: int) -> Iterator[None]:
        """Hold the lock file, shared (LOCK_SH) or alone (LOCK_EX); the system frees it when a process ends."""
        fd = os.open(f"{self._path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            while True:
                try:
                    fcntl.flock(fd, lock | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if not self._wait():
                        raise _RefusedError("other processes hold its lock") from None
            yield
        finally:
            os.close(fd)


def _is_busy(error: sqlite3.OperationalError) -> bool:
    """True when another process has a lock, for now."""
    import sqlite3

    waits = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL)  # the last: a race for the log
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in waits


def _check_folder(folder: Path) -> None:
    """Raise unless only this user, or root, can put files into ``folder``: sqlite trusts the files there."""
    status = folder.stat()
    ours = {0, os.geteuid()}
    if os.geteuid() == 0 and os.environ.get("SUDO_UID", "").isdecimal():
        ours.add(int(os.environ["SUDO_UID"]))
    if status.st_uid not in ours:
        raise _RefusedError(f"{folder} belongs to another user (uid {status.st_uid})")
    by_group = status.st_mode & stat.S_IWGRP and status.st_gid != os.getegid()  # a user's own group has no other member
    if status.st_mode & stat.S_IWOTH or by_group:
        raise _RefusedError(f"other users may write to {folder} (mode {stat.S_IMODE(status.st_mode):o})")
