"""Consumer groups under any order of events: no partition has two readers, and in the end everybody has its own."""

from collections import Counter
from uuid import UUID

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from riverlog.groups.commands import ConsumerHeartbeat
from riverlog.groups.consumer.group import ConsumerGroup, ConsumerMember
from riverlog.groups.state import GroupsState
from riverlog.model.errors import ErrorCode
from tests.support.consumers import ConsumerCoordinator, FakeClassicConsumer, FakeConsumer, at_once
from tests.support.groups import CLIENT
from tests.support.shapes import topic_id

NAMES = ("orders", "payments", "returns")
SUBSCRIPTIONS = st.sets(st.sampled_from(NAMES)).map(lambda names: tuple(sorted(names)))
PATTERNS = st.sampled_from([None, "", "orders|pay.*", ".*s", "nothing"])
MEMBERS = st.sampled_from("abcde")
CLASSIC_MEMBERS = st.sampled_from("xy")


class ConsumerGroupEvents(RuleBasedStateMachine):
    """Members come, change, fall silent and go; topics change; answers are lost; the coordinator is lost."""

    @initialize(interval_ms=st.sampled_from([0, 200]), assignor=st.sampled_from(["uniform,range", "range"]))
    def start(self, interval_ms: int, assignor: str) -> None:
        self.coordinator = ConsumerCoordinator(
            at_once(
                group_consumer_assignment_interval_ms=interval_ms,
                group_consumer_assignors=tuple(assignor.split(",")),
                group_consumer_migration_policy="upgrade",  # it stays a consumer group, whoever is left
            ),
            orders=3,
            payments=2,
        )
        self.members: dict[str, FakeConsumer] = {}
        self.classic: dict[str, FakeClassicConsumer] = {}
        self.epochs: dict[str, int] = {}

    @rule(name=MEMBERS, topics=SUBSCRIPTIONS, pattern=PATTERNS, is_static=st.booleans(), is_terse=st.booleans())
    def join(self, name: str, topics: tuple[str, ...], pattern: str | None, is_static: bool, is_terse: bool) -> None:
        if name not in self.members:
            instance = f"i-{name}" if is_static else None
            self.members[name] = self.coordinator.consumer(name, regex=pattern, instance_id=instance, is_terse=is_terse)
            self.members[name].topics = topics
            self.members[name].beat()

    @rule(name=CLASSIC_MEMBERS, is_cooperative=st.booleans())
    def join_or_beat_in_classic_words(self, name: str, is_cooperative: bool) -> None:
        if name in self.classic:
            if self.group.members:
                self.classic[name].beat()
        elif self.group.members:
            self.classic[name] = FakeClassicConsumer(self.coordinator, is_cooperative=is_cooperative)
            self.classic[name].rejoin()

    @rule(name=CLASSIC_MEMBERS)
    def vanish_in_classic_words(self, name: str) -> None:
        self.classic.pop(name, None)

    @rule(name=MEMBERS, is_lost=st.booleans(), says_all=st.booleans())
    def beat(self, name: str, is_lost: bool, says_all: bool) -> None:
        member = self.members.get(name)
        if member is not None:
            reports = {} if says_all or member.epoch == 0 or member.is_terse else {"topic_partitions": None}
            member.beat(answer_is_lost=is_lost, **reports)

    @rule(name=MEMBERS, topics=SUBSCRIPTIONS, pattern=PATTERNS)
    def resubscribe(self, name: str, topics: tuple[str, ...], pattern: str | None) -> None:
        member = self.members.get(name)
        if member is not None:
            member.topics, member.regex = topics, pattern
            member.beat()

    @rule(name=MEMBERS)
    def leave(self, name: str) -> None:
        member = self.members.pop(name, None)
        if member is not None and member.epoch > 0:
            member.leave()

    @rule(name=MEMBERS)
    def restart(self, name: str) -> None:
        """Make a static member go and come back under another id."""
        member = self.members.get(name)
        if member is not None and member.instance_id is not None and member.epoch > 0:
            member.leave(epoch=-2)
            member.id = f"{member.id}+"
            member.beat()

    @rule(name=MEMBERS)
    def vanish(self, name: str) -> None:
        self.members.pop(name, None)

    @rule(name=st.sampled_from(NAMES), count=st.integers(0, 5))
    def change_topic(self, name: str, count: int) -> None:
        assert self.coordinator.topics is not None
        shape = self.coordinator.topics.topic(name)
        if count == 0 or shape is None or count > shape.partition_count:  # topics never shrink
            self.coordinator.change_topics(**{name: count})

    @rule(seconds=st.sampled_from([0.1, 1, 5, 20, 50]))
    def pass_time(self, seconds: float) -> None:
        self.coordinator.pass_time(seconds)

    @rule()
    def fail_over(self) -> None:
        before = self.coordinator.machine.state
        self.coordinator.fail_over()
        assert self.coordinator.machine.state == before
        copy = GroupsState()
        for record in before.records():
            copy.apply(record)
        assert copy == before

    @invariant()
    def no_partition_has_two_readers(self) -> None:
        known = self.group.members
        # Whoever lost its place without having heard of it reads on for a while; nothing that it commits is accepted.
        everybody = [*self.members.values(), *self.classic.values()]
        alive = [each for each in everybody if each.id in known and known[each.id].epoch >= each.epoch > 0]
        read = Counter((topic, index) for each in alive for topic, indexes in each.has.items() for index in indexes)
        assert all(readers == 1 for readers in read.values())

    @invariant()
    def no_partition_has_two_owners(self) -> None:
        owned = [(owner, member.id) for member in self.group.members.values() for owner in _owned(member)]
        assert dict(owned) == self.group.owners
        assert len(owned) == len(self.group.owners)

    @invariant()
    def epochs_only_grow(self) -> None:
        group = self.group
        assert all(member.epoch <= group.target_epoch <= group.epoch for member in group.members.values())
        for member_id, member in group.members.items():
            if member.epoch > 0:
                assert member.epoch >= self.epochs.get(member_id, 0)
                self.epochs[member_id] = member.epoch
        for gone in self.epochs.keys() - group.members.keys():
            del self.epochs[gone]

    def teardown(self) -> None:
        """Make heartbeats settle: everybody has what it is to have, and everything that exists is read."""
        if not self.members or not self.group.members:
            return  # whoever comes first decides which kind of group begins, and some joins wait for others
        everybody = [*self.members.values(), *self.classic.values()]
        for _ in range(60):
            for member in everybody:
                member.beat()
            self.coordinator.pass_time(1)
        self.coordinator.settle(*everybody)
        group, topics = self.group, self.coordinator.topics
        wanted = {
            (topic_id(name), index)
            for name in group.subscribed_topics()
            if (shape := topics.topic(name)) is not None
            for index in range(shape.partition_count)
        }
        assert group.owners.keys() == wanted
        for member in everybody:
            assert member.has == group.target_of(member.id)

    @property
    def group(self) -> ConsumerGroup:
        return self.coordinator.machine.state.consumers.get("g", ConsumerGroup("g"))


def _owned(member: ConsumerMember) -> list[tuple[UUID, int]]:
    return [(topic, index) for owned in (member.assigned, member.revoking) for topic in owned for index in owned[topic]]


TestConsumerGroupEvents = ConsumerGroupEvents.TestCase
TestConsumerGroupEvents.settings = settings(max_examples=30, stateful_step_count=40, deadline=None)


NUMBERS = st.one_of(st.sampled_from([-(2**31), -3, -2, -1, 0, 1, 2, 2**31 - 1]), st.integers(-(2**31), 2**31 - 1))
WORDS = st.one_of(st.sampled_from(["", "a", "b", "i", "orders", "(", ".*", "uniform", "range"]), st.text(max_size=20))
PARTITIONS = st.dictionaries(
    st.sampled_from([topic_id("orders"), UUID(int=0), UUID(int=9)]), st.frozensets(NUMBERS, min_size=1, max_size=4)
)
HEARTBEATS = st.builds(
    ConsumerHeartbeat,
    group_id=st.sampled_from(["g", ""]),
    client=st.just(CLIENT),
    new_id=st.uuids(),
    member_id=WORDS,
    member_epoch=NUMBERS,
    instance_id=st.none() | WORDS,
    rack_id=st.none() | WORDS,
    rebalance_timeout_ms=NUMBERS,
    subscribed_topic_names=st.none() | st.lists(WORDS, max_size=3).map(tuple),
    subscribed_topic_regex=st.none() | WORDS,
    server_assignor=st.none() | WORDS,
    topic_partitions=st.none() | st.just({}) | PARTITIONS,
    brings_its_id=st.booleans(),
)


@settings(max_examples=100, deadline=None)
@given(st.lists(HEARTBEATS, max_size=12), st.sampled_from([0.0, 1.0, 50.0]))
def test_whatever_a_heartbeat_says_it_is_answered_and_can_be_remembered(
    heartbeats: list[ConsumerHeartbeat], seconds: float
) -> None:
    coordinator = ConsumerCoordinator()
    for heartbeat in heartbeats:
        reply = coordinator.ask(heartbeat)
        assert (reply.code is ErrorCode.NONE) == (reply.message is None)
        coordinator.pass_time(seconds)
    before = coordinator.machine.state
    coordinator.fail_over()
    assert coordinator.machine.state == before
