"""Rewrite the source distributions of real projects, and show that they only lose torch.

Fetches them from the configured index into a scratch folder (``--folder`` keeps it), then per project: every file that
requires something is rewritten and read again; the diff is summed up; look-alikes are counted before and after; ``pins
restore`` must give every byte back. ``--metadata`` also has each build backend make the metadata before and after,
without isolation, in an environment with the original's build requirements except torch: its Requires-Dist must be the
same without torch, torchvision and torchaudio. The default projects are ``DECLARING``: 28 that require torch, by
setup.py, setup.cfg or pyproject.toml, and do not need it to make their metadata. Exits 1 after an error, 3 if a project
is unavailable.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from packaging.version import InvalidVersion, Version

from wheel_checks.errors import WheelproofError
from wheel_checks.formats.index.file_names import sdist_version
from wheel_checks.sources.client import HttpClient
from wheel_checks.sources.installers.config import configured_indexes
from wheel_checks.sources.simple_index import SimpleIndex
from wheelproof.pins import Policy, plan
from wheelproof.pins.documents.names import project_of
from wheelproof.pins.model import Plan
from wheelproof.pins.rewrite.files.documents import read_all
from wheelproof.pins.rewrite.held import hold
from wheelproof.pins.rewrite.replace import write
from wheelproof.pins.rewrite.restoring import restore

PROJECTS = ("vllm==0.33.0", "nemo-toolkit==3.0.0", "unsloth", "deepspeed", "xformers", "megatron-core")
DECLARING = (
    *("mosaicml", "diffusers", "verl", "transformers", "accelerate", "trl", "peft", "deepspeed", "pytorch-lightning"),
    *("lightning", "torchmetrics", "timm", "open-clip-torch", "sentence-transformers", "kornia", "lm-eval", "litgpt"),
    *("llmcompressor", "compressed-tensors", "optimum", "datasets", "speechbrain", "ultralytics", "lightly", "unsloth"),
    *("pyro-ppl", "botorch", "gpytorch"),
)
CORE = Policy()


def main() -> int:
    """Report on each project; 1 when one is not as it should be, 3 when one cannot be had."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("projects", nargs="*", metavar="PROJECT[==VERSION]")
    parser.add_argument("--folder", type=Path, help="where the projects are unpacked, and kept")
    parser.add_argument("--metadata", action="store_true", help="have the build backends make the metadata, too")
    parser.add_argument("--diff", action="store_true", help="show what changes")
    options = parser.parse_args()
    status = 0
    with _folder(options.folder) as folder:
        for project in options.projects or (DECLARING if options.metadata else PROJECTS):
            try:
                root = fetch(project, folder)
            except WheelproofError as error:
                print(f"{project}: {error}", file=sys.stderr)
                status = max(status, 3)
                continue
            faults = report(root, metadata=options.metadata, diff=options.diff)
            for fault in faults:
                print(f"  FAULT: {fault}", flush=True)
            status = max(status, int(bool(faults)))
    return status


@contextmanager
def _folder(named: Path | None) -> Iterator[Path]:
    if named is not None:
        named.mkdir(parents=True, exist_ok=True)
        yield named
        return
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


def fetch(project: str, folder: Path) -> Path:
    """The unpacked source distribution. Raises WheelproofError when the index has none."""
    name, _, version = project.partition("==")
    with HttpClient(None) as client:
        index = SimpleIndex(client, configured_indexes(os.environ, Path.cwd()))
        listed = [file for file in index.files(name).files if file.file_name.endswith(".tar.gz")]
        versions = {parsed: file for file in listed if (parsed := _version(file.file_name, name))}
        fitting = [v for v, f in versions.items() if f.yanked is None and (v == Version(version) if version else True)]
        released = [v for v in fitting if not v.is_prerelease] or fitting
        if not released:
            raise WheelproofError(f"the index has no source distribution of {project}")
        chosen = versions[max(released)]
        archive = folder / chosen.file_name
        if not archive.exists():
            archive.write_bytes(client.get_page(chosen.url, {}).body)
    wanted = chosen.hashes.get("sha256")
    if wanted and hashlib.sha256(archive.read_bytes()).hexdigest() != wanted:
        raise WheelproofError(f"{archive.name} is not the file that the index lists")
    with tarfile.open(archive) as tar:
        tar.extractall(folder, filter="data")
    return folder / archive.name.removesuffix(".tar.gz")


def _version(file_name: str, project: str) -> Version | None:
    """The version of a source distribution; None for another archive (deepspeed once had ones of binaries)."""
    try:
        return Version(sdist_version(file_name, project) or "")
    except InvalidVersion:
        return None


def report(root: Path, *, metadata: bool, diff: bool) -> list[str]:
    """Rewrite one project, print the result, restore everything; returns faults."""
    faults: list[str] = []
    journal = root.parent / f"{root.name}.journal"
    before = _contents(root)
    others = Counter(_requirements(root, wanted=False))
    python = _environment(root) if metadata else Path()
    built = _metadata(root, python) if metadata else ()
    _reset(root, before)
    planned = plan([root], CORE)
    with hold(root.resolve(), journal) as tree:
        write(planned, tree)
    _print(root, planned, diff=diff)
    left = list(_requirements(root, wanted=True))
    faults += [f"{text} is left" for text in left]
    faults += [f"{text} is lost" for text in (others - Counter(_requirements(root, wanted=False)))]
    for path in root.rglob("*.toml"):
        try:
            tomllib.loads(path.read_text(encoding="utf-8"))
        except ValueError as error:
            if _parsed(before[str(path.relative_to(root))]):
                faults.append(f"{path.name} does not parse any more: {error}")
    if metadata:
        rewritten = _contents(root)
        faults += _compared(built, _metadata(root, python))
        _reset(root, rewritten)
    if plan([root], CORE).changed:
        faults.append("a second run would change something")
    if journal.exists():
        with hold(root.resolve(), journal) as tree:
            restore(tree)
    if _contents(root) != before:
        faults.append("restore did not give everything back")
    return faults


def _print(root: Path, planned: Plan, *, diff: bool) -> None:
    changes = [change for file in planned.files for change in file.changes]
    kinds = Counter(file.document.kind for file in planned.files)
    found = sum(len(file.document.requirements) for file in planned.files)
    print(f"{root.name}: {sum(kinds.values())} files read ({', '.join(f'{n} {k}' for k, n in sorted(kinds.items()))})")
    print(f"  {found} requirements, {len(changes)} removed in {len(planned.changed)} files")
    for file in planned.changed:
        names = Counter(change.found.name for change in file.changes)
        print(f"    {file.path.relative_to(root)}: {', '.join(f'{n} x {name}' for name, n in names.items())}")
        for change in file.changes if diff else ():
            print(f"      - {' '.join(change.found.text.split())}")
    codes = Counter(notice.code for file in planned.files for notice in file.notices)
    if codes:
        print(f"  warnings: {', '.join(f'{n} {code}' for code, n in codes.most_common())}")


def _requirements(root: Path, *, wanted: bool) -> Iterator[str]:
    """The requirements that the policy means, or all others, of files that are rewritten."""
    for path, document in read_all([root], lambda _: None):
        for found in document.requirements:
            meant = CORE.wants(found) and found.role != "conda"
            if document.rewritable and meant == wanted:
                yield f"{path.relative_to(root)}: {found.text}"


def _parsed(data: bytes) -> bool:
    try:
        tomllib.loads(data.decode())
    except ValueError:
        return False
    return True


def _contents(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def _environment(root: Path) -> Path:
    """The interpreter of an environment with ``build`` and the project's present build requirements."""
    folder = root.parent / f"{root.name}.env"
    config = root / "pyproject.toml"
    document = tomllib.loads(config.read_text(encoding="utf-8")) if config.exists() else {}
    requires = document.get("build-system", {}).get("requires", ["setuptools", "wheel"])
    requires = [text for text in requires if not CORE.means(project_of(text))]
    uv = [sys.executable, "-m", "uv"]
    subprocess.run([*uv, "venv", "--quiet", "--clear", folder], check=True)
    install = [*uv, "pip", "install", "--quiet", "--python", folder, "build", "setuptools", "wheel", *requires]
    subprocess.run(install, check=False)
    return folder / "bin" / "python"


def _metadata(root: Path, python: Path) -> tuple[str, ...] | str:
    """Requires-Dist and Provides-Extra that the build backend makes in an environment; else why not."""
    code = (
        "import sys; from build.util import project_wheel_metadata as metadata;"
        "m = metadata(sys.argv[1], isolated=False);"
        "print('\\n'.join('=' + k + ': ' + v for k in ('Requires-Dist', 'Provides-Extra') for v in m.get_all(k) or []))"
    )
    try:
        child = subprocess.run([python, "-c", code, root], capture_output=True, text=True, check=False, timeout=300)
    except subprocess.TimeoutExpired:
        return "took too long"
    if child.returncode == 0:
        return tuple(sorted(line for line in child.stdout.splitlines() if line.startswith("=")))
    words = [line.strip() for line in (child.stdout + child.stderr).splitlines() if "Error" in line]
    return f"failed ({words[-1][:100]})" if words else "failed"


def _compared(before: tuple[str, ...] | str, after: tuple[str, ...] | str) -> Iterator[str]:
    """The faults of the metadata after the rewrite; prints its size."""
    if isinstance(before, str):
        print(f"  metadata: not made before the rewriting: {before}")
        return
    if isinstance(after, str):
        yield f"the metadata could be made before, and cannot be any more: {after}"
        return
    lead = "=Requires-Dist: "
    gone = [line for line in before if line.startswith(lead) and CORE.means(project_of(line.removeprefix(lead)))]
    expected, actual = Counter(before) - Counter(gone), Counter(after)
    print(f"  metadata: {len(before)} lines, {len(gone)} on torch; after {len(after)}")
    yield from (f"the metadata still has {line[1:]}" for line in actual - expected)
    yield from (f"the metadata lost {line[1:]}" for line in expected - actual)


def _reset(root: Path, known: dict[str, bytes]) -> None:
    """Undo a build backend's changes to the files of a folder."""
    for name, data in _contents(root).items():
        if name not in known:
            (root / name).unlink()
        elif data != known[name]:
            (root / name).write_bytes(known[name])


if __name__ == "__main__":
    sys.exit(main())
