"""What a repair changes: what comes, what goes and what stays, in exact versions."""

from collections.abc import Iterator
from dataclasses import dataclass

from wheel_checks.phrases import human_bytes, joined
from wheelproof.doctor.repair.installed import Contents
from wheelproof.doctor.repair.solving import Question

SHOWN = 40  # distributions that are listed
_MATTERS = ("torch", "torchvision", "torchaudio", "triton")


@dataclass(frozen=True)
class Coming:
    """A distribution that is installed: the requirement that names exactly it, where from, and the bytes to download
    (None: the index does not say).
    """

    name: str
    version: str
    requirement: str
    size: int | None = None
    source: str = ""


@dataclass(frozen=True)
class Plan:
    """A repair of the environment ``contents``.

    ``intact`` are those of the ``coming`` that are installed already, in the same version. ``gone`` are uninstalled
    without a successor, ``remains`` are absolute paths that are removed. ``question`` has the options of uv. ``notes``
    are sentences about what the plan leaves, and ``proofs`` what was read to make it. ``cuda`` is what the torch that
    comes is built for ("" where none comes). What is ``fresh`` is not taken from uv's cache, in which a file that was
    edited in place is edited, too.
    """

    contents: Contents
    question: Question
    coming: tuple[Coming, ...] = ()
    intact: frozenset[str] = frozenset()
    gone: tuple[str, ...] = ()
    remains: tuple[str, ...] = ()
    proofs: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    cuda: str = ""
    fresh: bool = False

    @property
    def is_empty(self) -> bool:
        """Whether nothing would change."""
        return not (self.coming or self.gone or self.remains)

    @property
    def replaced(self) -> tuple[str, ...]:
        """The names of what is installed and comes again, in this or another version."""
        return tuple(one.name for one in self.coming if one.name in self.contents.own)

    @property
    def download(self) -> int | None:
        """The bytes to download, as far as stated by the index sizes; None where it says none at all."""
        sizes = [one.size for one in self.coming if one.size is not None]
        return sum(sizes) if sizes or not self.coming else None

    def lines(self) -> Iterator[str]:
        """The plan as people read it: one line for each distribution that changes."""
        own = self.contents.own
        for one in self.coming[:SHOWN]:
            was = own.get(one.name)
            size = f", {human_bytes(one.size)}" if one.size is not None else ""
            where = f"  ({one.source}{size})" if one.source else ""
            if was is None:
                yield f"  + {one.name} {one.version}{where}"
            elif one.name in self.intact:
                yield f"  ~ {one.name} {one.version}, the same files again{where}"
            else:
                yield f"  ~ {one.name} {was.version} -> {one.version}{where}"
        if len(self.coming) > SHOWN:
            yield f"  + {len(self.coming) - SHOWN} more"
        yield from (f"  - {own[name].label}" for name in self.gone if name in own)
        yield from (f"  - {path}" for path in self.remains)
        changed = {*self.replaced, *self.gone}
        staying = [one.label for name, one in own.items() if name not in changed and name in _MATTERS]
        count = len(own) - len(changed)
        yield f"  {count} others stay" + (f", among them {joined(staying)}" if staying else "") + self._size()
        yield from (f"  {sentence}" for sentence in (*self.proofs, *self.notes))

    def _size(self) -> str:
        if not self.coming:
            return "; nothing to download"
        unknown = sum(one.size is None for one in self.coming)
        if self.download is None:
            return "; the index does not state the download size"
        return f"; {human_bytes(self.download)} to download" + (f", and {unknown} of unknown size" if unknown else "")

    def document(self) -> dict[str, object]:
        """The plan for programs."""
        own = self.contents.own
        return {
            "comes": [
                {
                    "name": one.name,
                    "version": one.version,
                    "replaces": own[one.name].version if one.name in own else "",
                    "bytes": one.size,
                }
                for one in self.coming
            ],
            "goes": [own[name].label for name in self.gone if name in own],
            "removes": list(self.remains),
            "stays": len(own) - len({*self.replaced, *self.gone}),
            "bytes_to_download": self.download,
        }
