"""What sinks say: runs that take over, steps of a batch, and what is no call at all."""

from dataclasses import replace
from typing import Any

import pytest

from riverlog.checkpoints.files.refusals import RequestRefused
from riverlog.checkpoints.limits import CHECKPOINT_RUNS_REMEMBERED_MAX
from riverlog.checkpoints.pipelines.pipeline import (
    Announced,
    AnnouncedWrite,
    Begun,
    Caller,
    PipelineState,
    Prepared,
    batch_of,
    caller_of,
    members_of,
    name_of,
    read_pipeline,
    transactional_id_of,
    write_of,
)
from riverlog.checkpoints.records import FileFacts, PipelineNoted, Unreadable, read_fact, write_fact
from riverlog.model.limits import MEMBERS_PER_BATCH_MAX

ANNOUNCED = Announced(7, (AnnouncedWrite("", ((4_001, 3),)), AnnouncedWrite("8", ((4_002, 0),))))
PIPELINE = PipelineState(Caller("q", "r2"), (4_000, 1), 12, 6, ("r0", "r1"), started_at=9)


@pytest.mark.parametrize(
    "step", [Begun(), ANNOUNCED, Prepared(ANNOUNCED, FileFacts("07", 3, 1_000, source="/p/commits/.7.tmp"))]
)
def test_a_pipeline_is_read_as_it_was_noted(step: Begun | Announced | Prepared) -> None:
    noted = PIPELINE.at(step).note("/p", b"abc")
    record = write_fact(noted)
    read = read_fact(record.key, record.value)
    assert isinstance(read, PipelineNoted)
    assert read.content == b"abc"
    assert read_pipeline(read.facts) == PIPELINE.at(step)


@pytest.mark.parametrize(
    "change", [{"owner": [1]}, {"owner": [1, -1]}, {"began_at": "x"}, {"batch": 1}, {"replaced": 3}, {"query": None}]
)
def test_what_no_store_noted_is_unreadable(change: dict[str, Any]) -> None:
    facts = {**PIPELINE.note("/p").facts, **change}
    if change == {"query": None}:
        del facts["query"]
    with pytest.raises(Unreadable):
        read_pipeline(facts)


def test_what_was_announced_without_writes_is_one_write() -> None:
    facts = PIPELINE.at(ANNOUNCED).note("/p").facts
    del facts["writes"]
    assert read_pipeline(facts).step == Announced(7, (AnnouncedWrite("", ((4_001, 3), (4_002, 0))),))


def test_writes_of_a_batch_are_announced_together_and_each_may_be_said_again_or_taken_back() -> None:
    again = ANNOUNCED.joined_by(AnnouncedWrite("8", ((4_003, 0),)))
    assert again.members == ((4_001, 3), (4_003, 0))
    left = again.left_by("")
    assert left == Announced(7, (AnnouncedWrite("8", ((4_003, 0),)),))
    assert left.left_by("8") is None
    many = tuple((number, 0) for number in range(MEMBERS_PER_BATCH_MAX))
    with pytest.raises(RequestRefused, match="all writes of a batch have at most 1,024 members"):
        ANNOUNCED.joined_by(AnnouncedWrite("9", many))


def test_a_call_names_its_write() -> None:
    assert write_of({}) == ""
    assert write_of({"write": "42"}) == "42"
    for bad in (7, None, "x" * 257):
        with pytest.raises(RequestRefused, match="a write has a name"):
            write_of({"write": bad})


def test_a_run_takes_over_once() -> None:
    assert not PIPELINE.is_new(Caller("q", "r2"))
    assert PIPELINE.is_new(Caller("q", "r3"))
    assert PIPELINE.is_new(Caller("other", "r3"))
    for old in ("r0", "r1"):
        with pytest.raises(RequestRefused, match=f"run {old} of this query was replaced by run r2") as refused:
            PIPELINE.is_new(Caller("q", old))
        assert refused.value.name == "AccessControlException"
    with pytest.raises(RequestRefused):
        PIPELINE.is_new(Caller("other", "r2"))
    PIPELINE.check(Caller("q", "r2"))


def test_so_many_runs_are_remembered() -> None:
    assert PIPELINE.runs_replaced() == ("r0", "r1", "r2")
    many = replace(PIPELINE, replaced=tuple(map(str, range(CHECKPOINT_RUNS_REMEMBERED_MAX))))
    assert len(many.runs_replaced()) == CHECKPOINT_RUNS_REMEMBERED_MAX
    assert many.runs_replaced()[-1] == "r2"


def test_the_marker_names_the_file() -> None:
    assert Prepared(ANNOUNCED, FileFacts("07ab", 3, 1_000)).marker == b"07ab"


def test_no_two_checkpoints_have_one_name() -> None:
    assert name_of("/pipelines/orders") == "orders"
    assert name_of("/pipelines/a/b") == "/pipelines/a/b"
    assert name_of("/orders") == "/orders"
    assert transactional_id_of("/pipelines/orders") == "pipeline:orders"


def test_calls_are_read() -> None:
    assert caller_of({"query": "q", "run": "r"}) == Caller("q", "r")
    assert batch_of({"batch": 0}) == 0
    assert members_of([[1, 2], (3, 4)]) == ((1, 2), (3, 4))


@pytest.mark.parametrize(
    "call",
    [{}, {"query": "q"}, {"query": "q", "run": ""}, {"query": 1, "run": "r"}, {"query": "q", "run": "r" * 1_000}],
)
def test_a_call_without_a_name_is_refused(call: dict[str, Any]) -> None:
    with pytest.raises(RequestRefused, match="query and its run"):
        caller_of(call)


@pytest.mark.parametrize("batch", [None, -1, "1", 1.0, True, 2**63])
def test_a_call_without_a_batch_is_refused(batch: object) -> None:
    with pytest.raises(RequestRefused, match="names its batch"):
        batch_of({"batch": batch})


@pytest.mark.parametrize(
    "members",
    [
        None,
        {},
        "ab",
        [1],
        [[1]],
        [[1, 2, 3]],
        [[1, -1]],
        [["1", 2]],
        [[1, 40_000]],
        [[1, 1]] * (MEMBERS_PER_BATCH_MAX + 1),
    ],
)
def test_what_are_no_members_is_refused(members: object) -> None:
    with pytest.raises(RequestRefused, match="member"):
        members_of(members)
