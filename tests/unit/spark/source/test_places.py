"""Where queries begin and end, as programs write it."""

import pytest

from riverlog.arrow.places import At, Edge
from riverlog.model.ids import TopicPartition
from riverlog.spark.options import BadOption, Options
from riverlog.spark.source.places import (
    Assigned,
    EachOffset,
    EachTime,
    Matching,
    Place,
    Subscribed,
    check_batch,
    check_complete,
    chosen,
    matching,
    option_of,
    place,
)


def test_topics_are_chosen_in_three_ways() -> None:
    assert chosen(Options({"subscribe": "b, a,b"})) == Subscribed(("b", "a"))
    assert chosen(Options({"subscribePattern": "or.*"})) == Matching("or.*")
    assert chosen(Options({"assign": '{"b": [1, 0], "a": [2]}'})) == Assigned(
        (TopicPartition("a", 2), TopicPartition("b", 0), TopicPartition("b", 1))
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {},
            "option subscribe | subscribePattern | assign: no topic is named; set one of subscribe, subscribePattern,",
        ),
        ({"subscribe": "a", "assign": "{}"}, "option subscribe | assign: subscribe and assign exclude each other"),
        ({"subscribe": " , "}, "option subscribe=',': write topics with commas"),
        ({"subscribePattern": "a("}, "option subscribePattern='a(': that is no regular expression: missing )"),
        ({"assign": "orders"}, "option assign='orders': that is not JSON (Expecting value: line 1"),
        ({"assign": '{"a": 3}'}, """option assign='{"a": 3}': write partitions as in {"orders": [0, 1]}"""),
        ({"assign": '{"a": [true]}'}, """option assign='{"a": [true]}': write partitions as in"""),
        ({"assign": "[]"}, "option assign='[]': write partitions as in"),
        ({"assign": '{"a": []}'}, """option assign='{"a": []}': no partition is named; write partitions as in"""),
    ],
)
def test_a_wrong_choice_is_told(options: dict[str, str], message: str) -> None:
    with pytest.raises(BadOption) as refused:
        chosen(Options(options))
    assert str(refused.value).startswith(message)


def test_a_pattern_is_about_the_whole_name() -> None:
    assert matching("orders|ret.*", ["orders-2", "returns", "orders", "my-returns"]) == ["orders", "returns"]
    assert matching("(?!_).*", ["_hidden", "open"]) == ["open"]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, Edge.LATEST),
        ({"startingOffsets": "Earliest"}, Edge.EARLIEST),
        ({"startingoffsets": '{"a": {"0": 7, "1": -2}}'}, EachOffset({("a", 0): 7, ("a", 1): -2})),  # type: ignore[dict-item]
        ({"startingOffsetsByTimestamp": '{"a": {"0": 7}}', "startingOffsets": "earliest"}, EachTime({("a", 0): 7})),  # type: ignore[dict-item]
        ({"startingTimestamp": "1000", "startingOffsetsByTimestamp": "nothing"}, At(1000)),
    ],
)
def test_places(options: dict[str, str], expected: Place) -> None:
    assert place(Options(options), "starting", default=Edge.LATEST) == expected


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("endingOffsets", "lastest", "option endingOffsets='lastest': that is not JSON"),
        ("endingOffsets", "[1]", "option endingOffsets='[1]': write earliest, latest, or {"),
        ("endingOffsets", '{"a": 3}', """option endingOffsets='{"a": 3}': write earliest, latest, or {"""),
        (
            "endingOffsets",
            '{"a": {"0": -3}}',
            """option endingOffsets='{"a": {"0": -3}}': '0': -3 of topic a is not und""",
        ),
        (
            "endingOffsets",
            '{"a": {"x": 3}}',
            """option endingOffsets='{"a": {"x": 3}}': 'x': 3 of topic a is not unders""",
        ),
        ("endingTimestamp", "today", "option endingTimestamp='today': write milliseconds since 1970"),
        (
            "endingOffsetsByTimestamp",
            '{"a": {"0": "x"}}',
            """option endingOffsetsByTimestamp='{"a": {"0": "x"}}': '0'""",
        ),
    ],
)
def test_a_wrong_place_is_told(name: str, text: str, message: str) -> None:
    with pytest.raises(BadOption) as refused:
        place(Options({name: text}), "ending", default=Edge.LATEST)
    assert str(refused.value).startswith(message)


def test_a_batch_does_not_end_before_it_begins() -> None:
    here = TopicPartition("a", 0)
    check_batch(Edge.EARLIEST, Edge.LATEST)
    check_batch(EachOffset({here: -2}), EachOffset({here: -1}))
    check_batch(At(1), EachTime({here: 2}))
    for starting, ending in (
        (Edge.LATEST, Edge.LATEST),
        (Edge.EARLIEST, Edge.EARLIEST),
        (EachOffset({here: -1}), Edge.LATEST),
        (Edge.EARLIEST, EachOffset({here: -2})),
    ):
        with pytest.raises(BadOption, match="nothing to read"):
            check_batch(starting, ending)


def test_a_place_names_every_partition_and_no_other() -> None:
    there = [TopicPartition("a", index) for index in range(6)]
    check_complete("startingOffsets", there, reversed(there))
    with pytest.raises(BadOption, match=r"where a-1, a-2, a-3 and 2 more begins; name every partition"):
        check_complete("startingOffsets", there[:1], there)
    with pytest.raises(BadOption, match=r"it names a-5, which this query does not read"):
        check_complete("startingOffsets", there, there[:5])


def test_options_are_named_by_what_they_say() -> None:
    names = [option_of("starting", where) for where in (Edge.LATEST, EachOffset({}), At(1), EachTime({}))]
    assert names == ["startingOffsets", "startingOffsets", "startingTimestamp", "startingOffsetsByTimestamp"]
