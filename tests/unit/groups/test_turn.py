"""A turn collects facts and answers in the order in which they came up."""

from riverlog.groups.records import GroupMetadataKey, GroupMetadataValue, GroupRecord
from riverlog.groups.turn import Turn
from riverlog.model.machine import Instant, Moment, Reply, Ticket


def test_a_turn_becomes_a_decision() -> None:
    turn = Turn(Moment(Instant(10.0), 1_000))
    turn.write(GroupMetadataKey("a"), GroupMetadataValue(generation=1))
    turn.write(GroupMetadataKey("b"), None)
    turn.answer(Ticket(2), "second")
    turn.answer(Ticket(1), "first")
    decision = turn.decision()
    assert decision.records == (
        GroupRecord(GroupMetadataKey("a"), GroupMetadataValue(generation=1)),
        GroupRecord(GroupMetadataKey("b"), None),
    )
    assert decision.replies == (Reply(Ticket(2), "second"), Reply(Ticket(1), "first"))


def test_time_runs_in_milliseconds_outside_and_seconds_inside() -> None:
    assert Turn(Moment(Instant(10.0), 1_000)).in_ms(2_500) == 12.5
