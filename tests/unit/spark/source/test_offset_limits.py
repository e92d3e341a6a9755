"""Where queries begin and end, as programs write it."""

import pytest

from riverlog.arrow.positions import AtTimestamp, PartitionEnd
from riverlog.model.ids import TopicPartition
from riverlog.spark.options import BadOption, Options
from riverlog.spark.source.offset_limits import (
    AssignedPartitions,
    NamedTopics,
    OffsetLimit,
    SpecificOffsets,
    SpecificTimestamps,
    TopicPattern,
    check_batch,
    check_complete,
    matching,
    offset_limit,
    option_of,
    topic_selection,
)


def test_topics_are_chosen_in_three_ways() -> None:
    assert topic_selection(Options({"subscribe": "b, a,b"})) == NamedTopics(("b", "a"))
    assert topic_selection(Options({"subscribePattern": "or.*"})) == TopicPattern("or.*")
    assert topic_selection(Options({"assign": '{"b": [1, 0], "a": [2]}'})) == AssignedPartitions(
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
        topic_selection(Options(options))
    assert str(refused.value).startswith(message)


def test_a_pattern_is_about_the_whole_name() -> None:
    assert matching("orders|ret.*", ["orders-2", "returns", "orders", "my-returns"]) == ["orders", "returns"]
    assert matching("(?!_).*", ["_hidden", "open"]) == ["open"]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, PartitionEnd.LATEST),
        ({"startingOffsets": "Earliest"}, PartitionEnd.EARLIEST),
        ({"startingoffsets": '{"a": {"0": 7, "1": -2}}'}, SpecificOffsets({("a", 0): 7, ("a", 1): -2})),  # type: ignore[dict-item]
        (
            {"startingOffsetsByTimestamp": '{"a": {"0": 7}}', "startingOffsets": "earliest"},
            SpecificTimestamps({("a", 0): 7}),
        ),  # type: ignore[dict-item]
        ({"startingTimestamp": "1000", "startingOffsetsByTimestamp": "nothing"}, AtTimestamp(1000)),
    ],
)
def test_places(options: dict[str, str], expected: OffsetLimit) -> None:
    assert offset_limit(Options(options), "starting", default=PartitionEnd.LATEST) == expected


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
        offset_limit(Options({name: text}), "ending", default=PartitionEnd.LATEST)
    assert str(refused.value).startswith(message)


def test_a_batch_does_not_end_before_it_begins() -> None:
    here = TopicPartition("a", 0)
    check_batch(PartitionEnd.EARLIEST, PartitionEnd.LATEST)
    check_batch(SpecificOffsets({here: -2}), SpecificOffsets({here: -1}))
    check_batch(AtTimestamp(1), SpecificTimestamps({here: 2}))
    for starting, ending in (
        (PartitionEnd.LATEST, PartitionEnd.LATEST),
        (PartitionEnd.EARLIEST, PartitionEnd.EARLIEST),
        (SpecificOffsets({here: -1}), PartitionEnd.LATEST),
        (PartitionEnd.EARLIEST, SpecificOffsets({here: -2})),
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
    names = [
        option_of("starting", where)
        for where in (PartitionEnd.LATEST, SpecificOffsets({}), AtTimestamp(1), SpecificTimestamps({}))
    ]
    assert names == ["startingOffsets", "startingOffsets", "startingTimestamp", "startingOffsetsByTimestamp"]
