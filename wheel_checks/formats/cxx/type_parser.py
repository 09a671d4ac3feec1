"""Types and template arguments in the names of C++ symbols (Itanium C++ ABI, 5.1.5, 5.1.7 and 5.1.10)."""

from __future__ import annotations

import re
from dataclasses import replace

from wheel_checks.formats.cxx.expressions import OPERATORS, Expressions
from wheel_checks.formats.cxx.types import (
    BUILTIN,
    IN_FULL,
    STANDARD,
    Term,
    Undecodable,
    array,
    function,
    joined,
    lifted,
    pack_of,
    pointer,
    qualified,
    reference,
    text,
    with_arguments,
)

QUALIFIERS = {"r": "restrict", "V": "volatile", "K": "const"}


class TypeParser(Expressions):
    """Parses types; names are parsed by who inherits.

    ``_terms`` are those that can be referred to again, ``_arguments`` those of the template.
    """

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._terms: list[Term] = []
        self._arguments: list[Term] = []
        self._lambda = 0
        self._is_placeholder = False
        self._converts = False
        self._parameters_read = 0
        # Terms that name template parameters: where they begin, and the arguments that were meant.
        self._dependent: dict[int, tuple[int, list[Term], int]] = {}

    def taken(self) -> str:
        """The next character, passed."""
        self.at += 1
        return self.name[self.at - 1 : self.at]

    def abbreviation(self, *, in_scope: bool = False) -> Term:
        """``S_``, ``S0_``: an earlier term; ``Sa``, ``Ss`` ...: a name of the standard library."""
        self.require("S")
        letter = self.peek()
        if letter in STANDARD and letter:
            self.at += 1
            follows = in_scope and self.peek() in ("C", "D")
            written, simple = (IN_FULL if follows and letter in IN_FULL else STANDARD)[letter]
            term = Term(written, simple=simple)
            if self.peek() == "B":
                self.at += 1
                term = replace(term, left=f"{written}[abi:{self.source_name().text}]")
                self._terms.append(term)
            return term
        number = self.number_in_base_36()
        if number >= len(self._terms):
            raise Undecodable
        start, arguments, depth = self._dependent.get(number, (0, self._arguments, self._lambda))
        if not start or (arguments is self._arguments and depth == self._lambda) or not self._arguments:
            return self._terms[number]
        at, terms = self.at, list(self._terms)  # the same words mean the arguments of another template here
        self.enter()
        self.at = start
        found, _ = self._type()
        self.leave()
        self.at, self._terms = at, terms
        return found

    def with_template_arguments(self, name: Term) -> Term:
        """A name with the template arguments that come next."""
        arguments = self.template_arguments()
        if not self._lambda:
            self._arguments = arguments
        return with_arguments(name, arguments)

    def template_arguments(self) -> list[Term]:
        """``I ... E``. Raises Undecodable."""
        self.require("I")
        outer = self._arguments
        found: list[Term] = []
        while not self.take("E"):
            found.append(self.template_argument())
        self._arguments = outer
        return found

    def template_argument(self) -> Term:
        """One template argument. Raises Undecodable."""
        self.enter()
        if self.take("X"):
            found = self.expression()
            self.require("E")
        elif self.peek() == "L":
            found = self.literal()
        elif self.take("J"):
            terms = []
            while not self.take("E"):
                terms.append(self.template_argument())
            found = pack_of(terms)
        else:
            found = self.type()
        self.leave()
        return found

    def template_parameter(self) -> Term:
        """``T_``, ``T0_``: an argument of the template. Raises Undecodable."""
        self.require("T")
        number = self.counted()
        self._parameters_read += 1
        if self._lambda:
            return Term(f"auto:{number + 1}")
        if number < len(self._arguments):
            found = self._arguments[number]
            return replace(found, open=True) if found.pack is not None else found
        if self._is_placeholder:
            return Term("?")
        raise Undecodable

    def expanded(self) -> Term:
        """A pack expansion. Raises Undecodable."""
        found = self.type()
        if found.pack is not None:
            return replace(found, open=False)
        return text("{}...".format, found)

    def type(self) -> Term:
        """A type. Raises Undecodable."""
        self.enter()
        start, read = self.at, self._parameters_read
        found, new = self._type()
        if new:
            if self._parameters_read != read:
                self._dependent[len(self._terms)] = (start, self._arguments, self._lambda)
            self._terms.append(found)
        self.leave()
        return found

    def _type(self) -> tuple[Term, bool]:  # noqa: PLR0911, PLR0912, C901  # one branch for each form of the grammar
        """A type, and whether it can be referred to again."""
        one, two = self.peek(), self.peek(2)
        if one and one in QUALIFIERS:
            marks = []
            while self.peek() and self.peek() in QUALIFIERS:
                marks.append(QUALIFIERS[self.taken()])
            found = self.type()
            for mark in reversed(marks):
                found = qualified(found, mark)
            return found, True
        if two in BUILTIN or (one in BUILTIN and one):
            code = two if two in BUILTIN else one
            self.at += len(code)
            return Term(BUILTIN[code]), False
        if self.take("P"):
            return pointer(self.type()), True
        if one in ("R", "O") and one:
            self.at += 1
            return reference(self.type(), "&" if one == "R" else "&&"), True
        if self.take("C"):
            return qualified(self.type(), "_Complex"), True
        if self.take("G"):
            return qualified(self.type(), "_Imaginary"), True
        if one == "F" or two in ("Do", "DO", "Dw"):
            return self._function(), True
        if self.take("A"):
            return self._array(), True
        if self.take("M"):
            owner, member = self.type(), self.type()
            return lifted(lambda to, of: pointer(to, f"{of.text}::*"), member, owner), True
        if two == "Dp":
            self.at += 2
            return self.expanded(), True
        if two in ("Dt", "DT"):
            return self.decltype(), True
        if two == "Dv":
            self.at += 2
            length = Term(str(self.digits())) if self.peek().isdigit() else self.expression()
            self.require("_")
            return text("{1} __vector({0})".format, length, self.type()), True
        if two == "DF":
            self.at += 2
            bits = self.digits()
            return Term(
                "std::bfloat16_t" if self.take("b") else f"_Float{bits}{'x' if self.take('x') else self.take('_') * ''}"
            ), False
        if one == "T":
            parameter = self.template_parameter()
            if self.peek() != "I" or self._converts:
                return parameter, True
            self._terms.append(parameter)
            return with_arguments(parameter, self.template_arguments()), True
        if self.take("U"):
            vendor = self.source_name()
            arguments = self.template_arguments() if self.peek() == "I" else []
            return qualified(self.type(), with_arguments(vendor, arguments).text if arguments else vendor.text), True
        if self.take("u"):
            return self.source_name(), True
        if one == "S" and two != "St":
            term = self.abbreviation()
            if self.peek() != "I":
                return term, False
            return with_arguments(term, self.template_arguments()), True
        arguments = self._arguments
        name, _, _ = self.name_of()
        self._arguments = arguments  # those of a class are not those of the function that names it
        return name, True

    def _function(self) -> Term:
        suffix = ""
        if self.take("Do"):
            suffix = " noexcept"
        elif self.take("DO"):
            suffix = f" noexcept({self.expression().text})"
            self.require("E")
        elif self.take("Dw"):
            suffix = f" throw({joined([self.type()]).text})"
            self.require("E")
        self.require("F")
        self.take("Y")
        returned = self.type()
        found: list[Term] = []
        while self.peek() not in ("E", "R", "O") or self.peek(2) not in ("E", "RE", "OE", self.peek() + "E"):
            if self.peek() == "E":
                break
            found.append(self.type())
        suffix = (" &" if self.take("R") else " &&" if self.take("O") else "") + suffix
        self.require("E")
        parameters = Term("") if len(found) == 1 and found[0].text == "void" else joined(found)
        return function(returned, parameters, suffix)

    def _array(self) -> Term:
        if self.take("_"):
            return array(self.type(), Term(""))
        length = Term(str(self.digits())) if self.peek().isdigit() else self.expression()
        self.require("_")
        return array(self.type(), length)

    def decltype(self) -> Term:
        """``decltype`` of an expression."""
        self.at += 2
        found = text("decltype ({})".format, self.expression())
        self.require("E")
        return found

    def source_name(self) -> Term:
        """A name with its length before it. Raises Undecodable."""
        length = self.digits()
        name = self.peek(length)
        if not length or len(name) < length:
            raise Undecodable
        self.at += length
        if re.match("_GLOBAL_[._$]N", name):
            return Term("(anonymous namespace)", simple="(anonymous namespace)")
        return Term(name, simple=name)

    def operator_name(self) -> str:
        """An operator. Raises Undecodable."""
        if self.take("li"):
            return f'operator"" {self.source_name().text}'
        code = self.peek(2)
        if code not in OPERATORS:
            raise Undecodable
        self.at += 2
        sign = OPERATORS[code][0]
        return f"operator {sign}" if sign[0].isalpha() else f"operator{sign}"

    def parameters(self) -> Term:
        """The types up to the end of the function; none for ``v``."""
        found: list[Term] = []
        while self.peek() and self.peek() not in "E.":
            found.append(self.type())
        return Term("") if len(found) == 1 and found[0].text == "void" else joined(found)

    def name_of(self) -> tuple[Term, str, bool]:
        """A name, the qualifiers of a member function, and whether a template of this name has its type of return."""
        raise NotImplementedError
