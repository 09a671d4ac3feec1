"""What is worth a warning about requirements, whatever document they are in."""

from collections.abc import Iterator

from wheelproof.pins.documents.names import built_for_torch, extras_of
from wheelproof.pins.model import FoundRequirement, Notice


def of_requirement(found: FoundRequirement) -> Iterator[Notice]:
    """The notices about one requirement that stays: an extra that may pull torch, a wheel built for one torch."""
    for extra in extras_of(found.text):
        if extra != found.name:
            message = f"{found.text}: the extra {extra} may install {extra} transitively"
            yield Notice("extra", message, found.place, about=(extra,))
    if built := built_for_torch(found.text):
        message = f"{found.name or 'the wheel'} is built for {built}: it fails to load with another torch"
        yield Notice("wheel-abi", message, found.place, about=("torch",))
