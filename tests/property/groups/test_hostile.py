"""Whatever fits the wire's types is answered: no command makes the machine fail, and every fact can be written."""

from dataclasses import replace
from uuid import UUID

from hypothesis import given, settings
from hypothesis import strategies as st

from riverlog.groups.commands import (
    Announce,
    CommitOffsets,
    ConsumerHeartbeat,
    DeleteGroups,
    DeleteOffsets,
    DescribeConsumerGroups,
    DescribeGroups,
    FetchOffsets,
    GroupsCommand,
    Heartbeat,
    Join,
    Leave,
    Leaver,
    ListGroups,
    MemberClient,
    OffsetsOfTopic,
    OffsetToCommit,
    ProducerIdentity,
    Protocol,
    Sync,
    TopicsDeleted,
    TransactionEnded,
)
from riverlog.model.ids import LeaderEpoch, Offset, ProducerEpoch, ProducerId, TopicId, TopicPartition
from tests.support.consumers import ConsumerCoordinator, at_once
from tests.support.groups import subscription
from tests.support.shapes import topic_id


class Longest(str):
    """The longest string that a message can carry; its representation is short."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "LONGEST"


LONGEST = Longest("x" * 32_767)
INT32 = st.sampled_from([-(2**31), -2, -1, 0, 1, 2, 6_000, 45_000, 2**31 - 1])
INT64 = st.sampled_from([-(2**63), -1, 0, 1, 2**63 - 1])
NAMES = st.sampled_from(["", "g", "a", "app-00000000-0000-0000-0000-000000000001", "ü", LONGEST])
MAYBE = st.one_of(st.none(), NAMES)
DATA = st.sampled_from([b"", b"\x00", b"\x00\x00\x00\x00\x00\x01\x00\x01g", b"\xff" * 100])
IDS = st.sampled_from([UUID(int=0), UUID(int=1), UUID(int=2), topic_id("g")])
CLIENTS = st.builds(MemberClient, NAMES, st.just("/127.0.0.1"))
PRODUCERS = st.builds(ProducerIdentity, st.sampled_from([ProducerId(1), ProducerId(2)]), st.just(ProducerEpoch(0)))
SESSIONS = st.sampled_from([6_000, 1_800_000, 0, -(2**31), 2**31 - 1])


def several(strategy: st.SearchStrategy[object]) -> st.SearchStrategy[tuple[object, ...]]:
    return st.lists(strategy, max_size=3).map(tuple)


PROTOCOLS = st.lists(st.builds(Protocol, NAMES, DATA), max_size=3).map(tuple)
OFFSETS = st.builds(OffsetToCommit, NAMES, INT32, INT64.map(Offset), INT32.map(LeaderEpoch), MAYBE, IDS.map(TopicId))
MEMBERS = st.sampled_from(["", "a", "ü", *(f"app-{UUID(int=number)}" for number in range(1, 4))])
PLAUSIBLE: st.SearchStrategy[GroupsCommand] = st.one_of(
    st.builds(
        Join,
        st.just("g"),
        st.just(MemberClient("app", "/127.0.0.1")),
        IDS,
        MEMBERS,
        st.sampled_from([None, None, "a"]),
        st.just("consumer"),
        st.just((Protocol("range", subscription("g", "a")),)),
        needs_known_id=st.booleans(),
        may_skip_assignment=st.booleans(),
    ),
    st.builds(Announce, st.just("g"), MEMBERS),
    st.builds(Sync, st.just("g"), MEMBERS, st.integers(0, 4)),
    st.builds(Heartbeat, st.just("g"), MEMBERS, st.integers(0, 4)),
    st.builds(
        ConsumerHeartbeat,
        st.just("g"),
        CLIENTS,
        IDS,
        MEMBERS,
        st.sampled_from([0, 0, 1, 2, 3, -1, -2]),
        st.sampled_from([None, None, "a"]),
        rebalance_timeout_ms=st.just(30_000),
        subscribed_topic_names=st.just(("g", "a", "missing")),
        subscribed_topic_regex=st.sampled_from([None, "g|a"]),
        topic_partitions=st.sampled_from([{}, {topic_id("g"): frozenset({0})}, {topic_id("g"): frozenset({7, -1})}]),
        brings_its_id=st.booleans(),
    ),
)
COMMANDS: st.SearchStrategy[GroupsCommand] = st.one_of(
    PLAUSIBLE,
    st.builds(Join, NAMES, CLIENTS, IDS, NAMES, MAYBE, NAMES, PROTOCOLS, SESSIONS, INT32, st.booleans(), st.booleans()),
    st.builds(Sync, NAMES, NAMES, INT32, MAYBE, MAYBE, MAYBE, st.dictionaries(NAMES, DATA, max_size=2)),
    st.builds(Heartbeat, NAMES, NAMES, INT32, MAYBE),
    st.builds(Leave, NAMES, several(st.builds(Leaver, NAMES, MAYBE))),
    st.builds(
        CommitOffsets,
        NAMES,
        several(OFFSETS),
        NAMES,
        INT32,
        MAYBE,
        INT64,
        st.booleans(),
        st.one_of(st.none(), PRODUCERS),
    ),
    st.builds(
        FetchOffsets,
        NAMES,
        st.one_of(st.none(), several(st.builds(OffsetsOfTopic, NAMES, several(INT32), IDS.map(TopicId)))),
        st.booleans(),
        MAYBE,
        INT32,
    ),
    st.builds(DeleteOffsets, NAMES, several(st.builds(TopicPartition, NAMES, INT32))),
    st.builds(TransactionEnded, PRODUCERS, st.booleans()),
    st.builds(DeleteGroups, several(NAMES)),
    st.builds(ListGroups, st.frozensets(NAMES, max_size=1), st.frozensets(NAMES, max_size=1)),
    st.builds(DescribeGroups, several(NAMES)),
    st.builds(DescribeConsumerGroups, several(NAMES)),
    st.builds(TopicsDeleted, st.frozensets(NAMES, max_size=2)),
    st.builds(
        ConsumerHeartbeat,
        NAMES,
        CLIENTS,
        IDS,
        NAMES,
        INT32,
        MAYBE,
        MAYBE,
        INT32,
        st.one_of(st.none(), several(NAMES)),
        st.one_of(st.none(), st.sampled_from(["", "(", ".*", LONGEST])),
        st.sampled_from([None, "uniform", "range", "other"]),
        st.one_of(st.none(), st.dictionaries(IDS, st.frozensets(INT32, max_size=2), max_size=2)),
        st.booleans(),
    ),
)


@given(st.lists(st.tuples(COMMANDS, st.sampled_from([0.0, 0.0, 1.0, 30.0])), max_size=30))
@settings(deadline=None)
def test_nothing_that_a_client_can_say_makes_the_machine_fail(steps: list[tuple[GroupsCommand, float]]) -> None:
    coordinator = ConsumerCoordinator(at_once(offset_metadata_max_bytes=2**31 - 1), g=2, a=1)
    for position, (command, seconds) in enumerate(steps):
        if isinstance(command, Join | ConsumerHeartbeat):
            command = replace(command, new_id=UUID(int=position + 1))  # chance never says the same twice
        coordinator.submit(command)
        coordinator.pass_time(seconds)
    assert coordinator.replayed(coordinator.log).state == coordinator.machine.state
