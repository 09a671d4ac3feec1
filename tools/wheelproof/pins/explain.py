"""The answer of ``wheelproof pins explain`` for one requirement, as a subject of a report."""

from collections.abc import Iterable

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from wheel_checks.errors import UsageError
from wheel_checks.facts.expectations import Expectations
from wheel_checks.model import Rule, Subject
from wheel_checks.runner import run_rules
from wheelproof.pins.survival import survives


def explain_requirement(
    requirement: Requirement, name: str, installed: Version, rules: Iterable[Rule], expectations: Expectations
) -> Subject:
    """Whether ``name`` in version ``installed`` survives ``requirement``, with the reasons in headline and facts.

    Raises UsageError when the requirement is about another package.
    """
    if canonicalize_name(requirement.name) != name:
        raise UsageError(
            f"the requirement is about {requirement.name}, and the installed version is that of {name}",
            hint=f"--installed {requirement.name}==VERSION",
        )
    survival = survives(requirement, installed)
    verb = "keep" if survival.kept else "do not keep"
    headline = f"pip and uv {verb} {name} {installed}: {'; '.join(survival.reasons)}"
    if survival.kept:
        headline += "".join(f"; {installer} --upgrade {told}" for installer, told in survival.upgrade)
    facts = {
        "requirement": str(requirement),
        "installed": f"{name}=={installed}",
        "kept": {"pip": survival.kept, "uv": survival.kept},
        "reasons": list(survival.reasons),
        "may_fail": survival.may_fail,
        "upgrade": dict(survival.upgrade),
    }
    results = run_rules(rules, survival, expectations)
    return Subject(f"{requirement} with {name} {installed}", "requirement", headline, facts, results)
