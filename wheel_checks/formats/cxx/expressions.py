"""Expressions in the names of C++ symbols (Itanium C++ ABI, 5.1.6): in template arguments, decltype and noexcept."""

from __future__ import annotations

from wheel_checks.formats.cxx.types import SUFFIXES, Term, Undecodable, joined, pack_of, text, with_arguments

MAX_DEPTH = 160
_STEPS = 64  # for each character of a name: what is parsed again, for packs and conversions, counts again

# 5.1.3 (operator encodings): how it is written, and how many operands it has.
OPERATORS = {
    "nw": ("new", 3), "na": ("new[]", 3), "dl": ("delete", 1), "da": ("delete[]", 1), "aw": ("co_await", 1),
    "ps": ("+", 1), "ng": ("-", 1), "ad": ("&", 1), "de": ("*", 1), "co": ("~", 1), "pl": ("+", 2), "mi": ("-", 2),
    "ml": ("*", 2), "dv": ("/", 2), "rm": ("%", 2), "an": ("&", 2), "or": ("|", 2), "eo": ("^", 2), "aS": ("=", 2),
    "pL": ("+=", 2), "mI": ("-=", 2), "mL": ("*=", 2), "dV": ("/=", 2), "rM": ("%=", 2), "aN": ("&=", 2),
    "oR": ("|=", 2), "eO": ("^=", 2), "ls": ("<<", 2), "rs": (">>", 2), "lS": ("<<=", 2), "rS": (">>=", 2),
    "eq": ("==", 2), "ne": ("!=", 2), "lt": ("<", 2), "gt": (">", 2), "le": ("<=", 2), "ge": (">=", 2),
    "ss": ("<=>", 2), "nt": ("!", 1), "aa": ("&&", 2), "oo": ("||", 2), "pp": ("++", 1), "mm": ("--", 1),
    "cm": (",", 2), "pm": ("->*", 2), "pt": ("->", 2), "cl": ("()", 2), "ix": ("[]", 2), "qu": ("?", 3),
}  # fmt: skip
_NAMED = {"st": "sizeof ", "sz": "sizeof ", "at": "alignof ", "az": "alignof ", "te": "typeid ", "ti": "typeid ",
          "nx": "noexcept "}  # fmt: skip
_OF_TYPE = {"st", "at", "ti"}
_CASTS = {"dc": "dynamic_cast", "sc": "static_cast", "cc": "const_cast", "rc": "reinterpret_cast"}


class Cursor:
    """A mangled name and the place in it, with a bound on depth and steps."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.at = 0
        self._depth = 0
        self._left = _STEPS * len(name) + 1000

    def peek(self, length: int = 1) -> str:
        """The next characters, fewer at the end."""
        return self.name[self.at : self.at + length]

    def take(self, expected: str) -> bool:
        """Whether these characters come next; then they are passed."""
        if self.name.startswith(expected, self.at):
            self.at += len(expected)
            return True
        return False

    def require(self, expected: str) -> None:
        """Pass these characters. Raises Undecodable."""
        if not self.take(expected):
            raise Undecodable

    def digits(self) -> int:
        """A decimal number. Raises Undecodable."""
        start = self.at
        while self.peek() in "0123456789" and self.peek():
            self.at += 1
        if start == self.at or self.at - start > 9:  # nine digits are more than any name has
            raise Undecodable
        return int(self.name[start : self.at])

    def number_in_base_36(self) -> int:
        """A sequence id, up to its ``_``: 0 for none, one more than its value otherwise."""
        if self.take("_"):
            return 0
        start = self.at
        while self.peek().isascii() and self.peek().isalnum() and not self.peek().islower():
            self.at += 1
        digits = self.name[start : self.at]
        if not 0 < len(digits) < 6:  # there are no more terms in any name
            raise Undecodable
        self.require("_")
        return int(digits, 36) + 1

    def counted(self) -> int:
        """``_`` for 0, ``n_`` for n + 1."""
        if self.take("_"):
            return 0
        number = self.digits()
        self.require("_")
        return number + 1

    def enter(self) -> None:
        """Go one level deeper. Raises Undecodable when there are too many levels, or steps in all."""
        self._depth += 1
        self._left -= 1
        if self._depth > MAX_DEPTH or self._left < 0:
            raise Undecodable

    def leave(self) -> None:
        """Come back from :meth:`enter`."""
        self._depth -= 1


class Expressions(Cursor):
    """Parses expressions; types and names are parsed by who inherits."""

    def type(self) -> Term:
        """A type."""
        raise NotImplementedError

    def encoding(self, *, returned: bool = True, called: bool = True) -> Term:
        """A function or an object, as a symbol has it."""
        raise NotImplementedError

    def template_arguments(self) -> list[Term]:
        """``I ... E``."""
        raise NotImplementedError

    def template_parameter(self) -> Term:
        """``T_``."""
        raise NotImplementedError

    def source_name(self) -> Term:
        """A name with its length before it."""
        raise NotImplementedError

    def expanded(self) -> Term:
        """A pack expansion of a type, after its ``Dp``."""
        raise NotImplementedError

    def operator_name(self) -> str:
        """The name of an operator function."""
        raise NotImplementedError

    def expression(self) -> Term:
        """An expression. Raises Undecodable."""
        self.enter()
        found = self._expression()
        self.leave()
        return found

    def _expression(self) -> Term:  # noqa: PLR0911, PLR0912, C901  # one branch for each form of the grammar
        two = self.peek(2)
        if two.startswith("L"):
            return self.literal()
        if two.startswith("T"):
            return self.template_parameter()
        if two in ("fp", "fL"):
            return self._parameter()
        if self.take("gs"):
            return text(lambda one: f"::{one}", self.expression())
        if two in ("sr", "on", "dn") or two[:1].isdigit():
            return self._unresolved()
        if self.take("sp"):
            found = self.expression()
            return pack_of(found.pack) if found.pack is not None else text("{}...".format, found)
        if self.take("sZ"):
            found = self._parameter() if self.peek(2) == "fp" else self.template_parameter()
            return Term(str(len(found.pack))) if found.pack is not None else text("sizeof...({})".format, found)
        if self.take("cl"):
            called = self.expression()
            return text("{}({})".format, called, joined(self._until_end()))
        if self.take("cv"):
            to = self.type()
            what = joined(self._until_end()) if self.take("_") else self.expression()
            return text("({})({})".format, to, what)
        if self.take("tl"):
            return text("{}{{{}}}".format, self.type(), joined(self._until_end()))
        if self.take("il"):
            return text("{{{}}}".format, joined(self._until_end()))
        if two in ("dt", "pt"):
            self.at += 2
            mark = "." if two == "dt" else "->"
            return text(lambda one, member: f"{one}{mark}{member}", self.expression(), self._unresolved())
        if two in _CASTS:
            self.at += 2
            return text(f"{_CASTS[two]}<{{}}>({{}})".format, self.type(), self.expression())
        if two in _NAMED:
            self.at += 2
            return text(f"{_NAMED[two]}({{}})".format, self.type() if two in _OF_TYPE else self.expression())
        return self._operation(two)

    def _operation(self, code: str) -> Term:
        if code not in OPERATORS:
            raise Undecodable
        self.at += 2
        sign, operands = OPERATORS[code]
        if code in ("pp", "mm"):
            before = self.take("_")
            return text((f"{sign}({{}})" if before else f"({{}}){sign}").format, self.expression())
        if operands == 1:
            if code == "ad" and self.take("L_Z"):
                found = self.encoding(called=False)
                self.require("E")
                return text("&({})".format if found.kind == "call" else "&{}".format, found)
            return text(f"{sign}({{}})".format, self.expression())
        if code == "qu":
            return text("({})?({}):({})".format, self.expression(), self.expression(), self.expression())
        if code == "ix":
            return text("({})[{}]".format, self.expression(), self.expression())
        if operands == 2:  # a binary operator
            both = f"({{}}){sign}({{}})"
            return text((f"({both})" if code == "gt" else both).format, self.expression(), self.expression())
        raise Undecodable

    def _until_end(self) -> list[Term]:
        found = []
        while not self.take("E"):
            found.append(self.expression())
        return found

    def _parameter(self) -> Term:
        """``fp_``, ``fp0_``: a parameter of the function itself; ``fpT`` is ``this``."""
        if self.take("fpT"):
            return Term("this")
        if self.take("fL"):
            self.digits()
            self.require("p")
        else:
            self.require("fp")
        while self.peek() in ("r", "V", "K"):
            self.at += 1
        return Term(f"{{parm#{self.counted() + 1}}}")

    def _unresolved(self) -> Term:
        """A name that is looked up when the template is used: ``sr`` a type a name."""
        if self.take("sr"):
            if self.take("N"):
                scope = self.type()
                while not self.take("E"):
                    scope = text("{}::{}".format, scope, self._simple())
            else:
                scope = self.type()
            return text("{}::{}".format, scope, self._simple())
        return self._simple()

    def _simple(self) -> Term:
        if self.take("dn"):
            return text("~{}".format, self.type() if self.peek() == "T" else self.source_name())
        if self.take("on"):
            name = Term(self.operator_name())
        elif self.peek().isdigit():
            name = self.source_name()
        elif self.peek(2) in OPERATORS:
            name = Term(self.operator_name())
        else:
            return self.expression()
        return with_arguments(name, self.template_arguments()) if self.peek() == "I" else name

    def literal(self) -> Term:
        """``L`` a type, a value ``E``; or ``L_Z`` an encoding ``E``."""
        self.require("L")
        if self.take("_Z"):
            found = self.encoding()
            self.require("E")
            return found
        of = self.type()
        end = self.name.find("E", self.at)
        if end < 0:
            raise Undecodable
        digits = self.name[self.at : end]
        self.at = end + 1
        value = f"-{digits[1:]}" if digits.startswith("n") else digits
        return text(lambda kind: _literal(kind, value), of)


def _literal(kind: str, value: str) -> str:
    if kind == "bool" and value in ("0", "1"):
        return "true" if value == "1" else "false"
    if kind in SUFFIXES:
        return value + SUFFIXES[kind]
    if kind in ("float", "double", "long double", "__float128"):
        return f"({kind})[{value}]"
    return f"({kind}){value}"
