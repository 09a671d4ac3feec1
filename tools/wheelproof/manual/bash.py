"""The completion of bash 4.4 and later. It needs no other script, and asks wheelproof nothing while you type."""

from __future__ import annotations

from collections import defaultdict

from wheelproof.manual.model import Kind, Manual, Values

_HEAD = """\
# bash completion of wheelproof {version}, made by `wheelproof completion bash`

{lists}
_wheelproof() {{
    local word=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD-1]}} command= kind= words= prefix=
    COMPREPLY=()
    # readline takes --format=json for three words
    if [[ $word == = ]]; then
        word=
    elif [[ $previous == = ]]; then
        previous=${{COMP_WORDS[COMP_CWORD-2]}}
        [[ $previous != -* ]] && kind=file # of --also json=FILE
    fi
    (( COMP_CWORD > 1 )) && command=${{COMP_WORDS[1]}}
    if (( COMP_CWORD > 2 )); then
        case "$command ${{COMP_WORDS[2]}}" in
            {below})
                command+=" ${{COMP_WORDS[2]}}" ;;
        esac
    fi

    case "$command $previous" in
        # the value of an option
"""

_TAIL = """\
    esac
    if [[ -z $kind && $word == -* ]]; then
        kind=word
        case $command in
{options}
        esac
    elif [[ -z $kind ]]; then
        case $command in
{arguments}
        esac
    fi

    case $kind in
        file) compopt -o default 2>/dev/null; return ;;
        folder) compopt -o dirnames 2>/dev/null; return ;;
        list) [[ $word == *,* ]] && prefix=${{word%,*}}, word=${{word##*,}} ;;
        start) compopt -o nospace 2>/dev/null ;;
        word) ;;
        either) compopt -o default 2>/dev/null ;; # files when no word fits
        *) return ;;
    esac
    local IFS=$' \\t\\n'
    mapfile -t COMPREPLY < <(compgen -P "$prefix" -W "$words" -- "$word")
}}

complete -F _wheelproof wheelproof
"""


def render(manual: Manual) -> str:
    """The script, to be sourced."""
    lists = "".join(f"_wheelproof_{name}='{' '.join(words)}'\n" for name, words in manual.lists.items())
    below = "|".join(f"'{command.name}'" for command in manual.commands if " " in command.name)
    head = _HEAD.format(version=manual.version, lists=lists, below=below)
    tail = _TAIL.format(options=_options(manual), arguments=_arguments(manual))
    return head + _option_values(manual) + tail


def _option_values(manual: Manual) -> str:
    """A branch for each way in which a value is completed, with the options that have it."""
    having: dict[str, list[str]] = defaultdict(list)
    for command in manual.commands:
        for option in command.options:
            if option.values is not None:
                having[_setting(option.values)] += [f"'{command.name} {flag}'" for flag in option.flags]
    return "".join(f"        {'|'.join(patterns)})\n            {what} ;;\n" for what, patterns in having.items())


def _setting(values: Values) -> str:
    if values.kind is not Kind.WORD:
        return f"kind={values.kind}"
    kind = "list" if values.separated else "start" if values.suffix else "word"
    words = f"$_wheelproof_{values.shared}" if values.shared else f"'{_joined(values)}'"
    return f"kind={kind} words={words}"


def _joined(values: Values) -> str:
    return " ".join(word + values.suffix for word in values.words)


def _options(manual: Manual) -> str:
    branches = {"": "--help --version"}
    for command in manual.commands:
        branches[command.name] = " ".join(flag for option in command.options for flag in option.flags)
    return "\n".join(f"            '{name}') words='{flags}' ;;" for name, flags in branches.items())


def _arguments(manual: Manual) -> str:
    """What may stand where no option is: sub-commands, else what the first argument of a command takes."""
    commands = " ".join(command.name for command in manual.below(""))
    branches = {"": f"kind=word words='{commands} help'", "help": f"kind=word words='{commands}'"}
    for command in manual.commands:
        below = " ".join(c.name.rpartition(" ")[2] for c in manual.below(command.name))
        if below:
            branches[command.name] = f"kind={'either' if command.arguments else 'word'} words='{below}'"
        elif command.arguments:
            branches[command.name] = _setting(command.arguments[0].values)
    return "\n".join(f"            '{name}') {what} ;;" for name, what in branches.items())
