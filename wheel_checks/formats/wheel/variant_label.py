"""The variant label, the last part of a variant wheel's file name (PEP 825, "Variant label").

``{distribution}-{version}(-{build})?-{python}-{abi}-{platform}(-{label})?.whl``: a wheel without label is not a
variant.
"""

import re

VARIANT_MEMBER = "variant.json"
"""The file in a wheel's dist-info folder that says what its label means."""

_PYTHON_TAG = re.compile(r"(?:py|cp|pp|ip|jy|graalpy)\d", re.IGNORECASE)


def split_label(stem: str) -> tuple[str, str]:
    """A wheel's file name without ``.whl`` as its other parts and its label, "" for no variant.

    Of six parts the third is a build tag or a Python tag; by the draft a build tag starts with a digit, and a Python
    tag does not. Of seven the third is a build tag, and the fourth a Python tag. The label is as written: whether it is
    well formed is judged by a rule.
    """
    parts = stem.split("-")
    if len(parts) not in (6, 7) or not parts[-1]:
        return stem, ""
    python, abi = parts[-4], parts[-3]
    return ("-".join(parts[:-1]), parts[-1]) if _is_python_tag(python, abi) else (stem, "")


def is_variant(file_name: str) -> bool:
    """True for the name of a wheel with a variant label."""
    return file_name.endswith(".whl") and bool(split_label(file_name.removesuffix(".whl"))[1])


def _is_python_tag(part: str, following: str) -> bool:
    """Whether a part is a Python tag; it is not when the part after it looks like one and this one does not."""
    if not part or part[0].isdigit():
        return False
    return bool(_PYTHON_TAG.match(part)) or not _PYTHON_TAG.match(following)
