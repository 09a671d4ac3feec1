"""JSON values become dataclasses as the annotations say, or one error names the place of every fault."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, Any, Literal, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support import hosts
from wheel_checks.decode import MOST_FAULTS, Check, DecodeError, Fault, Filled, Key, Made, Policy, decode
from wheel_checks.decode.encode import encode
from wheel_checks.errors import UsageError
from wheel_checks.facts.host.codec import from_json, to_json
from wheel_checks.facts.host.facts import HostFacts
from wheel_checks.model import Unavailable

STRICT = Policy()
LENIENT = Policy(unknown_keys=True, null_is_absent=True)


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


def _number(text: str) -> int:
    if not text.isdecimal():
        raise UsageError(f"{text!r} is not a number", expected="digits")
    return int(text)


def _total(sizes: Mapping[str, int]) -> int:
    return sum(sizes.values())


@dataclass(frozen=True, slots=True)
class Part:
    name: Filled
    size: int = 0

    def __post_init__(self) -> None:
        if self.size < 0:
            raise DecodeError([Fault(("size",), "is negative")])
        if self.name == "none":
            raise UsageError("a part has a name", expected="another name")


@dataclass(frozen=True, slots=True)
class Whole:
    text: str = ""
    flag: bool = False
    number: float | None = None
    colour: Colour = Colour.RED
    parts: tuple[Part, ...] | Unavailable = ()
    main: Part | Unavailable | None = None
    pair: tuple[int, str] = (0, "")
    mixed: tuple[str | int | Part, ...] = ()
    by_name: Mapping[str, Part] = field(default_factory=dict)
    by_colour: Mapping[Annotated[str, Check({"red"}.__contains__, "red")], int] = field(default_factory=dict)
    parsed: Annotated[int, Key("digits"), Made(_number)] = 0
    total: Annotated[int, Key("sizes"), Made(_total, of=Mapping[str, int])] = 0
    count: Annotated[int, Key("sizes"), Made(len, of=Mapping[str, int])] = 0
    other: Any = None


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({}, Whole()),
        ({"text": "a", "flag": True, "number": 3, "colour": "blue"}, Whole("a", True, 3.0, Colour.BLUE)),
        ({"parts": [{"name": "a", "size": 2}, {"name": "b"}]}, Whole(parts=(Part("a", 2), Part("b")))),
        ({"parts": {"unavailable": "gone"}}, Whole(parts=Unavailable("gone"))),
        ({"main": {"unavailable": "gone", "hint": "look"}}, Whole(main=Unavailable("gone", "look"))),
        ({"main": {"name": "a"}}, Whole(main=Part("a"))),
        ({"main": None, "number": None}, Whole()),
        ({"pair": [1, "x"], "mixed": ["a", 2, {"name": "b"}]}, Whole(pair=(1, "x"), mixed=("a", 2, Part("b")))),
        (
            {"by_name": {"x": {"name": "a"}}, "by_colour": {"red": 1}},
            Whole(by_name={"x": Part("a")}, by_colour={"red": 1}),
        ),
        ({"digits": "17", "sizes": {"a": 1, "b": 2}}, Whole(parsed=17, total=3, count=2)),
        ({"other": [{"a": [None]}]}, Whole(other=[{"a": [None]}])),
    ],
)
def test_a_value_becomes_what_the_annotations_say(value: dict[str, Any], expected: Whole) -> None:
    assert decode(Whole, value, STRICT) == expected


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ([1], "the document is a list; expected an object"),
        (None, "the document is null; expected an object"),
        ({"text": 3}, "text is 3; expected a string"),
        ({"flag": 1}, "flag is 1; expected true or false"),
        ({"number": True}, "number is true; expected a number"),
        ({"number": 10**400}, "number is a number with many digits; expected a number"),
        ({"colour": "green"}, "colour is 'green'; expected one of red, blue"),
        ({"colour": []}, "colour is []; expected one of red, blue"),
        ({"parts": [{"name": "a"}, {"name": 3}]}, "parts[1].name is 3; expected a string"),
        ({"parts": [{}]}, "parts[0].name is missing; expected a string that is not empty"),
        ({"parts": [{"name": ""}]}, "parts[0].name is ''; expected a string that is not empty"),
        ({"parts": [{"name": "a", "size": -1}]}, "parts[0].size is negative"),
        ({"parts": [{"name": "none"}]}, "parts[0] is wrong: a part has a name; expected another name"),
        ({"parts": 3}, "parts is 3; expected a list of objects or an object"),
        ({"main": {}}, "main.name is missing; expected a string that is not empty"),
        ({"pair": [1]}, "pair is a list; expected a list of 2 values"),
        ({"pair": [1, 2]}, "pair[1] is 2; expected a string"),
        ({"mixed": [1.5]}, "mixed[0] is 1.5; expected a string or a whole number or an object"),
        ({"by_name": {"a b": 3}}, "by_name.'a b' is 3; expected an object"),
        ({"by_colour": {"blue": 1}}, "by_colour.blue is 'blue'; expected red"),
        ({"digits": "x"}, "digits is wrong: 'x' is not a number; expected digits"),
        ({"txet": "a"}, "txet is not a known key; expected text"),
        ({"x" * 200: 1}, f"'{'x' * 80}...' is not a known key; expected one of by_colour, by_name"),
        ({"text": 3, "flag": 1}, "2 faults: text is 3; expected a string; flag is 1; expected true or false"),
    ],
)
def test_a_fault_is_said_with_its_path(value: Any, said: str) -> None:
    with pytest.raises(DecodeError) as caught:
        decode(Whole, value, STRICT)

    assert str(caught.value).startswith(said)


def test_the_document_and_the_path_that_leads_to_the_value_are_named() -> None:
    with pytest.raises(DecodeError, match=r"^a\.json: cells\[3\]\.text is 3; expected a string$"):
        decode(Whole, {"text": 3}, STRICT, "a.json", path=("cells", 3))
    with pytest.raises(DecodeError, match=r"^a\.json is \[\]; expected an object$"):
        decode(Whole, [], STRICT, "a.json")


def test_what_a_policy_allows() -> None:
    assert decode(Whole, {"text": None, "more": 1}, LENIENT) == Whole()
    assert decode(Whole, {"text": "abcd"}, Policy(longest=3, clipped=True)) == Whole("abc")
    assert decode(Whole, {"by-name": {}}, Policy(toml=True)) == Whole()
    with pytest.raises(DecodeError, match="text has 4 characters; expected at most 3"):
        decode(Whole, {"text": "abcd"}, Policy(longest=3))
    with pytest.raises(DecodeError, match="mixed has 4 entries; expected at most 3"):
        decode(Whole, {"mixed": ["a"] * 4}, Policy(most=3))
    with pytest.raises(DecodeError, match="by_name has 4 entries; expected at most 3"):
        decode(Whole, {"by_name": {key: {} for key in "abcd"}}, Policy(most=3))


def test_a_class_that_cannot_be_decoded_is_a_mistake_of_ours() -> None:
    @dataclass(frozen=True)
    class Strange:
        raw: complex

    Strange.__annotations__["raw"] = complex
    with pytest.raises(TypeError, match="cannot be decoded"):
        decode(Strange, {"raw": ""}, STRICT)


def test_of_many_faults_the_first_are_said() -> None:
    with pytest.raises(DecodeError) as caught:
        decode(Whole, {"mixed": [None] * 1_000_000}, STRICT)

    assert len(caught.value.faults) == MOST_FAULTS
    assert str(caught.value).startswith(f"the first {MOST_FAULTS} faults: mixed[0] is null")
    assert len(str(caught.value)) < 10_000


SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.sampled_from(["red", "7"])
KEYS = st.sampled_from([f.name for f in dataclasses.fields(Whole)] + ["name", "size", "digits", "sizes", "unavailable"])
VALUES = st.recursive(
    SCALARS,
    lambda v: st.lists(v, max_size=4) | st.dictionaries(KEYS | st.text(max_size=3), v, max_size=5),
    max_leaves=30,
)


@settings(max_examples=400, deadline=None)
@given(
    VALUES | st.dictionaries(KEYS, VALUES, max_size=6), st.sampled_from([STRICT, LENIENT, Policy(toml=True, most=2)])
)
def test_any_value_is_decoded_or_refused_with_paths_that_lead_to_it(value: Any, policy: Policy) -> None:
    faults: tuple[Fault, ...] = ()
    try:
        assert isinstance(decode(Whole, value, policy), Whole)
    except DecodeError as error:
        faults = error.faults
    assert len(faults) <= MOST_FAULTS
    for fault in faults:
        found = value
        for part in fault.path[:-1]:
            found = found[part]
        assert not fault.path or fault.what in ("is missing", "is negative") or _has(found, fault.path[-1])


def _has(value: Any, part: str | int) -> bool:
    return part < len(value) if isinstance(part, int) else part in value


# --- The facts of a host, which have every kind of field


FIELDS = st.sampled_from([f.name for f in dataclasses.fields(HostFacts)])


@pytest.mark.parametrize("make", [hosts.healthy, hosts.hgx, HostFacts], ids=["healthy", "hgx", "empty"])
def test_facts_of_a_host_come_back_as_they_were(make: Any) -> None:
    facts = make()

    assert from_json(json.loads(json.dumps(to_json(facts)))) == facts


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_facts_with_any_value_anywhere_are_refused_or_come_back(data: st.DataObject) -> None:
    document = json.loads(json.dumps(to_json(hosts.hgx())))
    place, keys = document, sorted(document.keys() - {"schema"})
    while keys:
        key = data.draw(st.sampled_from(keys))
        inner = place[key]
        keys = sorted(inner) if isinstance(inner, dict) else list(range(len(inner))) if isinstance(inner, list) else []
        if not keys or data.draw(st.booleans()):
            place[key] = data.draw(VALUES)
            break
        place = inner
    try:
        again = to_json(from_json(document))
    except DecodeError as error:
        again, said = None, str(error)
    if again is None:
        assert said.startswith("the facts of the host: ")
    else:
        assert json.dumps(to_json(from_json(again))) == json.dumps(again)


class Place(NamedTuple):
    offset: int
    raw: bytes
    names: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Found:
    versions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NotFound:
    ranges: tuple[Place, ...] = ()


@dataclass(frozen=True, slots=True)
class Kept:
    """What is kept and what documents have no other word for."""

    places: tuple[Place, ...]
    counts: Mapping[frozenset[str], int]
    order: Literal["little", "big"]
    bits: Literal[32, 64]
    found: Found | NotFound
    absent: Found | NotFound | None = None
    reason: Annotated[str, Key("why")] = ""


KEPT = Kept(
    (Place(1, b"\x00\xff", frozenset({"b", "a"})),), {frozenset({"sm_90", "sm_80"}): 2}, "big", 64, NotFound(), Found()
)


def test_what_is_encoded_is_decoded_to_the_same() -> None:
    data = json.loads(json.dumps(encode(KEPT)))

    assert decode(Kept, data, STRICT) == KEPT
    assert data["places"] == [[1, "\x00\xff", ["a", "b"]]]
    assert data["counts"] == [[["sm_80", "sm_90"], 2]]


def test_a_mapping_without_entries_is_decoded_whatever_its_keys_would_be() -> None:
    empty = dataclasses.replace(KEPT, counts={})

    assert decode(Kept, json.loads(json.dumps(encode(empty))), STRICT) == empty


def test_without_defaults_what_has_its_default_is_left_out() -> None:
    part = Part("a")

    assert encode(part, defaults=False) == {"name": "a"}
    assert decode(Part, encode(part, defaults=False), STRICT) == part


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("places", [[1, "\u0100", []]], r"places\[0\]\[1\] is .*; expected a string of characters up to U\+00FF"),
        ("places", [[1, ""]], r"places\[0\] is .*; expected a list of 3 values"),
        ("counts", {"sm_90": 1}, "counts is an object; expected a list of lists"),
        ("order", "middle", "order is 'middle'; expected one of little, big"),
        ("bits", 64.0, "bits is 64.0; expected one of 32, 64"),
        ("found", {"ranges": [], "versions": []}, "found.ranges is not a known key"),
    ],
)
def test_what_is_kept_is_checked_like_any_document(key: str, value: Any, message: str) -> None:
    with pytest.raises(DecodeError, match=message):
        decode(Kept, encode(KEPT) | {key: value}, STRICT)
