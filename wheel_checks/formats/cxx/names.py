"""Names of C++ symbols as programmers write them: ``_ZN3c105ErrorC1Ev`` is ``c10::Error::Error()``.

The grammar is that of the Itanium C++ ABI, chapter 5.1; what is written is what c++filt writes. Names come from
strangers, so the depth, the steps and the length of what is written are bounded.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import lru_cache

from wheel_checks.formats.cxx.type_parser import QUALIFIERS, TypeParser
from wheel_checks.formats.cxx.types import (
    Term,
    Undecodable,
    function,
    lifted,
    text,
)

MAX_NAME = 8_192  # characters of a mangled name

_SPECIAL = {
    "TV": "vtable for ", "TT": "VTT for ", "TI": "typeinfo for ", "TS": "typeinfo name for ",
    "GV": "guard variable for ",
    "TH": "TLS init function for ", "TW": "TLS wrapper function for ",
}  # fmt: skip
_OF_TYPE = {"TV", "TT", "TI", "TS"}
_CLONE = re.compile(r"\.[a-zA-Z_][a-zA-Z0-9_]*(?:\.\d+)*")


@lru_cache(maxsize=4096)
def demangle(name: str) -> str:
    """What the symbol ``name`` declares; ``name`` itself where it is not of C++ or cannot be decoded."""
    if not name.startswith("_Z") or len(name) > MAX_NAME:
        return name
    parser = _Parser(name)
    try:
        parser.require("_Z")
        found = parser.encoding().text
        while match := _CLONE.match(name, parser.at):
            found += f" [clone {match[0]}]"
            parser.at = match.end()
    except (Undecodable, RecursionError):
        return name
    return found if parser.at == len(name) and found else name


class _Parser(TypeParser):
    """Parses one name."""

    def encoding(self, *, returned: bool = True, called: bool = True) -> Term:
        """A function with its parameters, an object, or what a compiler made for a type.

        ``returned`` is whether a template is written with the type that it returns, ``called`` whether what is no
        template is written with its parameters.
        """
        self.enter()
        arguments = self._arguments
        is_special = self.peek(2) in _SPECIAL or self.peek(2) in _THUNKS
        found = self._special() if is_special else self._encoding(with_return=returned, with_parameters=called)
        self._arguments = arguments or self._arguments
        self.leave()
        return found

    def _encoding(self, *, with_return: bool, with_parameters: bool) -> Term:
        name, suffix, has_returned = self.name_of()
        if not self.peek() or self.peek() in "E.":
            return text(lambda one: one + suffix, name)
        returned = self.type() if has_returned and name.templated else None
        parameters = self.parameters()
        if returned is None and not with_parameters:
            return name
        if returned is None or not with_return:
            return text(lambda one, each: f"{one}({each}){suffix}", name, parameters)
        whole = function(returned, parameters, suffix)
        return lifted(lambda one, inner: Term(one.left + inner.text + one.right, kind="call"), whole, name)

    def _special(self) -> Term:  # noqa: PLR0911  # one branch for each form of the grammar
        code = self.peek(2)
        self.at += 2
        if code in ("Th", "Tv"):
            self._offset(code[1])
            return text(f"{_THUNKS[code]}{{}}".format, self.encoding())
        if code == "GT":
            kind = "non-transaction" if self.taken() == "n" else "transaction"
            return text(f"{kind} clone for {{}}".format, self.encoding())
        if code == "Tc":
            self._offset(self.taken())
            self._offset(self.taken())
            return text("covariant return thunk to {}".format, self.encoding())
        if code == "TC":
            derived = self.type()
            self.digits()
            self.require("_")
            return text("construction vtable for {}-in-{}".format, self.type(), derived)
        if code == "GR":
            name, _, _ = self.name_of()
            number = self.number_in_base_36() if self.peek() else 0
            return text(f"reference temporary #{number} for {{}}".format, name)
        if code == "TA":
            return text("template parameter object for {}".format, self.template_argument())
        return text(f"{_SPECIAL[code]}{{}}".format, self.type() if code in _OF_TYPE else self.name_of()[0])

    def _offset(self, kind: str) -> None:
        """The call offset of a thunk: one number for "h", two for "v"."""
        for _ in range(1 if kind == "h" else 2):
            self.take("n")
            self.digits()
            self.require("_")

    def name_of(self) -> tuple[Term, str, bool]:
        """A name, the qualifiers of a member function, and whether a template of this name has its type of return."""
        if self.take("N"):
            return self._nested()
        if self.take("Z"):
            return self._local()
        start = self.at
        name = self.abbreviation() if self.peek() == "S" and self.peek(2) != "St" else None
        returns = True
        if name is None:
            scope = "std::" if self.take("St") else ""
            name, returns = self._unqualified(scope, "")
            if self.peek() == "I":
                self._terms.append(name)
        if self.peek() == "I":
            name = self.with_template_arguments(name)
        elif self.name[start : start + 1] == "S" and self.name[start + 1 : start + 2] != "t":
            raise Undecodable
        return name, "", returns

    def _nested(self) -> tuple[Term, str, bool]:
        suffix = ""
        while self.peek() in QUALIFIERS and self.peek():
            suffix = f" {QUALIFIERS[self.taken()]}{suffix}"
        suffix += " &" if self.take("R") else " &&" if self.take("O") else ""
        scope: Term | None = None
        returns = True
        while not self.take("E"):
            self.enter()
            scope, returns, new = self._component(scope, returns=returns)
            if new and self.peek() != "E":
                self._terms.append(scope)
            self.leave()
        if scope is None:
            raise Undecodable
        return scope, suffix, returns

    def _component(  # noqa: PLR0911  # one branch for each form of the grammar
        self, scope: Term | None, *, returns: bool
    ) -> tuple[Term, bool, bool]:
        """The next component of a nested name after ``scope``; whether it is new to the terms that are referred to."""
        if scope is None and self.peek() == "S" and self.peek(2) != "St":
            return self.abbreviation(in_scope=True), True, False
        if scope is None and self.take("St"):
            return Term("std", simple="std"), True, False
        if scope is None and self.peek() == "T":
            return self.template_parameter(), True, True
        if scope is None and self.peek(2) in ("Dt", "DT"):
            return self.decltype(), True, True
        if self.peek() == "I" and scope is not None:
            return self.with_template_arguments(scope), returns, True
        if self.take("M") and scope is not None:  # the initializer of a data member, which contains a lambda
            return scope, returns, False
        before = scope

        def qualified_name(one: Term, last: Term) -> Term:
            return Term(f"{one.text}::{last.text}", simple=last.simple)

        name, returns = self._unqualified("", "" if before is None else before.simple)
        return (name if before is None else lifted(qualified_name, before, name)), returns, True

    def _local(self) -> tuple[Term, str, bool]:
        """What is declared inside a function: ``Z`` the function ``E`` the name."""
        arguments = self._arguments
        outer = self.encoding(returned=False)
        self.require("E")
        if self.take("s"):
            self._discriminator()
            return text("{}::string literal".format, outer), "", False
        default = ""
        if self.take("d"):
            default = f"{{default arg#{self.counted() + 1}}}::"
        name, suffix, returns = self.name_of()
        self._discriminator()
        if not name.templated:
            self._arguments = self._arguments or arguments
        simple, templated = name.simple, name.templated
        whole = text(lambda one, last: f"{one}::{default}{last}", outer, name)
        return replace(whole, simple=simple, templated=templated), suffix, returns

    def _discriminator(self) -> None:
        if self.take("__"):
            self.digits()
            self.require("_")
        elif self.peek() == "_" and self.peek(2)[1:].isdigit():
            self.at += 2

    def _unqualified(self, scope: str, of: str) -> tuple[Term, bool]:
        """One component of a name, and whether a template of this name is mangled with its type of return.

        ``scope`` is what is written before it; ``of`` the name that constructors and destructors have.
        """
        two, returns = self.peek(2), True
        if self.take("L"):  # of internal linkage
            two = self.peek(2)
        if two[:1].isdigit():
            name = self.source_name()
        elif re.fullmatch("C[123456]|D[012456]", two) and of:
            self.at += 2
            name, returns = Term(f"~{of}" if two.startswith("D") else of, simple=of), False
        elif two == "CI" and of:
            self.at += 3
            self.type()
            name, returns = Term(of, simple=of), False
        elif two in ("Ut", "Ul"):
            name = self._unnamed(two)
        elif two == "DC":
            self.at += 2
            parts = []
            while not self.take("E"):
                parts.append(self.source_name())
            name = Term(f"[{', '.join(part.text for part in parts)}]")
        elif self.take("cv"):
            name, returns = text("operator {}".format, self._converted()), False
        else:
            written = self.operator_name()
            name = Term(written, simple=written)
        while self.take("B"):
            tag = self.source_name().text
            name = replace(name, left=f"{name.left}[abi:{tag}]")
        return (replace(name, left=scope + name.left) if scope else name), returns

    def _unnamed(self, code: str) -> Term:
        self.at += 2
        if code == "Ut":
            return Term(f"{{unnamed type#{self.counted() + 1}}}")
        self._lambda += 1
        parameters = self.parameters()
        self._lambda -= 1
        self.require("E")
        number = self.counted() + 1
        return text(f"{{{{lambda({{}})#{number}}}}}".format, parameters)

    def _converted(self) -> Term:
        """The type to which an operator converts. It may name the arguments of the template, which follow it."""
        if self._arguments or self._is_placeholder:
            return self.type()
        start, terms = self.at, list(self._terms)
        self._is_placeholder = self._converts = True
        found = self.type()
        self._is_placeholder = self._converts = False
        if self.peek() != "I":
            return found
        behind = self.at
        self._arguments = self.template_arguments()
        self.at, self._terms = start, terms
        self._converts = True
        found = self.type()
        self._converts = False
        self._arguments = []
        self.at = behind
        return found


_THUNKS = {"GT": "", "Th": "non-virtual thunk to ", "Tv": "virtual thunk to ", "Tc": "", "TC": "", "GR": "", "TA": ""}
