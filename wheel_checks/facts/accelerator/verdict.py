"""The accelerator that a wheel is built for: its content decides, and hints must agree with it.

The content is GPU code and needed libraries (:mod:`wheel_checks.facts.accelerator.content`). Names of members,
version.py and the requirements that are active on the target are hints: they give a version, name the purpose of a
wheel without its own GPU code, and are the only evidence if the content could not be read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from packaging.requirements import Requirement

from wheel_checks.facts.accelerator.signals import (
    CONTENT,
    CPU,
    CUDA,
    GPU,
    MEMBERS,
    ROCM,
    VERSION,
    XPU,
    Signal,
    bundles_cuda_runtime,
    is_named_native,
    member_signal,
    requirement_signal,
    version_signal,
)
from wheel_checks.formats.wheel.version_file import VersionFile
from wheel_checks.model import Unavailable
from wheel_checks.phrases import joined

if TYPE_CHECKING:  # the ELF readers are imported by their callers
    from wheel_checks.facts.accelerator.shown import AcceleratorContent

NONE = "none"
LABELS = {CUDA: "CUDA", ROCM: "ROCm", XPU: "XPU", CPU: "CPU only", NONE: "no accelerator"}
EXACT, SAMPLED, DECLARED = "exact", "sampled", "declared"
NOT_READ = Unavailable("the libraries were not read")


@dataclass(frozen=True, slots=True)
class AcceleratorFacts:
    """The verdict (cuda, rocm, xpu, cpu, none), its version ("" when unknown or several), and its evidence.

    ``certainty`` is "exact" when every native member was read, "sampled" when some were: there may be further
    accelerators; "declared" when only hints say so: code could not be read, or shows nothing. ``others`` are further
    accelerators that the wheel supports, ``declared`` the accelerators that only hints name. ``majors`` are the
    accelerator's major versions in the content. ``local_version`` is the full version as the wheel's own code states it
    ("2.10.0+cpu"), "" when it does not. ``conflicts`` are sentences about signals that contradict each other;
    ``unread`` names the unknown part of the content, or is "".
    """

    accelerator: str
    version: str
    local_version: str
    signals: tuple[Signal, ...]
    others: tuple[str, ...] = ()
    conflicts: tuple[str, ...] = ()
    certainty: str = EXACT
    declared: tuple[str, ...] = ()
    majors: tuple[str, ...] = ()
    unread: str = ""
    content: AcceleratorContent | None = None

    @property
    def label(self) -> str:
        """For people: "CUDA 13.0", "CPU only", "CUDA 12 and 13", "CUDA 12 and ROCm"."""
        versions = joined(list(self.majors)) if len(self.majors) > 1 else self.version
        first = f"{LABELS[self.accelerator]} {versions}".strip()
        return " and ".join([first, *(LABELS[other] for other in self.others)])

    @property
    def described(self) -> str:
        """The label, with the version that the code states and the unread part: "CPU only (2.10.0+cpu)"."""
        parts = [self.local_version] if self.local_version else []
        if self.certainty == DECLARED and (self.accelerator in GPU or self.content):
            parts.append(f"declared: {self.declared_by}")
        return f"{self.label} ({'; '.join(parts)})" if parts else self.label

    @property
    def declared_by(self) -> str:
        """Which hints name the accelerator: "members and requirements", "nothing"."""
        names = [s.name for s in self.signals if s.name != CONTENT and self.accelerator in s.accelerators]
        return joined(names) if names else "not all libraries were read"

    def serves(self, accelerator: str) -> bool | None:
        """Whether the wheel is for ``accelerator`` (none: "cpu" and "none"); None if only declared, or partly read."""
        if accelerator not in GPU:
            if self.accelerator in GPU:
                return None if self.certainty == DECLARED else False
            return True if self.certainty == EXACT else None
        if accelerator in (self.accelerator, *self.others):
            return None if accelerator in self.declared else True
        if self.certainty == SAMPLED:  # the content read and the hints agree on another
            stated = next((s.accelerators for s in self.signals if s.name == VERSION), ())
            return False if stated and set(stated) <= {self.accelerator, *self.others} else None
        return False if self.certainty == EXACT else None

    @property
    def shows_gpu(self) -> bool:
        """True when the content shows a GPU build."""
        return self.accelerator in GPU and self.certainty != DECLARED

    @property
    def lacks_gpu(self) -> bool:
        """True when it is proven that nothing in the wheel is for a GPU."""
        return self.accelerator not in GPU and self.certainty == EXACT


def judge(
    members: Sequence[str],
    version_files: Sequence[VersionFile],
    requirements: Sequence[Requirement],
    environment: Mapping[str, str],
    elsewhere: Sequence[Mapping[str, str]],
    content: AcceleratorContent | Unavailable = NOT_READ,
) -> AcceleratorFacts:
    """Weigh the content of one wheel against its hints.

    ``environment`` has the marker variables (PEP 508) of the target; ``elsewhere`` those of other platforms: a
    requirement that is active there but not on the target is itself a hint at a CPU build.
    """
    from_content = _content_signal(content)
    from_members = member_signal(members)
    from_version, local_version = version_signal(version_files)
    from_requirements = requirement_signal(requirements, environment, elsewhere)
    if from_requirements.accelerators == (CPU,) and _brings_its_own(members, content):
        from_requirements = replace(from_requirements, accelerators=())  # the wheel has the libraries itself
    hints = [from_members, from_version, from_requirements]
    if not any(map(is_named_native, members)):  # pure Python next to a CPU build of torch runs next to others, too
        hints = [replace(hint, accelerators=()) if hint.accelerators == (CPU,) else hint for hint in hints]
    speaking = [signal for signal in hints if signal.accelerators]
    shown = from_content.accelerators
    named = shown or (speaking[0].accelerators if speaking else (NONE,))
    if not isinstance(content, Unavailable) and content.has_files_alone:  # they may be an addition, as in sglang
        differing = [s for s in speaking if s.accelerators[0] in GPU and not set(s.accelerators) <= set(shown)]
        if differing:
            speaking = differing
            named = tuple(dict.fromkeys((*differing[0].accelerators, *shown)))
    accelerator = named[0]
    others = tuple(dict.fromkeys((*named[1:], *(a for a in from_members.accelerators if shown and a not in named))))
    majors = () if isinstance(content, Unavailable) else content.versions(accelerator)
    return AcceleratorFacts(
        accelerator,
        "" if len(majors) > 1 else _version(accelerator, [from_version, from_requirements, from_content, from_members]),
        local_version,
        (from_content, *hints),
        others,
        tuple(_conflicts(from_content, speaking, accelerator, content)),
        _certainty(accelerator, content),
        tuple(a for a in (accelerator, *others) if a in GPU and a not in shown),
        majors,
        content.reason if isinstance(content, Unavailable) else content.missing,
        None if isinstance(content, Unavailable) else content,
    )


def _content_signal(content: AcceleratorContent | Unavailable) -> Signal:
    if isinstance(content, Unavailable):
        return Signal(CONTENT, (), "", content.reason, "")
    if content.shown:
        found = content.accelerators
        majors = content.versions(found[0])
        # One hint of each kind, those of the first accelerator with a version first.
        best = sorted(content.shown, key=lambda s: (s.accelerator != found[0], not s.version))
        kinds = {(s.accelerator, s.how, s.version): s for s in reversed(best)}
        detail = "; ".join(map(str, list(kinds.values())[::-1][:4]))
        return Signal(CONTENT, found, majors[0] if len(majors) == 1 else "", detail, "native members")
    if not content.complete:
        return Signal(CONTENT, (), "", content.missing, "native members")
    detail = f"no GPU code, and no library of a GPU is needed, in {content.native} native members"
    return Signal(CONTENT, (), "", detail if content.native else "the wheel has no native members", "native members")


def _certainty(accelerator: str, content: AcceleratorContent | Unavailable) -> str:
    if isinstance(content, Unavailable):
        return DECLARED
    if accelerator in content.accelerators:
        return EXACT if content.complete else SAMPLED
    return EXACT if content.complete and accelerator not in GPU else DECLARED


def _brings_its_own(members: Sequence[str], content: AcceleratorContent | Unavailable) -> bool:
    """True if the wheel contains CUDA's libraries, or does not need them: no requirement must provide them."""
    if isinstance(content, Unavailable) or not content.shown:
        return bundles_cuda_runtime(members)
    return not content.needs_from_outside(CUDA)


def _version(accelerator: str, signals: Sequence[Signal]) -> str:
    """The version that says most, of signals in the order of trust, but for hints that contradict the content."""
    content = next((s.version for s in signals if s.name == CONTENT), "")
    versions = [s.version for s in signals if s.version and accelerator in s.accelerators]
    fitting = [v for v in versions if not content or v.partition(".")[0] == content]
    if accelerator not in GPU:
        return ""
    return max(fitting, key=lambda v: (v.count("."), -fitting.index(v)), default="")


def _conflicts(
    shown: Signal, speaking: Sequence[Signal], accelerator: str, content: AcceleratorContent | Unavailable
) -> Iterable[str]:
    first = shown if shown.accelerators else next(iter(speaking), shown)
    if not shown.accelerators and not isinstance(content, Unavailable) and content.complete and content.native:
        for signal in speaking:
            if signal.name == VERSION and signal.accelerators[0] in GPU:
                yield f"{shown.says} {LABELS[NONE]} ({shown.detail}), {_described(signal)}"
                return
    for signal in speaking:
        if signal is not first and accelerator not in signal.accelerators:
            yield f"{first.says} {LABELS[accelerator]} ({first.detail}), {_described(signal)}"
    versioned = [s for s in (shown, *speaking) if s.version and accelerator in s.accelerators]
    if len(() if isinstance(content, Unavailable) else content.versions(accelerator)) > 1:
        versioned = [s for s in versioned if s.name != MEMBERS]
    for a, b in ((a, b) for i, a in enumerate(versioned) for b in versioned[i + 1 :]):
        shorter, longer = sorted((a.version.split("."), b.version.split(".")), key=len)
        if longer[: len(shorter)] != shorter:
            yield f"{a.says} {LABELS[accelerator]} {a.version}, {b.says} {b.version}"


def _described(signal: Signal) -> str:
    return f"{signal.says} {LABELS[signal.accelerators[0]]} ({signal.detail})"
