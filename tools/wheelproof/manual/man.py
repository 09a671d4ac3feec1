"""The manual page wheelproof(1), in the macros of man(7)."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable

from wheelproof.manual.model import Command, Manual, Option
from wheelproof.manual.wording import place, sentence, value_name

WIDTH = 72  # of the source's lines; escapes make them a little longer
# The groups of options that most commands share; named once.
SHARED = ("output", "run", "sources")

_HEAD = """\
.\\" Made by ci/update_manual.py from the parsers of the commands.
.TH WHEELPROOF 1 "{date}" "wheelproof {version}" "User Commands"
.SH NAME
wheelproof \\- prove that an accelerator wheel stack (torch, Triton, CUDA) works
.SH SYNOPSIS
.B wheelproof
.I COMMAND
.RI [ OPTIONS ]
.SH DESCRIPTION
wheelproof says whether the wheels that an installer would take on a platform
are CUDA wheels, which CUDA, and whether they are sound, before anybody
downloads them; it judges what is installed, keeps other installs from
replacing it, runs kernels on the GPU, and names the one cause why torch does
not see a GPU.
Nothing of a wheel under judgement is ever executed.
.SH COMMANDS
"""

_TAIL = """\
.SH EXIT STATUS
.TP
.B 0
Nothing at or above
.BR \\-\\-fail\\-on .
.TP
.B 1
Findings.
.TP
.B 2
Wrong usage.
.TP
.B 3
Could not check: network, unreadable input, a check that crashed.
.TP
.B 130
Interrupted.
.SH ENVIRONMENT
.TP
.B WHEELPROOF_OPTION
The value of an option that the command line leaves open:
.B WHEELPROOF_FAIL_ON
is that of
.BR \\-\\-fail\\-on .
.TP
.B WHEELPROOF_DEBUG
Any value adds the traceback to the message of a bug.
.TP
.B NO_COLOR
Any value turns colors off.
.TP
.B FORCE_HYPERLINK
0: ids of rules are no links; any other value: they are in every colored report.
.SH FILES
.TP
.I ~/.config/wheelproof/wheelproof.toml
The values of options that neither the command line nor the environment has.
.TP
.I pyproject.toml
.TQ
.I wheelproof.toml
The nearest with a table
.B [tool.wheelproof]
in the tree around the current folder decides what is judged and what is
expected, and nothing else;
.B \\-\\-show\\-config
says what holds and why.
.SH SEE ALSO
.BR pip (1)
"""


def render(manual: Manual, date: str) -> str:
    """The page. ``date`` is shown at its foot, as in "2026-11-22"."""
    parts = [_HEAD.format(date=date, version=manual.version)]
    parts += [_command(command) for command in manual.commands]
    parts.append(".SH COMMON OPTIONS\nMost commands take these.\n")
    for title in SHARED:
        options = next(command.groups[title] for command in manual.commands if title in command.groups)
        parts.append(f".SS {title.capitalize()}\n{_options(options)}")
    return "".join([*parts, _TAIL])


def _command(command: Command) -> str:
    own = [
        o for title, options in command.groups.items() if title not in SHARED for o in options if "-h" not in o.flags
    ]
    synopsis = " ".join([f"wheelproof {command.name}", *(["[OPTIONS]"] if command.groups else [])])
    places = "".join(f" {place(argument)}" for argument in command.arguments)
    shared = ", ".join(title for title in SHARED if title in command.groups)
    return (
        f".SS {_text(synopsis + places)}\n{_sentences(command.summary)}\n"
        + "".join(f".TP\n.I {_text(argument.metavar)}\n{_sentences(argument.help)}\n" for argument in command.arguments)
        + _options(own)
        + (f".PP\nCommon options: {shared}.\n" if shared else "")
    )


def _options(options: Iterable[Option]) -> str:
    lines = []
    for option in options:
        flags = ", ".join(f"\\fB{_text(flag)}\\fR" for flag in option.flags)
        value = f" \\fI{_text(value_name(option))}\\fR" if option.values else ""
        lines.append(f".TP\n{flags}{value}\n{_sentences(option.help)}\n")
    return "".join(lines)


def _sentences(text: str) -> str:
    """A help as sentences, in lines."""
    lines = textwrap.wrap(sentence(text), WIDTH, break_long_words=False, break_on_hyphens=False)
    return "\n".join(map(_text, lines))


def _text(text: str) -> str:
    """Plain text as roff: nothing in it is a macro, an escape or a hyphen where a minus is meant."""
    safe = (
        text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq").replace("`", "\\(ga").replace('"', "\\(dq")
    )
    return f"\\&{safe}" if safe.startswith(".") else safe
