"""A draft shows what will be, and leaves what is."""

from riverlog.groups.consumer.draft import Draft
from riverlog.groups.consumer.group import ConsumerGroup
from riverlog.groups.records import ConsumerGroupMetadataKey, ConsumerGroupMetadataValue, GroupRecord


def test_a_draft_shows_its_facts_and_touches_nothing() -> None:
    remembered = ConsumerGroup("g", epoch=1)
    draft = Draft(remembered)
    assert draft.group is remembered
    key, value = ConsumerGroupMetadataKey("g"), ConsumerGroupMetadataValue(2)
    draft.write(key, value)
    assert draft.facts == [GroupRecord(key, value)]
    assert (draft.group.epoch, remembered.epoch) == (2, 1)
