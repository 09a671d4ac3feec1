"""Where the page of a rule is to be read."""

from functools import cache
from importlib.metadata import PackageNotFoundError, metadata

_UNKNOWN = "/OWNER/"  # stands for the account in pyproject.toml until the repository has one


def page_of(rule: str) -> str:
    """The address of the page of one of our rules, in the repository that the install names; "" where it names none."""
    repository = _repository()
    return f"{repository}/blob/HEAD/docs/rules/{rule}.md" if repository else ""


@cache
def _repository() -> str:
    try:
        urls = metadata("wheelproof").get_all("Project-URL") or []
    except PackageNotFoundError:  # run from a folder of sources
        return ""
    found = (address.strip() for label, _, address in (url.partition(",") for url in urls) if label == "Repository")
    address = next(found, "").rstrip("/")
    return "" if _UNKNOWN in f"{address}/" else address
