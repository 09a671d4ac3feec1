"""The errors that users meet. Each says what happened, what was expected, and what to do."""


class WheelproofError(Exception):
    """Base of every error that is meant for a user.

    ``what`` is one sentence; ``expected`` and ``hint`` add what was expected and what to do.
    ``exit_code`` is the status with which a command ends when nothing handles the error:
    3, "could not check", unless a subclass says otherwise.
    """

    exit_code = 3

    def __init__(self, what: str, *, expected: str = "", hint: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.expected = expected
        self.hint = hint

    def __str__(self) -> str:
        sentence = self.what
        if self.expected:
            sentence += f"; expected {self.expected}"
        if self.hint:
            sentence += f" ({self.hint})"
        return sentence


class UsageError(WheelproofError):
    """The command line or the configuration asks for something that does not exist."""

    exit_code = 2


class FormatError(WheelproofError):
    """Bytes are not what they claim to be. About a wheel, this becomes a finding."""


class SourceError(WheelproofError):
    """Bytes could not be had: a file that cannot be read, an index or server that does not answer."""


class NetworkError(SourceError):
    """A server could not be reached, failed, or broke off: the same request may succeed later."""


class NotFoundError(SourceError):
    """The file, page or project does not exist where it was searched for (HTTP 404, 410; a missing path)."""


class AuthenticationError(SourceError):
    """The server refuses without, or with these, credentials (HTTP 401, 403)."""


class OfflineError(SourceError):
    """``--offline`` was given and the cache does not hold what is needed."""


class RangesUnsupportedError(SourceError):
    """The server answers a range request with the whole file."""


class ChangedFileError(SourceError):
    """A remote file changed between two range requests (length, ETag or Last-Modified)."""


class DeadlineError(SourceError):
    """The deadline passed before the answer was complete."""
