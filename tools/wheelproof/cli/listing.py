"""Lists of commands and examples for help texts, folded to the width of the terminal.

It imports nothing that takes time, since ``wheelproof --help`` needs it.
"""

import os

# The commonest uses of each command, in the order in which people meet them.
EXAMPLES: dict[str, tuple[str, ...]] = {
    "verify": (
        "verify torch==2.11.0 --platform aarch64 --python 3.12 --gpu GB200",
        "verify dist/*.whl --expect cuda",
        "verify --installed",
    ),
    "stack": (
        "stack -r requirements.txt --platform aarch64 --python 3.12 --gpu GB200",
        "stack uv.lock --gpu GB200",
    ),
    "release": ("release dist --expect release.toml", "release torch==2.11.0 --expect release.toml"),
    "diff": ("diff torch==2.10.0 torch==2.11.0 --platform aarch64", "diff torch==2.11.0 --platform aarch64,x86_64"),
    "pins": ("pins check", "pins rewrite --dry-run", "pins predict pip install vllm"),
    "pins rewrite": ("pins rewrite --dry-run", "pins rewrite requirements.txt --mode unpin"),
    "pins restore": ("pins restore",),
    "pins check": ("pins check", "pins check requirements.txt --installed 2.11.0+cu130"),
    "pins explain": ("pins explain 'torch>2.7.0' --installed 2.7.0+cu128",),
    "pins guard": ("pins guard --install", "pins guard --check"),
    "pins predict": ("pins predict pip install vllm", "pins predict uv sync"),
    "use-existing-torch": ("use-existing-torch --dry-run",),
    "doctor": ("doctor", "doctor --fix --dry-run", "doctor --expect '4 x GB200'"),
    "explain": ("explain job.log",),
    "smoke": ("smoke", "smoke --level full", "smoke --compile-only --target GB200,sm_90"),
    "matrix": ("matrix list", "matrix run --executor venv", "matrix plan --to github"),
    "matrix run": ("matrix run --executor venv --only 'x86_64*'",),
    "matrix plan": ("matrix plan --to github --output .github/workflows/matrix.yml",),
    "matrix merge": ("matrix merge records/",),
    "report": ("report merge reports/",),
    "report merge": ("report merge reports/ --expect-hosts 'node[01-18]'",),
    "rules": ("rules WHL2", "rules WHL201"),
    "schema": ("schema report",),
    "new": ("new rules acme-rules",),
    "completion": ("completion bash",),
}


def listed(rows: dict[str, str]) -> str:
    """Names and what they are, two columns, the second folded."""
    column = max(map(len, rows)) + 4
    width = max(columns(), column + 20)
    lines = []
    for name, text in rows.items():
        line = f"  {name}".ljust(column - 1)
        for word in text.split():
            if len(line) + 1 + len(word) > width:
                lines.append(line)
                line = " " * (column - 1)
            line += f" {word}"
        lines.append(line)
    return "\n".join(lines)


def columns() -> int:
    """The width of the terminal, 80 elsewhere."""
    given = os.environ.get("COLUMNS", "")
    try:
        return int(given) if given.isdecimal() and int(given) else os.get_terminal_size().columns or 80
    except OSError:
        return 80


def examples_of(command: str) -> str:
    """The commonest uses of a command, a line each; "" where it is used in one way alone."""
    return "\n".join(f"  wheelproof {example}" for example in EXAMPLES.get(command, ()))
