"""Types of C++ as they are written: the parts before and after a name, packs of several, and the names of the simple.

A type stands around what it declares: ``int (*`` and ``)(char)`` for a pointer to a function. So a term has a left and
a right part. A term that stands for a pack (``T...``) is open until it is expanded; what is made of it is, too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

MAX_OUTPUT = 16_384  # characters of one term
MAX_PACK = 512  # terms of one pack

# Itanium C++ ABI, 5.1.5.2 (builtin types); names as c++filt writes them.
BUILTIN = {
    "v": "void", "w": "wchar_t", "b": "bool", "c": "char", "a": "signed char", "h": "unsigned char", "s": "short",
    "t": "unsigned short", "i": "int", "j": "unsigned int", "l": "long", "m": "unsigned long", "x": "long long",
    "y": "unsigned long long", "n": "__int128", "o": "unsigned __int128", "f": "float", "d": "double",
    "e": "long double", "g": "__float128", "z": "...", "Dd": "decimal64", "De": "decimal128", "Df": "decimal32",
    "Dh": "half", "Di": "char32_t", "Ds": "char16_t", "Du": "char8_t", "Da": "auto", "Dc": "decltype(auto)",
    "Dn": "decltype(nullptr)",
}  # fmt: skip
# 5.1.10 (compression): what the abbreviations stand for; the second is the name of its constructors.
STANDARD = {
    "a": ("std::allocator", "allocator"),
    "b": ("std::basic_string", "basic_string"),
    "s": ("std::string", "string"),
    "i": ("std::istream", "istream"),
    "o": ("std::ostream", "ostream"),
    "d": ("std::iostream", "iostream"),
}
# Members of the abbreviated classes are written in full, as their constructors have the name of the template.
IN_FULL = {
    "s": ("std::basic_string<char, std::char_traits<char>, std::allocator<char> >", "basic_string"),
    "i": ("std::basic_istream<char, std::char_traits<char> >", "basic_istream"),
    "o": ("std::basic_ostream<char, std::char_traits<char> >", "basic_ostream"),
    "d": ("std::basic_iostream<char, std::char_traits<char> >", "basic_iostream"),
}
SUFFIXES = {
    "int": "", "unsigned int": "u", "long": "l", "unsigned long": "ul", "long long": "ll", "unsigned long long": "ull",
}  # fmt: skip


class Undecodable(Exception):  # noqa: N818  # not an error: the name is returned as it is
    """The name cannot be decoded, or would become too long."""


@dataclass(frozen=True, slots=True)
class Term:
    """A type, a name or an expression.

    ``kind`` is "function" or "array" for what a pointer must be in parentheses to; ``reference`` is "&" or "&&".
    ``simple`` is the last component of a name, which its constructors have; ``templated`` says that the name ends with
    template arguments. With ``pack`` it stands for several terms, ``open`` until they are expanded.
    """

    left: str
    right: str = ""
    kind: str = ""
    reference: str = ""
    simple: str = ""
    templated: bool = False
    pack: tuple[Term, ...] | None = None
    open: bool = False

    @property
    def text(self) -> str:
        """The term as it is written alone."""
        if self.pack is not None:
            return ", ".join(filter(None, (term.text for term in self.pack)))
        return (self.left + self.right).removesuffix(" ") if self.kind == "function" else self.left + self.right


def pack_of(terms: Sequence[Term], *, is_open: bool = False) -> Term:
    """Several terms as one."""
    if len(terms) > MAX_PACK:
        raise Undecodable
    return Term("", pack=tuple(terms), open=is_open)


def lifted(make: Callable[..., Term], *terms: Term) -> Term:
    """``make(*terms)``; for an open pack among them, the pack of what is made of each of its terms."""
    lengths = [len(term.pack) for term in terms if term.open and term.pack is not None]
    if lengths:
        each = (
            lifted(make, *(term.pack[number] if term.open and term.pack is not None else term for term in terms))
            for number in range(min(lengths))
        )
        return pack_of(tuple(each), is_open=True)
    made = make(*terms)
    if len(made.left) + len(made.right) > MAX_OUTPUT:
        raise Undecodable
    return made


def pointer(to: Term, mark: str = "*") -> Term:
    """A pointer to a type; ``mark`` may be that of a member: ``A::*``."""

    def make(one: Term) -> Term:
        if one.kind:
            return Term(f"{one.left}{' ' if one.kind == 'array' else ''}({mark}", f"){one.right}")
        joined = f" {mark}" if len(mark) > 1 else mark
        return Term(one.left + joined, one.right)

    return lifted(make, to)


def reference(to: Term, mark: str) -> Term:
    """A reference to a type. References to references collapse."""

    def make(one: Term) -> Term:
        if one.reference:
            collapsed = "&" if "&" in (mark, one.reference) else "&&"
            return replace(one, left=one.left.removesuffix(one.reference) + collapsed, reference=collapsed)
        return replace(pointer(one, "&") if mark == "&" else _rvalue(one), reference=mark)

    return lifted(make, to)


def _rvalue(to: Term) -> Term:
    if to.kind:
        return Term(f"{to.left}{' ' if to.kind == 'array' else ''}(&&", f"){to.right}")
    return Term(to.left + "&&", to.right)


def qualified(term: Term, qualifier: str) -> Term:
    """A type with ``const``, ``volatile``, ``__restrict`` or a vendor's qualifier; of a function, after it."""

    def make(one: Term) -> Term:
        if one.kind == "function":
            return replace(one, right=f"{one.right} {qualifier}")
        return replace(one, left=f"{one.left} {qualifier}", simple="")

    return lifted(make, term)


def function(returned: Term, parameters: Term, suffix: str = "") -> Term:
    """The type of a function; ``suffix`` are the qualifiers of a member, as " const &"."""

    def make(one: Term, *rest: Term) -> Term:
        gap = "" if one.right else " "
        return Term(one.left + gap, f"({rest[0].text}){suffix}{one.right}", kind="function")

    return lifted(make, returned, parameters)


def array(of: Term, length: Term) -> Term:
    """The type of an array; ``length`` may be empty."""

    def make(one: Term, count: Term) -> Term:
        inner = one.right.removeprefix(" ") if one.kind == "array" else ""
        right = f" [{count.text}]{inner or one.right}"
        return Term(one.left, right, kind="array")

    return lifted(make, of, length)


def with_arguments(name: Term, arguments: Sequence[Term]) -> Term:
    """A name with template arguments."""

    def make(one: Term, *rest: Term) -> Term:
        inside = ", ".join(filter(None, (term.text for term in rest)))
        gap = " " if one.left.endswith("<") else ""
        end = " >" if rest and rest[-1].text.endswith(">") else ">"
        return Term(f"{one.left}{gap}<{inside}{end}", simple=one.simple, templated=True)

    return lifted(make, name, *arguments)


def text(make: Callable[..., str], *terms: Term) -> Term:
    """The term that ``make`` writes of the texts of others."""
    return lifted(lambda *each: Term(make(*(one.text for one in each))), *terms)


def joined(terms: Sequence[Term]) -> Term:
    """Terms in a list, separated by commas."""
    return text(lambda *each: ", ".join(filter(None, each)), *terms) if terms else Term("")
