"""Effects collect facts and answers in the order in which they came up."""

from riverlog.groups.effects import GroupEffects
from riverlog.groups.records import GroupMetadataKey, GroupMetadataValue, GroupRecord
from riverlog.model.machine import Instant, Moment, Reply, Ticket
from riverlog.model.timers import Timers


def test_effects_become_a_decision() -> None:
    effects = GroupEffects(Moment(Instant(10.0), 1_000), Timers())
    effects.write(GroupMetadataKey("a"), GroupMetadataValue(generation=1))
    effects.write(GroupMetadataKey("b"), None)
    effects.answer(Ticket(2), "second")
    effects.answer(Ticket(1), "first")
    decision = effects.decision()
    assert decision.records == (
        GroupRecord(GroupMetadataKey("a"), GroupMetadataValue(generation=1)),
        GroupRecord(GroupMetadataKey("b"), None),
    )
    assert decision.replies == (Reply(Ticket(2), "second"), Reply(Ticket(1), "first"))


def test_time_runs_in_milliseconds_outside_and_seconds_inside() -> None:
    assert GroupEffects(Moment(Instant(10.0), 1_000), Timers()).in_ms(2_500) == 12.5
