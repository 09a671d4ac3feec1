"""Tables of hashes: they are read as written, a base is not copied, and damaged bytes are named."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ci.hash_table_writer import Entry, write
from wheel_checks.errors import FormatError
from wheel_checks.formats.hash_table import MAGIC, HashTable

HASHES = st.sets(st.integers(0, 2**31 - 1).map(lambda value: 2 * value), max_size=60)
SETS = st.dictionaries(st.sampled_from(["libc10.so", "libtorch.so", "libtorch_python.so"]), HASHES)
MANY = frozenset(range(0, 400_000, 40))


@given(st.lists(st.tuples(SETS, st.integers(-1, 20)), max_size=6))
def test_every_entry_is_read_as_it_was_written(drawn: list[tuple[dict[str, set[int]], int]]) -> None:
    entries = [Entry({"number": number}, sets, min(base, number - 1)) for number, (sets, base) in enumerate(drawn)]
    table = HashTable(write({"date": "2026-11-23"}, entries))

    assert table.description == {"date": "2026-11-23"}
    assert table.descriptions == [entry.description for entry in entries]
    assert [table.sets(number) for number in range(len(entries))] == [entry.sets for entry in entries]


def test_a_question_to_all_entries_gives_only_what_was_asked() -> None:
    entries = [Entry({}, {"libc10.so": {2, 4, 6}}), Entry({}, {"libc10.so": {2, 8}, "libtorch.so": {6}}, base=0)]
    assert HashTable(write({}, entries)).of_each({2, 6, 10}) == [
        {"libc10.so": {2, 6}},
        {"libc10.so": {2}, "libtorch.so": {6}},
    ]


def test_an_entry_that_hardly_differs_from_its_base_takes_hardly_any_room() -> None:
    one = write({}, [Entry({}, {"libtorch.so": MANY})])
    two = write({}, [Entry({}, {"libtorch.so": MANY}), Entry({}, {"libtorch.so": MANY | {2}}, base=0)])
    assert len(two) - len(one) < 150


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b"", "it does not start like a hash table"),
        (MAGIC, "it does not start like a hash table"),
        (MAGIC + b"\x09\0\0\0\0\0\0\0short", "the description of its entries is cut off or damaged"),
    ],
)
def test_what_is_no_table_is_refused(data: bytes, sentence: str) -> None:
    with pytest.raises(FormatError, match=sentence):
        HashTable(data)


def test_a_cut_off_entry_is_named_and_the_others_are_read() -> None:
    data = write({}, [Entry({}, {"libc10.so": {2, 4}}), Entry({}, {"libtorch.so": MANY})])
    table = HashTable(data[:-1])
    assert table.sets(0) == {"libc10.so": {2, 4}}
    with pytest.raises(FormatError, match="entry 1 is cut off or damaged"):
        table.sets(1)


@settings(max_examples=200)
@given(st.data())
def test_damaged_bytes_give_the_same_sets_or_an_error(data: st.DataObject) -> None:
    entries = [Entry({}, {"libtorch.so": {2, 70_000}}), Entry({}, {"libtorch.so": {2, 8}}, base=0)]
    whole = bytearray(write({}, entries))
    for _ in range(data.draw(st.integers(1, 4))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    try:
        found = HashTable(bytes(whole)).sets(1)
    except FormatError:
        return
    assert found == {"libtorch.so": {2, 8}}
