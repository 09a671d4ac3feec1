"""What is known of a wheel's variant: its label, its own metadata, and those of the index that offers it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from wheel_checks.formats.wheel.variant_metadata import Variant, VariantMetadata
from wheel_checks.model import Unavailable


@dataclass(frozen=True, slots=True)
class VariantIndex:
    """The variants of one release as one place offers them: ``{name}-{version}-variants.json``, and the wheels.

    ``place`` is the index or folder, ``file_name`` the document's name as it is or should be, ``listed`` whether it is
    there. ``wheels`` are the file names of the release by label, "" for those that are no variants. ``bytes_read`` is
    the size of the document in bytes.
    """

    file_name: str
    place: str
    metadata: VariantMetadata | Unavailable
    listed: bool
    wheels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    bytes_read: int = 0


@dataclass(frozen=True, slots=True)
class VariantFacts:
    """A wheel with a variant label or a ``variant.json``. ``label`` is that of the file name, "" if none.

    ``member`` is the path of ``variant.json``, where it is or should be; ``index`` is what the wheel's index or folder
    says of the release.
    """

    label: str
    member: str
    metadata: VariantMetadata | Unavailable
    index: VariantIndex | Unavailable

    @property
    def variant(self) -> Variant | Unavailable:
        """The variant that the wheel claims to be: that of its label, or else the only one of its metadata."""
        if isinstance(self.metadata, Unavailable):
            return self.metadata
        known = self.metadata.variants
        if self.label in known:
            return known[self.label]
        return next(iter(known.values())) if len(known) == 1 else Unavailable(f"{self.member} does not describe it")
