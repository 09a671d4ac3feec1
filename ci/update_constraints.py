"""Pin the development environment: versions and hashes of everything in pyproject.toml.

Three files, which agree on every version: ``constraints.txt`` has the group ``dev`` and the build system,
``constraints-run.txt`` only packages to build and run wheelproof, and ``constraints-mutation.txt`` that and the group
``mutation``. Pins that still fit are kept; ``--upgrade`` upgrades everything. ``--check`` writes nothing and exits 1
when a file no longer fits pyproject.toml.

The files name no index: users install from their own, and the hashes are valid for any.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
HEADER = "# Made by ci/update_constraints.py from pyproject.toml. Install with: pip install --require-hashes -r {}\n"
FILES = ("constraints.txt", "constraints-run.txt", "constraints-mutation.txt")


def compile_constraints(folder: Path, *, upgrade: bool) -> None:
    """Bring the files in ``folder`` up to date. Raises CalledProcessError when uv cannot resolve the requirements."""
    build_requirements = tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]["requires"]
    everything, run, mutation = (folder / name for name in FILES)
    agree = ["--constraint", str(everything)]
    scopes = {everything: ["--group", "dev"], run: agree, mutation: ["--group", "mutation", *agree]}
    for output, scope in scopes.items():
        command = [sys.executable, "-m", "uv", "pip", "compile", "pyproject.toml", "-", *scope]
        command += ["--universal", "--python-version=3.11", "--generate-hashes", "--output-file", str(output)]
        command += ["--no-header", "--no-annotate", "--quiet", *(["--upgrade"] if upgrade else [])]  # no path gets in
        requirements = "\n".join(build_requirements)
        subprocess.run(command, cwd=ROOT, input=requirements, text=True, check=True, stdout=subprocess.DEVNULL)
        output.write_text(HEADER.format(f"ci/{output.name}") + output.read_text())


def main() -> int:
    """Write or check the files; 1 when ``--check`` finds a difference."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--upgrade", action="store_true")
    options = parser.parse_args()
    present = ROOT / "ci"
    with tempfile.TemporaryDirectory() as name:
        made = Path(name)
        for file in FILES:
            if (present / file).exists():
                shutil.copy(present / file, made)
        compile_constraints(made, upgrade=options.upgrade)
        texts = {file: (made / file).read_text() for file in FILES}
    stale = [file for file in FILES if not (present / file).exists() or (present / file).read_text() != texts[file]]
    if options.check:
        if stale:
            print(f"stale: {', '.join(stale)}; run python ci/update_constraints.py", file=sys.stderr)
        return bool(stale)
    for file in stale:
        (present / file).write_text(texts[file])
    print(f"{len(FILES)} files, {len(stale)} written")
    return 0


if __name__ == "__main__":
    sys.exit(main())
