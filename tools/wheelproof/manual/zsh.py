"""The completion of zsh: one function a command, in the terms of zsh's own ``_arguments``."""

from __future__ import annotations

from wheelproof.manual.model import Argument, Command, Kind, Manual, Option, Values
from wheelproof.manual.wording import brief

_HEAD = """\
#compdef wheelproof
# zsh completion of wheelproof {version}, made by `wheelproof completion zsh`

"""
_FILES, _OTHERS = "; _files", "                *) _files ;;\n"  # of a command whose own arguments are files
_ALSO = """\
_wheelproof_format_and_file() {
    if compset -P '*='; then
        _files
    else
        compadd -S = -- "$@"
    fi
}

"""
_TAIL = """\
# Sourced, it announces itself; as a file named _wheelproof in a folder of fpath it is the function.
if [[ $funcstack[1] == _wheelproof ]]; then
    _wheelproof "$@"
else
    compdef _wheelproof wheelproof
fi
"""


def render(manual: Manual) -> str:
    """The script: a file named ``_wheelproof`` in a folder of ``fpath``, or to be sourced after ``compinit``."""
    parts = [_HEAD.format(version=manual.version)]
    parts += [f'{_list(name)}() {{ compadd "$@" -- {" ".join(words)} }}\n\n' for name, words in manual.lists.items()]
    parts += [_one_command(manual, command) for command in manual.commands]
    top = ["'(- *)'{-h,--help}'[show the help]'", "'(- *)'{-V,--version}'[show the version]'"]
    parts += [_with_commands(manual, "", top), _ALSO, _TAIL]
    return "".join(parts)


def _one_command(manual: Manual, command: Command) -> str:
    options = [spec for option in command.options for spec in _option(option)]
    if manual.below(command.name):
        return _with_commands(manual, command.name, options, files=bool(command.arguments))
    arguments = [_argument(argument, number) for number, argument in enumerate(command.arguments, 1)]
    return f"{_function(command.name)}() {{\n    _arguments -s -S{_lines([*options, *arguments])}\n}}\n\n"


def _with_commands(manual: Manual, name: str, options: list[str], *, files: bool = False) -> str:
    """A function that offers the commands below ``name``, ``files`` too, and hands over to theirs after one."""
    below = {command.name.rpartition(" ")[2]: command for command in manual.below(name)}
    described = "".join(f"        {_quoted(f'{_colons(word)}:{brief(c.summary)}')}\n" for word, c in below.items())
    branches = "".join(f"                {word}) {_function(command.name)} ;;\n" for word, command in below.items())
    return f"""\
{_function(name)}() {{
    local curcontext=$curcontext state line
    local -a commands=(
{described}    )
    _arguments -C -S{_lines([*options, "'1: :->first'", "'*::: :->rest'"])}
    case $state in
        first)
            _describe command commands{_FILES * files} ;;
        rest)
            words=($line[1] $words); (( CURRENT++ ))
            case $line[1] in
{branches}{_OTHERS * files}            esac ;;
    esac
}}

"""


def _option(option: Option) -> list[str]:
    """One specification for each flag: exclusive to each other, unless the option may be repeated."""
    before = "*" if option.repeatable else f"({' '.join(option.flags)})" if len(option.flags) > 1 else ""
    specs = []
    for flag in option.flags:
        equals = "=" if option.values is not None and flag.startswith("--") else ""
        spec = f"{before}{flag}{equals}[{_brackets(brief(option.help))}]"
        specs.append(_quoted(spec + (f":{_colons(option.metavar)}:{_action(option.values)}" if option.values else "")))
    return specs


def _argument(argument: Argument, number: int) -> str:
    place = "*" if argument.nargs in {"*", "+"} else f"{number}{':' if argument.nargs == '?' else ''}"
    return _quoted(f"{place}:{_colons(argument.metavar)}:{_action(argument.values)}")


def _action(values: Values) -> str:
    if values.kind is Kind.FILE:
        return "_files"
    if values.kind is Kind.FOLDER:
        return "_files -/"
    if values.kind is Kind.FREE:
        return " "  # the message alone
    if values.suffix:
        return f"_wheelproof_format_and_file {' '.join(values.words)}"
    words = _list(values.shared) if values.shared else f"({' '.join(values.words)})"
    if not values.separated:
        return words
    return f"_sequence {_list(values.shared)}" if values.shared else f"_sequence compadd - {' '.join(values.words)}"


def _list(name: str) -> str:
    return f"_wheelproof_list_{name}"


def _function(name: str) -> str:
    return "_".join(["_wheelproof", *name.replace("-", "_").split()])


def _lines(specs: list[str]) -> str:
    return "".join(f" \\\n        {spec}" for spec in specs)


def _brackets(text: str) -> str:
    return _colons(text).replace("[", "\\[").replace("]", "\\]")


def _colons(text: str) -> str:
    return text.replace("\\", "\\\\").replace(":", "\\:")


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"
