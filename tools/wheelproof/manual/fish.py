"""The completion of fish 3.4 and later: a line for each option of each command."""

from __future__ import annotations

from wheelproof.manual.model import Command, Kind, Manual, Option, Values
from wheelproof.manual.wording import brief

_HEAD = """\
# fish completion of wheelproof {version}, made by `wheelproof completion fish`

{lists}
function __wheelproof_on -d 'whether this command has been typed, "" if none so far'
    set -l words (commandline -opc)[2..]
    set -l command $words[1]
    if contains -- "$words[1..2]" {below}
        set command "$words[1..2]"
    end
    test "$command" = "$argv"
end

function __wheelproof_format_and_file -d 'json=, and the files after it'
    if string match -qr '^(?<format>[a-z]+)=(?<start>.*)$' -- (commandline -ct)
        printf "$format=%s\n" (__fish_complete_path $start)
    else
        printf '%s=\n' $argv
    end
end

complete -c wheelproof -f
complete -c wheelproof -n '__wheelproof_on ""' -s h -l help -d 'show the help'
complete -c wheelproof -n '__wheelproof_on ""' -s V -l version -d 'show the version'
"""


def render(manual: Manual) -> str:
    """The script, to be sourced or put into a folder of ``fish_complete_path``."""
    lists = "".join(f"set -g __wheelproof_{name} {' '.join(words)}\n" for name, words in manual.lists.items())
    below = " ".join(f"'{command.name}'" for command in manual.commands if " " in command.name)
    lines = [_HEAD.format(version=manual.version, lists=lists, below=below)]
    for name in ("", *(command.name for command in manual.commands)):
        lines += [_line(name, f"-a {c.name.rpartition(' ')[2]}", brief(c.summary)) for c in manual.below(name)]
    lines += [line for command in manual.commands for line in _of_command(command)]
    return "".join(lines)


def _of_command(command: Command) -> list[str]:
    lines = [_line(command.name, _option(option), brief(option.help)) for option in command.options]
    if command.arguments and (what := _values(command.arguments[0].values)):
        lines.append(_line(command.name, what))
    return lines


def _line(command: str, what: str, description: str = "") -> str:
    told = f" -d {_quoted(description)}" if description else ""
    on = _quoted(f'__wheelproof_on "{command}"')
    return f"complete -c wheelproof -n {on} {what}{told}\n"


def _option(option: Option) -> str:
    flags = " ".join(f"-l {flag[2:]}" if flag.startswith("--") else f"-s {flag[1:]}" for flag in option.flags)
    if option.values is None:
        return flags
    return f"{flags} {'-r' if option.values.kind is Kind.FILE else '-x'} {_values(option.values)}".rstrip()


def _values(values: Values) -> str:
    if values.kind is Kind.FILE:
        return "-F"
    if values.kind is Kind.FOLDER:
        return "-a '(__fish_complete_directories)'"
    if values.kind is Kind.FREE:
        return ""
    words = f"$__wheelproof_{values.shared}" if values.shared else " ".join(values.words)
    if values.suffix:
        return f"-a '(__wheelproof_format_and_file {words})'"
    if values.separated:
        return f'-a \'(__fish_complete_list , "string split \\" \\" \\"{words}\\"")\''
    return f"-a {_quoted(words)}"


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
