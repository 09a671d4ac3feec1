"""Each format, in the ways in which real files differ from the corpus: before, and after torch has gone."""

from __future__ import annotations

from pathlib import Path

import pytest

from wheel_checks.errors import FormatError
from wheelproof.pins import Mode, NameSet, Policy
from wheelproof.pins.documents.reading import READERS, read_source
from wheelproof.pins.documents.source import decode
from wheelproof.pins.model import FilePlan
from wheelproof.pins.rewrite.planning import plan_document

REQUIREMENTS, PYPROJECT = "requirements", "pyproject"


def planned(kind: str, text: str | bytes, policy: Policy | None = None) -> FilePlan:
    data = text.encode() if isinstance(text, str) else text
    path = Path("file")
    source = decode(path, data, declared=READERS[kind][1])
    return plan_document(path, read_source(source, kind), policy or Policy())


def after(kind: str, text: str, **policy: object) -> str:
    return planned(kind, text, Policy(**policy)).rewritten.decode()  # type: ignore[arg-type]  # as the test says


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        ("torch==2.8 ; python_version<'3' # x\nsix", "six"),
        ("torch==2.8\r\nsix\r\n", "six\r\n"),
        ("\ufefftorch\nsix\n", "\ufeffsix\n"),
        ("six\n-e git+https://github.com/pytorch/vision.git@v1#egg=torchvision\n", "six\n"),
        ("git+ssh://git@github.com/pytorch/audio.git\n", ""),
        ("git+https://github.com/pytorch/torchtitan\n", "git+https://github.com/pytorch/torchtitan\n"),
        ("torch-2.8.0-cp312-cp312-linux_x86_64.whl\n", ""),
        ("https://x/torch-2.8.0.tar.gz\n", ""),
        ("torch (>=2.7)\nsix\n", "six\n"),
        ("torch==2.8\n    # via\n    #   six\n    #   -r x.in\nsix\n    # via torch\n", "six\n    # via torch\n"),
        ("torch==2.8\n# via the base image\n#   more\n# other\n", "#   more\n# other\n"),
        ("torch ; sys_platform == 'never'\n", "torch ; sys_platform == 'never'\n"),
        ("six \\\ntorch\n", "six \\\ntorch\n"),  # one requirement, and a broken one: not ours to fix
        ("torch \\\n# comment\nsix\n", "# comment\nsix\n"),
        ("torch\x0csix\n", "six\n"),
        ("${TORCH}\n", "${TORCH}\n"),
    ],
)
def test_requirements_files(before: str, expected: str) -> None:
    assert after(REQUIREMENTS, before) == expected


def test_a_declared_encoding_is_kept() -> None:
    data = "# -*- coding: latin-1 -*-\n# caf\xe9\ntorch # \xe9\nsix # \xe9\n".encode("latin-1")
    assert planned(REQUIREMENTS, data).rewritten == data.replace(b"torch # \xe9\n", b"")


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be", "utf-32"])
def test_an_encoding_with_a_mark_is_kept(encoding: str) -> None:
    mark = "\ufeff" if encoding == "utf-16-be" else ""
    data = f"{mark}six # é\ntorch\nnumpy\n".encode(encoding)
    assert planned(REQUIREMENTS, data).rewritten == f"{mark}six # é\nnumpy\n".encode(encoding)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"six\ntorch # caf\xe9\n", r"file is not valid utf-8 \(line 2: invalid continuation byte\)"),
        (b"# coding: klingon\ntorch\n", "file declares the encoding klingon"),
        (b"# coding: utf-7\ntorch\n", "file declares the encoding utf-7"),
        (b"\xff\xfet", "file is not valid utf-16-le"),
    ],
)
def test_an_encoding_that_does_not_hold_is_refused(data: bytes, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        planned(REQUIREMENTS, data)


def array(content: str) -> str:
    return f"[project]\ndependencies = {content}\n"


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        ('["six", "torch"]', '["six"]'),
        ('["torch", "six"]', '["six"]'),
        ('["six", "torch", "jax"]', '["six", "jax"]'),
        ('["six", "torch", "torchaudio"]', '["six"]'),
        ('["torch", "six", "torchaudio"]', '["six"]'),
        ('["six", "torch", "torchaudio",]', '["six",]'),
        ('[ "torch" ]', "[]"),
        ('[ "six" , "torch" ]', '[ "six" ]'),
        ('["torch", # why\n "six"]', '[\n "six"]'),
        ('[\n "six",\n "torch"\n]', '[\n "six",\n]'),
        ('[\n "six", "torch",\n "jax"\n]', '[\n "six",\n "jax"\n]'),
        ('[\n "six", "torch", # both\n]', '[\n "six", # both\n]'),
        ('[\n "torch", # a\n # b\n "torchaudio", # c\n]', "[\n # b\n]"),
        ('[\n "torch"\n , "six"\n]', '[\n "six"\n]'),
        ('[\n "six"\n , "torch"\n]', '[\n "six"\n]'),
        ("[\"torch>=2; sys_platform == 'never'\"]", "[\"torch>=2; sys_platform == 'never'\"]"),
        ("['''torch''', 'a\\b']", "['a\\b']"),
    ],
)
def test_arrays(before: str, expected: str) -> None:
    assert after(PYPROJECT, array(before)) == array(expected)


def test_a_comma_first_array_loses_its_first_item() -> None:
    before = array('[\n    "torch" # torch\n    , "six"\n    , "jax"\n]')
    assert after(PYPROJECT, before) == array('[\n    "six"\n    , "jax"\n]')


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        (
            "[tool.poetry.dependencies]\ntorch.version = '2'\ntorch.source = 'x'\nsix = '1'\n",
            "[tool.poetry.dependencies]\nsix = '1'\n",
        ),
        (
            "[tool.poetry.dependencies.torch]\nversion = '2'\n# c\nsource = 'x'\n\n[tool.other]\n",
            "\n[tool.other]\n",
        ),
        ("[tool.poetry]\ndependencies = {torch = '2', six = '1'}\n", "[tool.poetry]\ndependencies = {six = '1'}\n"),
        ("[tool.poetry]\ndependencies = {six = '1', torch = '2'}\n", "[tool.poetry]\ndependencies = {six = '1'}\n"),
        (
            "[[tool.poetry.dependencies.torch]]\nversion='1'\n[[tool.poetry.dependencies.torch]]\nversion='2'\n",
            "",
        ),
        ("[tool.pdm.resolution.overrides]\ntorch = '2.8'\nsix = '1'\n", "[tool.pdm.resolution.overrides]\nsix = '1'\n"),
        ("[tool.pdm.dev-dependencies]\nx = ['torch', 'six']\n", "[tool.pdm.dev-dependencies]\nx = ['six']\n"),
        ("[tool.hatch.envs.gpu]\ndependencies = ['torch']\n", "[tool.hatch.envs.gpu]\ndependencies = []\n"),
        ("[tool.pixi.feature.a.pypi-dependencies]\ntorch='*'\n", "[tool.pixi.feature.a.pypi-dependencies]\n"),
        ("project.dependencies = ['torch']\n", "project.dependencies = []\n"),
        ("[tool.uv.extra-build-dependencies]\nx = ['torch']\n", "[tool.uv.extra-build-dependencies]\nx = ['torch']\n"),
    ],
)
def test_tables(before: str, expected: str) -> None:
    assert after(PYPROJECT, before) == expected


def test_hatch_toml() -> None:
    assert after("hatch", "[envs.x]\nextra-dependencies = ['torch', 'six']\n") == (
        "[envs.x]\nextra-dependencies = ['six']\n"
    )


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        ("- torch==2\n- six\n", "- six\n"),
        ("- 'torch==2'  # c\n- six\n", "- six\n"),
        ("- torchvision-extra\n", "- torchvision-extra\n"),
    ],
)
def test_the_pip_list_of_a_conda_environment(before: str, expected: str) -> None:
    frame = "name: x\ndependencies:\n  - pytorch=2\n  - pip:\n{}  - six\nvariables:\n  torch: x\n"
    indented = [frame.format("".join(f"    {line}\n" for line in t.splitlines())) for t in (before, expected)]
    assert after("conda", indented[0]) == indented[1]


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        ("- &t torch==2  # c\n- six\n", "- six\n"),
        ("- >-\n  torch==2\n\n- |\n  six\n", "\n- |\n  six\n"),
        ("- torch\n  ==2\n- six\n", "- six\n"),
        ('- "torch\\u003d=2"\n- six\n', "- six\n"),
        ("- !!str torch==2\n- six\n", "- six\n"),
        ("- {a: [torch==9]}\n- torch\n", "- {a: [torch==9]}\n"),
        ("[ &x torch, # a, b\n  six]\n", "[\n  six]\n"),
        ("{% if a %}\n- torch=={{ v }}\n{% endif %}\n- six\n", "{% if a %}\n{% endif %}\n- six\n"),
        ("# {% if\n- torch==2\n# %}\n- six\n", "# {% if\n# %}\n- six\n"),
        ("{# torch\n - torch #}\n- torch{% if {'a': 1} %}==2{% endif %}\n- six\n", "{# torch\n - torch #}\n- six\n"),
    ],
)
def test_every_form_of_yaml(before: str, expected: str) -> None:
    frame = "notes: |\n  dependencies:\n  - torch\ndependencies:\n- pip:\n{}- python\n"
    indented = [frame.format("".join(f"   {line}\n" for line in t.splitlines())) for t in (before, expected)]
    assert after("conda", indented[0]) == indented[1]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x: &d\n  - torch==2\ndependencies:\n  - pip: *d\n", "x: &d\ndependencies:\n  - pip: *d\n"),
        ("b: &b\n  dependencies: [six, {pip: [torch]}]\n<<: *b\n", "b: &b\n  dependencies: [six, {pip: []}]\n<<: *b\n"),
        ("? dependencies\n:\n  - pip:\n    - torch\n    - six\n", "? dependencies\n:\n  - pip:\n    - six\n"),
    ],
)
def test_what_aliases_repeat(text: str, expected: str) -> None:
    assert after("conda", text) == expected


def test_an_item_that_aliases_repeat_cannot_go_alone() -> None:
    text = "x:\n- &t torch\ndependencies:\n- pip:\n  - *t\n  - &v torchvision\n  - *v\n"
    file = planned("conda", text)

    assert file.rewritten.decode() == text.replace("  - *t\n", "").replace("  - *v\n", "")
    assert [notice.message for notice in file.notices] == [
        "torchvision cannot be removed alone: kept (remove it by hand)"
    ]


def test_conda_packages_go_on_request() -> None:
    text = "dependencies:\n- conda-forge::pytorch-gpu>=2  # c\n- python\n- pip:\n  - torch\n"
    assert after("conda", text, conda=True) == "dependencies:\n- python\n- pip:\n"


def test_a_setup_py_keeps_what_is_not_literal() -> None:
    text = (
        "setup(\n  # é torch\n  install_requires=['é' 'x', ('torch'), f'torch=={v}'] + more,\n"
        "  extras_require={'é': ['torch', 'six'], **others}, tests_require=[\n    'torch',\n    'six',\n  ])\n"
    )
    file = planned("setup.py", text)

    without = text.replace("['torch', 'six'], **", "['six'], **").replace("    'torch',\n", "")
    assert file.rewritten.decode() == without.replace("'x', ('torch'), f", "'x', f")
    assert [notice.message for notice in file.notices] == [
        "f'torch=={v}' cannot be removed alone: kept (remove it by hand)",
        "install_requires has more, which is not literal: not read, not changed",
        "extras_require has others, which is not literal: not read, not changed",
    ]


def test_a_parenthesised_literal_goes_with_its_parentheses() -> None:
    assert after("setup.py", "setup(install_requires=[('torch'), ('six')])\n") == "setup(install_requires=[('six')])\n"


@pytest.mark.parametrize(
    "text",
    [
        "x = 1\n# dependencies = ['torch']\n",
        '"""\n# /// script\n# dependencies = []\n# ///\n"""\nimport torch\n',
    ],
)
def test_a_script_without_requirements_stays(text: str) -> None:
    assert after("script", text) == text


def test_two_blocks_in_a_script_are_refused() -> None:
    block = "# /// script\n# dependencies = ['torch']\n# ///\n"
    with pytest.raises(FormatError, match="2 blocks of script metadata"):
        planned("script", block + "\n" + block)


def test_a_script_with_crlf() -> None:
    text = "# /// script\r\n# dependencies = [\r\n#  'torch',\r\n#  'six',\r\n# ]\r\n# ///\r\nimport torch\r\n"
    assert after("script", text) == text.replace("#  'torch',\r\n", "")


@pytest.mark.parametrize(
    ("kind", "text", "message"),
    [
        (PYPROJECT, "[project\n", r"file is not valid TOML: .*line 1"),
        ("setup.cfg", "x\n[y]\n", r"file is not a valid setup\.cfg: .*"),
        ("setup.py", "x = (\n", r"file is not valid Python \(line 1\)"),
        (PYPROJECT, "x = " + "[" * 5000, "file is not valid TOML"),
    ],
)
def test_a_broken_document_is_refused(kind: str, text: str, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        planned(kind, text)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("RUN pip install --no-cache-dir torch==2.8 six && echo torch\n", ["torch==2.8"]),
        ("RUN uv pip install -r torch.txt \\\n  'torchvision>=0.2' \\\n  # why\n  torchaudio\n", None),
        ("# pip install torch\npip3 install torch\n", ["torch"]),
        ("pip install 'torch; python_version > \"3\"' || true\n", ['torch; python_version > "3"']),
        ("pip install --index-url torch numpy; torch\n", []),
    ],
)
def test_install_commands_are_reported_and_stay(text: str, names: list[str] | None) -> None:
    file = planned("commands", text)
    shown = [notice.message.split("install ", 1)[1].split("`")[0] for notice in file.notices]

    assert not file.changed
    assert shown == (["torchvision>=0.2", "torchaudio"] if names is None else names)


@pytest.mark.parametrize("name", ["uv.lock", "poetry.lock", "pylock.gpu.toml", "pixi.lock"])
def test_lock_files_are_reported_and_stay(name: str) -> None:
    source = decode(Path(name), b'[[package]]\nname = "torch"\nversion = "2"\n[[package]]\nname = "six"\n')
    file = plan_document(Path(name), read_source(source, "lock"), Policy())

    assert not file.changed
    (notice,) = file.notices
    assert (notice.code, notice.place and notice.place.line) == ("lock-file", 2)


@pytest.mark.parametrize(
    ("kind", "before", "unpinned", "pinned"),
    [
        (REQUIREMENTS, "torch[x]>=2;a<'b' # c\n", "torch[x];a<'b' # c\n", "torch[x]==2.7.0+cu128;a<'b' # c\n"),
        (REQUIREMENTS, "torch @ https://x/y ; a<'b'\n", "torch ; a<'b'\n", "torch==2.7.0+cu128 ; a<'b'\n"),
        (REQUIREMENTS, "torch==2 \\\n  --hash=sha256:a\n", "torch\n", "torch==2.7.0+cu128\n"),
        (PYPROJECT, array("['torch>2']"), array("['torch']"), array("['torch==2.7.0+cu128']")),
        (
            PYPROJECT,
            "[tool.pdm.resolution.overrides]\ntorch='2'\n",
            "[tool.pdm.resolution.overrides]\n",
            "[tool.pdm.resolution.overrides]\ntorch='2.7.0+cu128'\n",
        ),
    ],
)
def test_unpinned_and_pinned(kind: str, before: str, unpinned: str, pinned: str) -> None:
    assert after(kind, before, mode=Mode.UNPIN) == unpinned
    assert after(kind, before, mode=Mode.PIN_INSTALLED, versions={"torch": "2.7.0+cu128"}) == pinned


def test_what_cannot_be_changed_in_place_is_kept_and_reported() -> None:
    file = planned(PYPROJECT, "[tool.poetry.dependencies]\ntorch = {git = 'x'}\n", Policy(Mode.UNPIN))

    assert not file.changed
    assert [notice.code for notice in file.notices] == ["not-changed"]


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("-i https://download.pytorch.org/whl/cu130\ntorch\nsix\n", "six\n"),
        ("-i https://download.pytorch.org/whl/cu130\ntorch\ntriton\n", None),
        ("-f https://data.pyg.org/whl/torch.html\ntorch\nsix\n", None),
        ("-f https://data.pyg.org/whl/torch.html\ntorch\n", ""),
        ("-i https://mirror.example/simple\ntorch\n", None),
    ],
)
def test_index_options_that_serve_no_one(text: str, left: str | None) -> None:
    expected = text.replace("torch\n", "", 1) if left is None and "pyg" not in text else left
    expected = text.replace("\ntorch\n", "\n") if expected is None else expected
    assert after(REQUIREMENTS, text, drop_orphan_index=True) == expected


def test_the_wide_set_has_what_comes_with_torch() -> None:
    text = "nvidia-nccl-cu12\nnvidia-ml-py\ntriton\ntritonclient\ntorchcodec\ntorchao\n"
    assert after(REQUIREMENTS, text, names=NameSet.WIDE) == "nvidia-ml-py\ntritonclient\ntorchao\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x = ['torch', 'six']\nsetup(install_requires=x)\n", "x = ['six']\nsetup(install_requires=x)\n"),
        (
            "x = ['torch']\nx += ['torchvision', 'six']\nsetup(install_requires=x)\n",
            "x = []\nx += ['six']\nsetup(install_requires=x)\n",
        ),
        ("x = ['torch']\nprint(x)\nsetup(install_requires=x)\n", None),
        ("x = ['torch']\nx = ['six']\nsetup(install_requires=x)\n", None),
        ("def f():\n    x = ['torch']\n    setup(install_requires=x)\n", None),
        ("setup(install_requires=('torch', 'six'))\n", "setup(install_requires=('six',))\n"),
        ("setup(install_requires=('torch', 'six',))\n", "setup(install_requires=('six',))\n"),
        ("setup(install_requires=('six', 'torch'))\n", "setup(install_requires=('six',))\n"),
        ("setup(install_requires=('six', 'torch', 'a'))\n", "setup(install_requires=('six', 'a'))\n"),
        ("setup(install_requires=('torch',))\n", "setup(install_requires=())\n"),
        ("setup(install_requires=['a'] + ['torch'])\n", "setup(install_requires=['a'] + [])\n"),
        (
            "e = {}\ne['a'] = ['torch', 'six']\ne['all'] = e['a'] + ['x']\nsetup(extras_require=e)\n",
            "e = {}\ne['a'] = ['six']\ne['all'] = e['a'] + ['x']\nsetup(extras_require=e)\n",
        ),
        (
            "d = {'torch': 'torch>=2', 'six': 'six'}\ndef f(*names):\n    return [d[name] for name in names]\n"
            "setup(install_requires=[d['torch'], d['six']], extras_require={'x': f('torch', 'six')})\n",
            "d = {'torch': 'torch>=2', 'six': 'six'}\ndef f(*names):\n    return [d[name] for name in names]\n"
            "setup(install_requires=[d['six']], extras_require={'x': f('six')})\n",
        ),
        (
            "def f():\n    return ['torch', 'six']\nsetup(install_requires=f())\n",
            "def f():\n    return ['six']\nsetup(install_requires=f())\n",
        ),
        (
            "setup(install_requires=[('torch>=2' if X else 'torch'), 'six'])\n",
            "setup(install_requires=['six'])\n",
        ),
        ("setup(install_requires=['torch' if X else 'six'])\n", None),
        ("k = dict(install_requires=['torch'])\nsetup(**k)\n", "k = dict(install_requires=[])\nsetup(**k)\n"),
        ("T = 'torch'\nsetup(install_requires=[T, f'torch>={v}'])\n", None),
    ],
)
def test_what_a_setup_py_receives(text: str, expected: str | None) -> None:
    file = planned("setup.py", text)
    assert file.rewritten.decode() == (text if expected is None else expected)
    if expected is None:
        assert "dynamic" in {notice.code for notice in file.notices}


@pytest.mark.parametrize(
    ("kind", "text", "expected"),
    [
        (
            "pipfile",
            '[packages]\ntorch = "*"\nsix = "*"\n[dev-packages]\ntorchvision = {version="1"}\n',
            '[packages]\nsix = "*"\n[dev-packages]\n',
        ),
        (
            "uv.toml",
            "override-dependencies = ['torch==2']\n",
            "override-dependencies = ['torch; sys_platform == \"never\"']\n",
        ),
        ("uv.toml", 'constraint-dependencies = ["torch<3", "six"]\n', 'constraint-dependencies = ["six"]\n'),
        (
            "pixi",
            '[pypi-options.dependency-overrides]\ntorch = "==2"\nsix = "*"\n',
            '[pypi-options.dependency-overrides]\nsix = "*"\n',
        ),
        ("tox", "[testenv]\ndeps =\n    torch\n    gpu: torchvision\n    six\n", "[testenv]\ndeps =\n    six\n"),
        ("recipe", "requirements:\n  run:\n    - pytorch\n    - six\n", "requirements:\n  run:\n    - six\n"),
        ("recipe", "{% set v = 1 %}\nrequirements:\n  run:\n    - pytorch {{ v }}\n", None),
    ],
)
def test_other_formats(kind: str, text: str, expected: str | None) -> None:
    assert after(kind, text, conda=True) == (text if expected is None else expected)
