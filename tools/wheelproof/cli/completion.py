"""``wheelproof completion SHELL``: the script with which a shell completes commands, options and their values."""

from __future__ import annotations

import argparse
import importlib

from wheelproof.cli.options import open_output

CONFIGURABLE = False


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``wheelproof completion``."""
    parser.add_argument(
        "shell",
        choices=("bash", "zsh", "fish"),
        metavar="SHELL",
        help="bash: source <(wheelproof completion bash) in ~/.bashrc; zsh: the same in ~/.zshrc, after compinit; "
        "fish: wheelproof completion fish | source in ~/.config/fish/config.fish",
    )


def run(arguments: argparse.Namespace) -> int:
    """Print the script. Raises WheelproofError when it cannot be written."""
    from wheelproof.cli.manual import read_manual  # imports every command and every rule

    renderer = importlib.import_module(f"wheelproof.manual.{arguments.shell}")
    with open_output("-") as stream:
        stream.write(renderer.render(read_manual()))
    return 0
