"""Does an installed version survive a requirement? pip and uv agree: what satisfies the requirement is kept.

The rules are those of the version specifiers (PEP 440), with one addition that both installers share: a pre-release
that is already installed satisfies a requirement as any other version does, although neither would choose it from an
index. ``tests/pins/test_survival.py`` asks both installers for every row.
"""

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import Specifier
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from wheel_checks.errors import UsageError
from wheel_checks.facts.pins.changes import Survival

_EXPECTED_SPEC = "a requirement as torch>=2.7 or >=2.7 (PEP 508)"


def parse_spec(text: str, name: str = "torch") -> Requirement:
    """A requirement, or the bare specifier of ``name``: ``torch>=2.7``, ``>=2.7``, "". Raises UsageError."""
    whole = text if text.strip()[:1].isalnum() else f"{name}{text}"
    try:
        return Requirement(whole)
    except InvalidRequirement as error:
        reason = " ".join(str(error).split())
        raise UsageError(f"the requirement {text!r} does not parse: {reason}", expected=_EXPECTED_SPEC) from None


def parse_installed(text: str) -> tuple[str, Version]:
    """The normalised name and the version of ``torch==2.7.0+cu128``, or of a version alone: then it is torch's.

    Raises UsageError.
    """
    name, equals, version = text.partition("==")
    try:
        return (str(canonicalize_name(name.strip())), Version(version)) if equals else ("torch", Version(text))
    except InvalidVersion:
        raise UsageError(
            f"{text!r} is not an installed version", expected="for example 2.7.0+cu128 or torchvision==0.22.0+cu128"
        ) from None


def survives(requirement: Requirement, installed: Version) -> Survival:
    """Whether an install of ``requirement`` keeps ``installed``, which did not come from a direct URL.

    The marker and the extras of the requirement are not looked at: it is taken as active. Extras only add packages.
    """
    name = str(canonicalize_name(requirement.name))
    if requirement.url:
        told = f"a direct URL is installed, unless {name} {installed} came from this very URL"
        return Survival(name, installed, requirement, kept=False, reasons=(told,), upgrade=_upgrade(requirement))
    judged = [
        (s.contains(installed, prereleases=True), s) for s in sorted(requirement.specifier, key=lambda s: s.version)
    ]
    failed = [specifier for kept, specifier in judged if not kept]
    if failed:
        reasons = tuple(_why_not(specifier, installed) for specifier in failed)
    else:
        reasons = tuple(told for _, specifier in judged if (told := _why_yet(specifier, installed)))
        reasons += (_satisfied(requirement, installed),)
    return Survival(
        name,
        installed,
        requirement,
        kept=not failed,
        reasons=reasons,
        may_fail=any("+" in specifier.version for specifier in failed),
        upgrade=_upgrade(requirement),
    )


def _satisfied(requirement: Requirement, installed: Version) -> str:
    told = f"{installed} satisfies {requirement.specifier}" if requirement.specifier else "any version satisfies it"
    if installed.is_prerelease:
        told += ": a pre-release that is installed counts, although neither installer would choose it from an index"
    return f"{told}; neither installer looks at the index for what is satisfied"


def _why_yet(specifier: Specifier, installed: Version) -> str:
    """What surprises about a clause that holds; "" when nothing does."""
    if specifier.operator == "===" or not installed.local or "+" in specifier.version:
        return ""
    if specifier.operator in ("==", "~=", "<="):
        return f"{specifier} says nothing about a local version, so {installed} counts as {installed.public}"
    return ""


def _why_not(specifier: Specifier, installed: Version) -> str:
    """Why a clause does not hold."""
    if specifier.operator == "===":
        return f"=== compares the text, local version included: {installed} is not {specifier.version}"
    named = Version(specifier.version.removesuffix(".*"))
    if not named.local:
        return _why_not_public(specifier, named, installed)
    if named.public != installed.public:
        return f"{installed} is not {named}"
    found = f"+{installed.local}" if installed.local else "none"
    return f"{specifier} names the local version +{named.local}, and {installed} has {found}"


def _why_not_public(specifier: Specifier, named: Version, installed: Version) -> str:
    """The same, for a clause that names a version without a local part."""
    same_release = Version(installed.base_version) == Version(named.base_version)  # 2.12 and 2.12.0 are the same
    if specifier.operator == ">" and installed.public == named.public:
        return f"{specifier} excludes every local version of {named}: {installed} counts as {named}"
    if specifier.operator == "!=":
        return f"{installed} counts as {specifier.version}, which {specifier} excludes"
    if specifier.operator == "<" and same_release:
        return f"{specifier} excludes {named} and its pre-releases, so also {installed}"
    if installed.is_prerelease and same_release and installed < named:
        return f"{installed} is a pre-release of {installed.base_version} and comes before it: {specifier} excludes it"
    return f"{installed} does not satisfy {specifier}"


def _upgrade(requirement: Requirement) -> tuple[tuple[str, str], ...]:
    """What ``--upgrade`` does to a requirement that the installed version satisfies."""
    pinned = any(s.operator in ("==", "===") and not s.version.endswith(".*") for s in requirement.specifier)
    if pinned or requirement.url:
        return (("pip", "changes nothing: one version is allowed"), ("uv", "changes nothing: one version is allowed"))
    newest = "the latest version that is allowed"
    return (
        (
            "pip",
            f"takes {newest} when it is named itself; what others require is left alone, unless the strategy is eager",
        ),
        ("uv", f"takes {newest}, also of what others require"),
    )
