"""The shape of a replicated machine, and that the one we have fits it."""

from dataclasses import FrozenInstanceError
from types import UnionType
from typing import get_args

import pytest

from riverlog.groups.commands import GroupsCommand
from riverlog.groups.records import GroupFact
from riverlog.metadata.cluster_decisions import MetadataCommand
from riverlog.metadata.commands.topics import TopicDefaults
from riverlog.metadata.machine import MetadataMachine
from riverlog.metadata.records import MetadataRecord
from riverlog.model.machine import Command, Decision, Instant, Moment, ReplicatedMachine, Reply, Ticket
from riverlog.transactions.commands import TransactionsCommand
from riverlog.transactions.records import StateFact
from tests.support.replies import promised_by


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


@pytest.mark.parametrize(
    ("commands", "records"),
    [(GroupsCommand, GroupFact), (TransactionsCommand, StateFact), (MetadataCommand, MetadataRecord)],
    ids=["groups", "transactions", "metadata"],
)
def test_a_machine_decides_about_all_commands_of_its_records_and_no_others(commands: UnionType, records: UnionType):
    typed = {each.__name__ for each in Command.__subclasses__() if promised_by(each)[0] == records}
    assert {each.__name__ for each in get_args(commands)} == typed
