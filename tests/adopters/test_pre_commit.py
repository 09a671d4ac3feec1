"""The hooks in another project's repository, by the real pre-commit; and which files they are given."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.support.patience import PATIENCE
from wheelproof.pins.documents.reading import kind_of

ROOT = Path(__file__).parents[2]
HOOKS = {hook["id"]: hook for hook in yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())}

PATHS = """
requirements.txt requirements-dev.txt dev_requirements.txt Requirements.TXT deps/requirements.cuda.txt constraints.txt
build-constraint.txt overrides.txt excludes.txt x.pip requirements.in dev-requirements.in requirements-dev.in reqs.in
requirements/base.txt requirements/base.in requirements/gpu/base.in reqs/a.txt constraints/a.in a/requirement/b.txt
pyproject.toml cpu.pyproject.toml pyproject-cpu.toml pixi.toml hatch.toml my.hatch.toml setup.py setup.cfg setup.py.in
a/setup.py.txt environment.yml environment-dev.yaml conda.yml dev-environment.yml conda-environment.yml uv.lock
poetry.lock pdm.lock pixi.lock pylock.toml pylock.dev.toml Dockerfile docker/Dockerfile.cuda a/cuda.Dockerfile
Containerfile install.sh a/b.bash Makefile GNUmakefile Makefile.in a/build.mk justfile noxfile.py tox.ini
uv.toml Pipfile meta.yaml docs/README.rst INSTALL.md a/installation.md notebooks/a.ipynb .gitlab-ci.yml action.yml
.github/ISSUE_TEMPLATE/a.yml .github/actions/a/action.yaml .circleci/config.yml setup.bat
README.md notes.txt CMakeLists.txt MANIFEST.in version.in config.in a/b/requirements/c/d/e.txt Dockerfile.md
Dockerfile-notes.rst docker-compose.yml ruff.toml package.json my-requirements.md environment.py requirements.py
uv.lock.bak requirements.txt.bak setup.cfg.md data.lock .github/workflows/ci.yml myDockerfile requirements2.txt
"""


@pytest.mark.parametrize("path", PATHS.split())
@pytest.mark.parametrize("hook", HOOKS)
def test_a_hook_gets_the_files_that_the_command_finds_in_a_folder(hook: str, path: str) -> None:
    given = re.search(HOOKS[hook]["files"], path) is not None
    by_content = {"", "script", "yaml"}
    assert given == (kind_of(Path(path), named=False) not in by_content)


def run(*command: str | Path, cwd: Path, home: Path) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PRE_COMMIT_HOME": str(home), "GIT_CONFIG_GLOBAL": os.devnull, "NO_COLOR": "1"}
    return subprocess.run(
        command, cwd=cwd, env=environment, capture_output=True, text=True, check=False, timeout=PATIENCE
    )


@pytest.mark.online
def test_the_hooks_in_another_repository(tmp_path: Path) -> None:
    """This working tree as a commit of a copy, since pre-commit takes hooks from a commit of a repository."""
    source, project, home = tmp_path / "wheelproof", tmp_path / "project", tmp_path / "pre-commit"
    tracked = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(tracked, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\0")
    for name in filter(None, names):
        if (ROOT / name).is_file() and not name.startswith(("tests/", "benchmarks/", "docs/")):
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            (source / name).write_bytes((ROOT / name).read_bytes())
    project.mkdir()
    identity = ["-c", "user.name=A", "-c", "user.email=a@example.org"]
    for repository in (source, project):
        run("git", "init", "--quiet", cwd=repository, home=home)
    run("git", "add", ".", cwd=source, home=home)
    assert run("git", *identity, "commit", "--quiet", "--message=x", cwd=source, home=home).returncode == 0
    commit = run("git", "rev-parse", "HEAD", cwd=source, home=home).stdout.strip()

    hooks = [{"id": name} for name in HOOKS]
    config = {"repos": [{"repo": f"file://{source}", "rev": commit, "hooks": hooks}]}
    (project / ".pre-commit-config.yaml").write_text(yaml.safe_dump(config))
    (project / "requirements.txt").write_text("numpy\ntorch==2.10.0\n")
    (project / "pyproject.toml").write_text('[project]\nname = "a"\nversion = "1"\ndependencies = ["numpy"]\n')
    run("git", "add", ".", cwd=project, home=home)

    def pre_commit(*arguments: str) -> subprocess.CompletedProcess[str]:
        return run(sys.executable, "-m", "pre_commit", "run", "--all-files", *arguments, cwd=project, home=home)

    refused = pre_commit()
    assert refused.returncode == 1, refused.stdout + refused.stderr
    assert "no requirement may replace the installed torch" in refused.stdout
    assert "requirements.txt" in refused.stdout
    assert "torch==2.10.0" in refused.stdout
    assert "take torch out" not in refused.stdout, "the hook that rewrites runs only when it is requested"

    rewritten = pre_commit("--hook-stage", "manual", "wheelproof-pins-rewrite")
    assert "files were modified by this hook" in rewritten.stdout
    assert (project / "requirements.txt").read_text() == "numpy\n"

    run("git", "add", ".", cwd=project, home=home)
    accepted = pre_commit()
    assert accepted.returncode == 0, accepted.stdout + accepted.stderr
