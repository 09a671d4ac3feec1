"""Compare the versions that ``stack`` resolves with ``uv pip compile``, for public sets of requirements.

uv runs without ``--no-build`` here, and with the same static metadata (``dependency-metadata``) of the source archives
that our resolution read. No code of an archive can run: uv is offline, with a cache that only runs with ``--no-build``
have filled, so that it contains no archive. Where plain uv wants to build one, its error says so.
Exits 1 when versions differ, 3 when a set cannot be compared.
"""

from __future__ import annotations

import argparse
import itertools
import os
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.version import Version

from wheel_checks.errors import WheelproofError
from wheel_checks.facts.wheel.source_archive import SourceArchive
from wheel_checks.formats.lock.pylock import parse_pylock
from wheel_checks.formats.lock.tables import MAX_SIZE
from wheel_checks.formats.sdist.static_metadata import StaticMetadata
from wheel_checks.phrases import summarised
from wheel_checks.sources.client import HttpClient
from wheel_checks.sources.http.cache import ByteCache, default_cache_path
from wheel_checks.sources.installers.config import IndexConfig, configured_indexes
from wheel_checks.sources.regular_file import read_start
from wheel_checks.sources.simple_index import SimpleIndex
from wheel_checks.sources.uv.explanation import unwrapped
from wheel_checks.sources.uv.own_configuration import (
    config_options,
    configuration,
    private_folder,
    run_uv_alone,
    toml_text,
    write_private,
)
from wheel_checks.sources.uv.resolver import Resolution, python_platform, resolve
from wheel_checks.targets.target import Target, parse_targets
from wheelproof.wheels.indexes import KnownIndexes
from wheelproof.wheels.resolving import ArchiveSearch

MACHINES = ("x86_64", "aarch64")
COMFYUI = (  # its requirements.txt
    *("comfyui-frontend-package", "comfyui-workflow-templates", "torch", "torchsde", "torchvision", "torchaudio"),
    *("numpy>=1.25.0", "einops", "transformers>=4.50.3", "tokenizers>=0.13.3", "sentencepiece", "safetensors>=0.4.2"),
    *("aiohttp>=3.11.8", "yarl>=1.18.0", "pyyaml", "Pillow", "scipy", "tqdm", "psutil", "alembic", "SQLAlchemy"),
    *("av>=14.2.0", "kornia>=0.7.1", "spandrel", "soundfile", "pydantic~=2.0", "pydantic-settings~=2.0"),
)
SETS: tuple[tuple[str, tuple[str, ...]], ...] = (  # Python, requirements
    ("3.12", ("vllm",)),
    ("3.11", ("sglang",)),
    ("3.13", ("transformers", "accelerate", "deepspeed")),
    ("3.12", ("lightning[extra]",)),
    ("3.12", ("nemo-toolkit[asr]",)),
    ("3.12", ("axolotl", "deepspeed", "flash-attn")),
    ("3.11", ("unsloth",)),
    ("3.10", ("diffusers", "xformers", "torch")),
    ("3.12", ("ray[all]",)),
    ("3.13", COMFYUI),
    ("3.12", ("transformer-engine[pytorch]", "flash-attn", "torch", "deepspeed")),
    ("3.12", ("vllm==0.20.0",)),
    ("3.12", ("jax[cuda13]", "flax", "optax")),
    ("3.12", ("openai-whisper", "faster-whisper", "whisperx", "demucs")),
    ("3.12", ("mamba-ssm", "causal-conv1d", "fairscale")),
    ("3.10", ("fairseq", "sacremoses", "pyahocorasick")),
    ("3.11", ("mmcv", "mmdet", "mmengine")),
    ("3.13", ("auto-gptq", "autoawq", "optimum")),
    ("3.14", ("horovod", "petastorm", "pyspark")),
    ("3.13", ("torch-scatter", "torch-sparse", "torch-geometric")),
    ("3.14", ("dlib", "face-recognition", "insightface")),
    ("3.11", ("natten", "grouped-gemm", "megablocks[all]")),
    ("3.12", ("llama-cpp-python", "ctransformers", "gguf")),
    ("3.12", ("flash-attn-4",)),
)


def main() -> int:
    """Print a line for each set; see the module for the status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin no set after so many seconds")
    parser.add_argument("--only", type=int, action="append", help="the number of a set (repeatable)")
    parser.add_argument("--machine", choices=MACHINES, action="append", help="both if none is given")
    options = parser.parse_args()
    status, begin = 0, time.monotonic()
    config = configured_indexes(os.environ, Path.cwd())
    with tempfile.TemporaryDirectory() as cache, HttpClient(ByteCache(default_cache_path())) as client:
        environ = {**os.environ, "UV_CACHE_DIR": cache}
        wanted = [number for number in range(len(SETS)) if not options.only or number in options.only]
        for number, machine in itertools.product(wanted, options.machine or MACHINES):
            if time.monotonic() - begin > options.seconds:
                break
            python, requirements = SETS[number]
            (target,) = parse_targets([machine], [python])
            try:
                result, code = compare(requirements, target, config, client, environ)
            except WheelproofError as error:
                result, code = f"not compared: {error}", 3
            print(f"{number}: {summarised(requirements, 4, separator=' ')} ({target.label}): {result}", flush=True)
            status = status or code
    return status


def compare(
    requirements: tuple[str, ...], target: Target, config: IndexConfig, client: HttpClient, environ: Mapping[str, str]
) -> tuple[str, int]:
    """The result, and its exit status."""

    def run(more_links: tuple[str, ...], constraints: tuple[str, ...]) -> Resolution:
        places = replace(config, find_links=(*config.find_links, *more_links))
        return resolve(
            requirements, target, places, constraints=constraints, leave_out_unusable=not constraints, environ=environ
        )

    indexes = KnownIndexes(SimpleIndex(client, config))
    search = ArchiveSearch(run, map(Requirement, requirements), target, indexes, client)
    settled = search.settle()
    ours = {package.name: package.version for package in settled.resolution.packages}
    built = sorted(settled.archives)
    if settled.resolution.unusable or settled.unfinished:
        left = [item.name for item in settled.resolution.unusable]
        return f"not compared: {settled.unfinished or f'no file of {left}'}", 3
    theirs = plain_uv(requirements, target, config, search, environ)
    if isinstance(theirs, str):
        return f"not compared: {theirs[:600]}", 3
    names = sorted(name for name in ours.keys() | theirs.keys() if not _same(ours.get(name), theirs.get(name)))
    counted = f"{len(ours)} packages, {len(built)} of them source archives ({', '.join(built) or 'none'})"
    if not names:
        return f"equal: {counted}", 0
    differences = ", ".join(f"{name} {ours.get(name, 'absent')} (uv: {theirs.get(name, 'absent')})" for name in names)
    return f"DIFFERENT: {differences}; {counted}", 1


def _same(a: str | None, b: str | None) -> bool:
    return a == b or (a is not None and b is not None and Version(a) == Version(b))


def plain_uv(
    requirements: tuple[str, ...],
    target: Target,
    config: IndexConfig,
    search: ArchiveSearch,
    environ: Mapping[str, str],
) -> dict[str, str] | str:
    """The versions that uv chooses without ``--no-build``; else its error."""
    with private_folder() as folder:
        known = [_metadata(archive) for archive, _ in search.folder.archives.values()]
        text = configuration(config, environ) + "\n" + toml_text({"dependency-metadata": known})
        lock = folder / "pylock.toml"
        arguments = ["pip", "compile", "--quiet", "--offline", "--no-header", "--format", "pylock.toml"]
        arguments += [str(write_private(folder / "requirements.in", "\n".join(requirements) + "\n"))]
        arguments += ["--python-platform", python_platform(target), "--python", sys.executable]
        arguments += ["--python-version", ".".join(map(str, target.python)), "--output-file", str(lock)]
        answer = run_uv_alone([*arguments, *config_options(folder, text)], environ, 300)
        if answer.status != 0:
            return unwrapped(answer.words)[0]
        return {package.name: package.version for package in parse_pylock(read_start(lock, MAX_SIZE + 1), folder)}


def _metadata(archive: SourceArchive) -> dict[str, Any]:
    metadata = archive.metadata
    if not isinstance(metadata, StaticMetadata):
        raise TypeError(f"{archive.file_name} was used without metadata")
    row: dict[str, Any] = {
        "name": archive.name,
        "version": archive.version,
        "requires-dist": list(metadata.requirements),
    }
    row |= {"provides-extra": list(metadata.extras)} if metadata.extras else {}
    return row | ({"requires-python": metadata.requires_python} if metadata.requires_python else {})


if __name__ == "__main__":
    sys.exit(main())
