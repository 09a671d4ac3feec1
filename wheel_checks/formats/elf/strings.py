"""String tables of an ELF file (gABI, chapter 4): zero-terminated names found by their index."""

from wheel_checks.errors import FormatError
from wheel_checks.formats.elf.reader import Reader

MAX_STRING = 1 << 16  # bytes; the longest mangled names of template libraries have some thousands
_WINDOW = 256  # bytes first read for a string; most are shorter
# Strings may share their ends, so that all together are longer than the table; real ones by far less than this.
_MAX_SHARING = 4


class StringTable:
    """A string table of ``size`` bytes at ``offset`` of the file.

    It is read string by string, for it may have tens of megabytes, unless ``whole`` asks for all at once.
    ``field`` names it in messages. Raises FormatError and BytesNeeded when ``whole`` cannot be read.
    """

    def __init__(self, reader: Reader, offset: int, size: int, field: str, *, whole: bool = False) -> None:
        self._reader = reader
        self._offset = offset
        self._size = size
        self._field = field
        self._whole = reader.read(offset, size, field) if whole else None
        self._known: dict[int, str] = {}
        self._left = _MAX_SHARING * size + MAX_STRING

    def get(self, index: int, field: str) -> str:
        """The string at ``index``, bytes that are not UTF-8 escaped; ``field`` is what refers to it.

        Raises FormatError when it is outside the table, has no end, or when all strings got so far are together several
        times longer than the table; BytesNeeded.
        """
        string = self._known.get(index)
        if string is None:
            if index >= self._size:
                raise FormatError(f"{field} is {index}", expected=f"less than {self._size}, the size of {self._field}")
            raw = self._find(index, field)
            self._left -= len(raw)
            if self._left < 0:
                raise FormatError(f"the strings of {self._field} overlap", expected="few overlapping strings")
            string = self._known[index] = raw.decode("utf-8", "backslashreplace")
        return string

    def _find(self, index: int, field: str) -> bytes:
        if self._whole is not None:
            end = self._whole.find(b"\0", index, index + MAX_STRING)
            if end >= 0:
                return self._whole[index:end]
        else:
            window, reach = _WINDOW, min(MAX_STRING, self._size - index)
            while True:
                length = min(window, reach)
                string, zero, _ = self._reader.read(self._offset + index, length, field).partition(b"\0")
                if zero:
                    return string
                if length == reach:
                    break
                window *= 4
        raise FormatError(
            f"the string of {field} at {index} of {self._field} has no end",
            expected=f"a zero byte within {MAX_STRING} bytes",
        )
