"""What the members of an archive become when they are unpacked, and which of them are not unpacked here."""

from collections.abc import Sequence

from wheel_checks.formats.zip.directory import Member, apart

# Measured in November 2026 over the largest wheels of an index (torch, tensorflow, nvidia, ...): archives as a whole
# inflate by 1.1 to 17. Single shared objects reach 600 (8 MB, nvidia-cudnn-cu12 9.28), but all members of one wheel
# that inflate by more than a hundred have less than 9 MB together.
ALONE_RATIO = 400
ALONE_SIZE = 64 << 20  # bytes; below this a single member is harmless whatever its ratio
TOGETHER_RATIO = 100
TOGETHER_SIZE = 256 << 20  # bytes


def absurd(members: Sequence[Member]) -> tuple[Member, ...]:
    """Members that inflate absurdly on their own, by the word of the directory."""
    return tuple(m for m in members if m.size > ALONE_SIZE and _inflates(m, ALONE_RATIO))


def absurd_together(members: Sequence[Member]) -> tuple[Member, ...]:
    """Members that inflate by more than a hundred, when they have more than 256 MiB together; else none.

    What is not among these and :func:`absurd` inflates to a hundred times the size of its data and 256 MiB at most.
    """
    many = tuple(m for m in members if _inflates(m, TOGETHER_RATIO))
    return many if sum(m.size for m in many) > TOGETHER_SIZE else ()


def unpackable(members: Sequence[Member]) -> list[Member]:
    """The members that may be unpacked: none is absurd, and no two share bytes, so that the work is bounded."""
    left_out = {id(m) for m in (*absurd(members), *absurd_together(members))}
    return [m for m in apart(members) if id(m) not in left_out]


def _inflates(member: Member, ratio: int) -> bool:
    return member.size > ratio * max(1, member.compressed_size)
