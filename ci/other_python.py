"""The unit tests on the Python of another Debian release, where no other Python can be installed. Needs root.

    python3 ci/other_python.py trixie          # Python 3.13
    python3 ci/other_python.py forky           # Python 3.14
    python3 ci/other_python.py forky tests/formats -x

The root file system is made once, in ``build/roots``, by mmdebstrap from Debian's packages alone. The tests run there,
in a clone of HEAD, as a normal user. pip is configured as here; ``--bind`` brings in a folder that its configuration
names.
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))  # a script finds only modules in its own folder

from ci.lanes import UNIT  # noqa: E402  # found by the line above

USER = 1000
PACKAGES = ROOT / "tools/wheelproof/matrix/executors/docker/packages.txt"
MORE = ["g++", "git", "procps", "util-linux"]
HOOKS = (
    'cp "$1/usr/share/base-passwd/passwd.master" "$1/etc/passwd"',
    'cp "$1/usr/share/base-passwd/group.master" "$1/etc/group"',
    f'echo "tester:x:{USER}:{USER}::/home/tester:/bin/bash" >> "$1/etc/passwd"',
    'cat "$1"/usr/share/ca-certificates/mozilla/*.crt > "$1/etc/ssl/certs/ca-certificates.crt"',
)
SETUP = """
python3 -m venv --clear /venv
/venv/bin/pip install -qq --disable-pip-version-check --require-hashes -r /src/ci/constraints.txt
/venv/bin/pip install -qq --no-index --no-deps --no-build-isolation --editable /src
"""


def make_root(suite: str, folder: Path) -> None:
    """Unpack a release into ``folder``. An old index is accepted: a mirror may be late, and its signature is valid."""
    packages = [line for line in PACKAGES.read_text().splitlines() if line and not line.startswith("#")] + MORE
    command = ["mmdebstrap", "--quiet", "--variant=extract", '--aptopt=Acquire::Check-Valid-Until "false"']
    command += [f"--include={','.join(packages)}", "--hook-dir=/usr/share/mmdebstrap/hooks/merged-usr"]
    folder.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run([*command, *(f"--extract-hook={hook}" for hook in HOOKS), suite, str(folder)], check=True)


def inside(folder: Path, script: str, binds: list[str], *, user: int = 0) -> int:
    """Run a script of bash in ``folder``, which sees /proc and /dev and nothing else of this host but ``binds``."""
    configured = [value for name, value in os.environ.items() if name.startswith("PIP_") and value.startswith("/")]
    mounts = ["/proc", "/dev", "/sys", "/etc/resolv.conf", "/etc/hosts", "/etc/pip.conf", *configured, *binds]
    lines = ["set -e"]
    for path in filter(os.path.exists, mounts):
        target = shlex.quote(f"{folder}{path}")
        make = f"mkdir -p {target}" if Path(path).is_dir() else f"mkdir -p $(dirname {target}); touch {target}"
        lines.append(f"{make}; mount --rbind {shlex.quote(path)} {target}")
    chroot = f"chroot --userspec={user}:{user} {shlex.quote(str(folder))} /bin/bash -ec {shlex.quote(script)}"
    home = {"HOME": "/home/tester" if user else "/root", "LANG": "C.UTF-8", "PATH": "/usr/bin:/bin:/usr/sbin:/sbin"}
    kept = {
        name: value for name, value in os.environ.items() if name.startswith("PIP_") or name.lower().endswith("proxy")
    }
    command = ["unshare", "--mount", "--propagation=private", "bash", "-c", "\n".join([*lines, f"exec {chroot}"])]
    return subprocess.run(command, env={**kept, **home}, check=False).returncode


def main() -> int:
    """Make the root when it is missing, then run the tests: pytest's exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("suite", help="a Debian release")
    parser.add_argument("--bind", action="append", default=[], metavar="PATH", help="also there, inside")
    options, arguments = parser.parse_known_args()
    if os.getuid():
        parser.error("only root can make and enter a root file system")
    folder = ROOT / "build/roots" / options.suite
    if not (folder / "usr/bin/python3").exists():
        make_root(options.suite, folder)
    shutil.rmtree(folder / "src", ignore_errors=True)
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(folder / "src")], check=True)
    subprocess.run(["chown", "-R", f"{USER}:{USER}", str(folder / "src")], check=True)
    (folder / "home/tester").mkdir(parents=True, exist_ok=True)
    os.chown(folder / "home/tester", USER, USER)
    (folder / "tmp").chmod(0o1777)
    pins = f"{(ROOT / 'ci/constraints.txt').stat().st_mtime_ns}"
    stamp = folder / "pins"
    if not stamp.exists() or stamp.read_text() != pins:
        if status := inside(folder, SETUP, options.bind):
            return status
        stamp.write_text(pins)
    tests = shlex.join(["/venv/bin/python", "-m", "pytest", "-n", "2", "-m", UNIT, *arguments])
    return inside(folder, f"cd /src; python3 --version; {tests}", options.bind, user=USER)


if __name__ == "__main__":
    sys.exit(main())
