"""The sqlite file under the byte cache. It never raises: a cache that cannot be used is a cache that holds nothing.

Several processes may use one file. WAL lets readers and a writer work side by side; creating and rebuilding happen
under a lock file, so that no process removes what another has just made.
"""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import sqlite3

_log = logging.getLogger(__name__)
_APPLICATION = 0x57504243  # "WPBC" in the file header tells our database from another's
_BUSY_SECONDS = 5.0

Statement = tuple[str, tuple[Any, ...]]


class CacheDatabase:
    """The database at ``path`` with ``schema`` (a script), opened at first use. Safe for many threads and processes.

    A corrupt file, or one that is not ours, is removed and made anew with a warning; a folder that cannot be written
    leaves the database closed for this run.
    """

    def __init__(self, path: Path, schema: str, version: int) -> None:
        self._path = path
        self._schema = schema
        self._version = version
        self._connection: sqlite3.Connection | None = None
        self._usable = True
        self._lock = threading.RLock()

    def query(self, sql: str, parameters: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        """All rows, or none when the database cannot be used."""
        rows: list[tuple[Any, ...]] = []
        self._use(lambda connection: rows.extend(connection.execute(sql, parameters)))
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
        """Run ``action`` on the open database; what goes wrong ends here."""
        import sqlite3

        with self._lock:
            if not self._usable:
                return
            try:
                self._connection = self._connection or self._open()
                action(self._connection)
            except sqlite3.OperationalError as error:  # locked for too long, disk full, no permission
                _log.info("the cache %s was not used: %s", self._path, error)
                self._usable = self._connection is not None
            except sqlite3.DatabaseError as error:
                self._disconnect()
                self._usable = self._rebuild(str(error))
            except OSError as error:
                _log.info("the cache %s is not used: %s", self._path, error.strerror)
                self._usable = False

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _open(self) -> sqlite3.Connection:
        import sqlite3

        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with contextlib.suppress(sqlite3.DatabaseError):
            connection = self._connect()
            if connection is not None:
                return connection
        with self._exclusive():
            try:
                connection = self._connect()  # another process may have made it meanwhile
            except sqlite3.OperationalError:
                raise
            except sqlite3.DatabaseError as error:
                self._remove(str(error))
                connection = None
            return connection if connection is not None else self._create()

    def _connect(self) -> sqlite3.Connection | None:
        """The database if it is ours and complete, None when there is none. Raises sqlite3.DatabaseError."""
        import sqlite3

        if not self._path.is_file() or self._path.stat().st_size == 0:
            return None
        with self._raw_connection() as connection:
            application = connection.execute("PRAGMA application_id").fetchone()[0]
            version = connection.execute("PRAGMA user_version").fetchone()[0]
            if (application, version) != (_APPLICATION, self._version):
                raise sqlite3.DatabaseError("it is not a cache of this version")
        return connection

    @contextlib.contextmanager
    def _raw_connection(self) -> Iterator[sqlite3.Connection]:
        """A new connection, closed when the block raises."""
        import sqlite3

        connection = sqlite3.connect(
            self._path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False, cached_statements=32
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
            connection.execute("PRAGMA auto_vacuum=INCREMENTAL")
            connection.execute("PRAGMA journal_mode=WAL")
            connection.executescript(self._schema)
            connection.execute(f"PRAGMA application_id={_APPLICATION}")
            connection.execute(f"PRAGMA user_version={self._version}")  # last: it says that all is there
        return connection

    def _rebuild(self, reason: str) -> bool:
        """Remove a database in which damage showed. True when a new one can be made at the next use."""
        try:
            with self._exclusive():
                self._remove(reason)
        except OSError:
            return False
        return True

    def _remove(self, reason: str) -> None:
        _log.warning("the cache %s is made anew: %s", self._path, reason)
        for suffix in ("", "-wal", "-shm"):
            Path(f"{self._path}{suffix}").unlink(missing_ok=True)

    @contextlib.contextmanager
    def _exclusive(self) -> Iterator[None]:
        """Held by one process at a time; the operating system frees it when the process ends."""
        fd = os.open(f"{self._path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            yield
        finally:
            os.close(fd)
