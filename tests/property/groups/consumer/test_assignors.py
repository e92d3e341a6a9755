"""Assignors: whatever the members and their past, each partition has one reader, and the same one if asked again."""

from collections import Counter
from collections.abc import Mapping
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from riverlog.groups.consumer.assignors.range import assign_range
from riverlog.groups.consumer.assignors.subscriber import Assignor, Partitions, Subscriber
from riverlog.groups.consumer.assignors.uniform import assign_uniform

TOPICS = [UUID(int=number) for number in range(1, 6)]
COUNTS = st.fixed_dictionaries({topic: st.integers(0, 9) for topic in TOPICS})


@st.composite
def groups(draw: st.DrawFn, *, alike: bool = False) -> tuple[list[Subscriber], dict[UUID, int]]:
    """Return members with any subscriptions, and with any past that does not give one partition to two of them."""
    counts = draw(COUNTS)
    names = draw(st.lists(st.sampled_from("abcdefgh"), min_size=1, unique=True))
    shared = frozenset(draw(st.sets(st.sampled_from(TOPICS), min_size=1)))
    past: dict[str, dict[UUID, set[int]]] = {name: {} for name in names}
    for topic in TOPICS:
        for index in range(draw(st.integers(0, 9))):
            owner = draw(st.sampled_from([*names, None]))
            if owner is not None:
                past[owner].setdefault(topic, set()).add(index)
    members = [
        Subscriber(
            name,
            shared if alike else frozenset(draw(st.sets(st.sampled_from(TOPICS)))),
            {topic: frozenset(indexes) for topic, indexes in past[name].items()},
            draw(st.sampled_from([None, f"instance-{name}"])),
        )
        for name in names
    ]
    return members, counts


def owners(assigned: Mapping[str, Partitions]) -> Counter[tuple[UUID, int]]:
    return Counter((topic, index) for parts in assigned.values() for topic, found in parts.items() for index in found)


def load(partitions: Partitions) -> int:
    return sum(map(len, partitions.values()))


def kept(members: list[Subscriber], assigned: Mapping[str, Partitions]) -> int:
    return sum(
        len(found & each.assigned.get(topic, frozenset()))
        for each in members
        for topic, found in assigned[each.member_id].items()
    )


@pytest.mark.parametrize("assign", [assign_uniform, assign_range])
@given(group=groups(), shuffled=st.randoms())
def test_every_partition_has_exactly_one_reader_who_subscribed(assign: Assignor, group, shuffled):
    members, counts = group
    assigned = assign(members, counts)
    subscribed = {topic for each in members for topic in each.topics}
    assert owners(assigned) == Counter((topic, index) for topic in subscribed for index in range(counts[topic]))
    assert all(assigned[each.member_id].keys() <= each.topics for each in members)
    assert all(found for partitions in assigned.values() for found in partitions.values())
    again = list(members)
    shuffled.shuffle(again)
    assert assign(again, counts) == assigned


@given(groups(alike=True))
def test_uniform_gives_members_who_subscribe_alike_the_same_with_the_fewest_moves(group):
    members, counts = group
    assigned = assign_uniform(members, counts)
    loads = [load(assigned[each.member_id]) for each in members]
    assert max(loads) - min(loads) <= 1
    had = [
        sum(index < counts[topic] for topic in each.topics for index in each.assigned.get(topic, ()))
        for each in members
    ]
    share, more = divmod(sum(loads), len(members))
    fairest = [share + (place < more) for place in range(len(members))]
    assert kept(members, assigned) == sum(map(min, sorted(had, reverse=True), fairest))


@given(groups())
def test_uniform_leaves_no_topic_that_one_move_would_even_out(group):
    members, counts = group
    assigned = assign_uniform(members, counts)
    for topic in TOPICS:
        readers = [each.member_id for each in members if topic in each.topics]
        for giver in readers:
            if topic in assigned[giver]:
                assert all(load(assigned[giver]) - load(assigned[taker]) <= 1 for taker in readers)


@given(groups())
def test_uniform_asked_again_with_its_own_answer_moves_nothing(group):
    members, counts = group
    assigned = assign_uniform(members, counts)
    settled = [Subscriber(each.member_id, each.topics, assigned[each.member_id]) for each in members]
    assert assign_uniform(settled, counts) == assigned
