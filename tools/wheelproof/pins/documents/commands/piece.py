"""A piece of a file that is run by a shell, and where its characters are in the file."""

from bisect import bisect_right
from dataclasses import dataclass, field

from wheelproof.pins.documents.commands.lexer import Dialect
from wheelproof.pins.documents.commands.shell import Values


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of a file that is run. ``anchors`` say where offsets of the text are in the file, in order."""

    text: str
    anchors: tuple[tuple[int, int], ...] = ((0, 0),)
    variables: Values = field(default_factory=dict)
    dialect: Dialect = Dialect.SH
    documentation: bool = False  # whoever reads it puts in what is in brackets

    def place(self, at: int) -> int:
        """Where an offset of the text is in the file."""
        number = bisect_right(self.anchors, (at, 1 << 60)) - 1
        start, stands = self.anchors[max(number, 0)]
        return stands + at - start
