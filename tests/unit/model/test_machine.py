"""The shape of a replicated machine, and that the one we have fits it."""

from dataclasses import FrozenInstanceError

import pytest

from riverlog.metadata.commands.topics import TopicDefaults
from riverlog.metadata.machine import MetadataMachine
from riverlog.model.machine import Decision, Instant, Moment, ReplicatedMachine, Reply, Ticket


def test_a_decision_may_come_to_nothing():
    decision: Decision[int, str] = Decision()
    assert (decision.records, decision.replies, decision.effects) == ((), (), ())


def test_what_was_decided_cannot_be_changed_later():
    reply = Reply(Ticket(1), "yes")
    with pytest.raises(FrozenInstanceError):
        reply.response = "no"  # type: ignore[misc]  # this is what must fail
    with pytest.raises(FrozenInstanceError):
        Moment(Instant(0.0), 0).wall_ms = 5  # type: ignore[misc]  # and this


def test_the_metadata_machine_has_the_shape():
    machine = MetadataMachine(TopicDefaults(1, 1))
    for name in ("decide", "apply", "snapshot", "next_deadline"):
        assert callable(getattr(machine, name))
        assert hasattr(ReplicatedMachine, name)
    assert machine.next_deadline() is None
