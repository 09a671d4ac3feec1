"""Which project a requirement is for, whatever form it has: a name, a URL, a path, a version control system."""

import re
from urllib.parse import unquote

_SEPARATORS = re.compile(r"[-_.]+")
_NAME = re.compile(r"([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)[ \t]*(?=$|[\s\[<>=!~;@(,#])", re.ASCII)
_EGG = re.compile(r"[#&]egg=([A-Za-z0-9._-]+)")
_WHEEL = re.compile(r"([^-]+)-[^-]+(?:-\d[^-]*)?-[^-]+-[^-]+-[^-]+\.whl$", re.IGNORECASE)
_SDIST = re.compile(r"(.+)-\d[^-]*\.(?:tar\.gz|tar\.bz2|tgz|zip)$", re.IGNORECASE)
LONGEST_NAME = 500  # characters of a file's name
_PYTORCH = re.compile(r"github\.com[/:]pytorch/([A-Za-z0-9._-]+)", re.IGNORECASE)
_REPOSITORIES = {"pytorch": "torch", "vision": "torchvision", "audio": "torchaudio"}  # of github.com/pytorch
_EXTRAS = re.compile(r"[A-Za-z0-9._-]+[ \t]*\[([^\]]*)\]")
_BUILT_FOR = re.compile(r"torch[-_]?\d+\.\d+", re.IGNORECASE)


def normalized(name: str) -> str:
    """The name as PEP 503 compares it."""
    return _SEPARATORS.sub("-", name).lower()


def project_of(text: str) -> str:
    """The normalised name of the project that a requirement is for; "" when it does not say.

    ``text`` is what pip takes: PEP 508, a URL, a path, a VCS URL. A URL or path counts by its ``#egg=``, its file
    name, or as a repository of github.com/pytorch.
    """
    if (match := _NAME.match(text)) and not match[1].lower().endswith(".whl"):
        return normalized(match[1])
    if egg := _EGG.search(text):
        return normalized(egg[1])
    path = unquote(text.partition("#")[0].partition("?")[0].partition(";")[0].strip())
    name = path.replace("\\", "/").rpartition("/")[2][:LONGEST_NAME]
    if file := _WHEEL.match(name) or _SDIST.match(name):
        return normalized(file[1])
    if repository := _PYTORCH.search(path):
        project = normalized(repository[1].lower().removesuffix(".git"))
        return _REPOSITORIES.get(project, project)
    return ""


def extras_of(text: str) -> tuple[str, ...]:
    """The extras of a PEP 508 requirement, normalised."""
    match = _EXTRAS.match(text) if "[" in text else None
    return tuple(normalized(extra.strip()) for extra in match[1].split(",") if extra.strip()) if match else ()


def is_url(text: str) -> bool:
    """Whether a requirement is, or has after its @, a URL."""
    return "://" in text


def built_for_torch(text: str) -> str:
    """What a URL or file name says of the torch that the file is built for (``torch2.10``); "" when nothing."""
    match = _BUILT_FOR.search(text) if ".whl" in text else None
    return match[0] if match else ""
