"""What the doctor concludes; its conversations with brokers are tried end to end."""

from riverlog.cli.examination import Examination, connect_advice, resolve_advice
from riverlog.client.network.cluster import Partition, Topic
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import NO_TOPIC_ID, Address, NodeId
from riverlog.model.internal_topics import WAS_DELETED
from riverlog.wire.messages.describe_configs import (
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from riverlog.wire.messages.describe_log_dirs import DescribeLogDirsResponse, DescribeLogDirsResult
from riverlog.wire.messages.metadata import MetadataResponse

HERE = Address("127.0.0.1", 9092)
THERE = Address("10.0.0.5", 9092)


def topic(name: str, *partitions: tuple[int, list[int], list[int]]) -> Topic:
    return Topic(
        name,
        NO_TOPIC_ID,
        tuple(
            Partition(index, NodeId(leader), 0, tuple(map(NodeId, replicas)), tuple(map(NodeId, in_sync)))
            for index, (leader, replicas, in_sync) in enumerate(partitions)
        ),
    )


def test_partitions_that_are_led_and_in_sync_are_fine() -> None:
    examination = Examination(1.0)
    examination.judge_partitions([topic("orders", (1, [1], [1]), (1, [1], [1]))])
    assert [(step.ok, step.found) for step in examination.steps] == [(True, "2 partitions, all led and in sync")]


def test_partitions_without_leader_and_with_too_few_copies_are_found() -> None:
    examination = Examination(1.0)
    examination.judge_partitions([topic("orders", (-1, [1, 2], [2]), (1, [1, 2], [1, 2]))])
    assert [(step.step, step.ok, step.found) for step in examination.steps] == [
        ("leaders", False, "1 partition without one: orders-0"),
        ("replicas", False, "1 partition with replicas out of sync: orders-0"),
    ]
    assert all(step.advice for step in examination.steps)


def test_a_long_list_of_partitions_is_cut() -> None:
    examination = Examination(1.0)
    examination.judge_partitions([topic("t", *[(-1, [1], [1])] * 8)])
    assert examination.steps[0].found == "8 partitions without one: t-0, t-1, t-2, t-3, t-4 and 3 more"


def test_different_clusters_and_a_missing_controller_are_found() -> None:
    examination = Examination(1.0)
    examination.judge_cluster(
        {HERE: MetadataResponse(cluster_id="a", controller_id=-1), THERE: MetadataResponse(cluster_id="b")}
    )
    assert [(step.step, step.ok) for step in examination.steps] == [("identity", False), ("controller", False)]
    assert examination.steps[0].found == "127.0.0.1:9092: a, 10.0.0.5:9092: b"


def test_one_cluster_with_a_controller_is_fine() -> None:
    examination = Examination(1.0)
    examination.judge_cluster({HERE: MetadataResponse(cluster_id="a", controller_id=3)})
    assert [(step.ok, step.found) for step in examination.steps] == [(True, "node 3")]


def test_advice_tells_a_bootstrap_address_from_an_advertised_one() -> None:
    assert "Check the spelling of 'brokr'" in resolve_advice(Address("brokr", 9092), None)
    assert "set advertised.listeners" in resolve_advice(Address("kafka", 9092), THERE)
    assert "`riverlog dev --port 9093`" in connect_advice(Address("127.0.0.1", 9093), None)
    advertised = connect_advice(Address("localhost", 9092), THERE)
    assert "That is this machine itself." in advertised
    assert "advertised.listeners" in advertised
    assert "That is this machine itself." not in connect_advice(Address("localhost", 9093), HERE)
    assert "That is this machine itself." not in connect_advice(Address("10.0.0.6", 9092), THERE)


def test_log_directories_that_take_no_records_are_found() -> None:
    examination = Examination(1.0)
    described = [
        DescribeLogDirsResult(log_dir="/good", total_bytes=2_000, usable_bytes=1_000),
        DescribeLogDirsResult(log_dir="/full", total_bytes=2_000, usable_bytes=0),
        DescribeLogDirsResult(log_dir="/bad", error_code=ErrorCode.KAFKA_STORAGE_ERROR),
    ]
    examination.judge_log_dirs("broker 1", DescribeLogDirsResponse(results=described))
    assert [(step.step, step.ok, step.found.partition(":")[0]) for step in examination.steps] == [
        ("disk", False, "/full is full"),
        ("disk", False, "/bad is offline"),
    ]
    assert all(step.advice for step in examination.steps)


def test_damaged_partitions_are_found() -> None:
    for name, advice in (
        ("__transaction_state-7", "transactional ids that belong there cannot be used"),
        ("__consumer_offsets-7", "gone back to older commits"),
        ("orders-0", "seek past them"),
    ):
        examination = Examination(1.0)
        described = DescribeLogDirsResult(log_dir="/data", usable_bytes=1_024, damaged=[name])
        examination.judge_log_dirs("broker 1", DescribeLogDirsResponse(results=[described]))
        damage, disk = examination.steps
        assert (damage.ok, damage.found) == (False, f"/data holds 1 partition with damage: {name}")
        assert advice in (damage.advice or "")
        assert disk.ok


def test_log_directories_with_room_are_fine_also_where_the_room_is_unknown() -> None:
    for described, found in (
        ([DescribeLogDirsResult(log_dir="/good", usable_bytes=1_024)], "1 log directory, 1.0 KiB free"),
        ([DescribeLogDirsResult(log_dir="/a"), DescribeLogDirsResult(log_dir="/b")], "2 log directories"),
    ):
        examination = Examination(1.0)
        examination.judge_log_dirs("broker 1", DescribeLogDirsResponse(results=described))
        assert [(step.ok, step.found.startswith(found)) for step in examination.steps] == [(True, True)]


def settings_of(name: str, policy: str | None = None, message: str | None = None) -> DescribeConfigsResult:
    configs = [] if policy is None else [DescribeConfigsResourceResult(name="cleanup.policy", value=policy)]
    code = ErrorCode.NONE if policy is not None else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return DescribeConfigsResult(resource_name=name, configs=configs, error_code=code, error_message=message)


def test_internal_topics_that_were_deleted_or_lose_what_they_keep_are_found() -> None:
    examination = Examination(1.0)
    topics = {name: topic(name, (1, [1], [1])) for name in ("__consumer_offsets", "__transaction_state")}
    results = [
        settings_of("__consumer_offsets", "delete"),
        settings_of("__transaction_state", "compact"),
        settings_of("__checkpoints", message=f"There is no topic '__checkpoints'. {WAS_DELETED}"),
    ]
    examination.judge_internal_topics(topics, DescribeConfigsResponse(results=results))
    assert [(step.step, step.ok, step.found) for step in examination.steps] == [
        ("internal", False, "__consumer_offsets has cleanup.policy=delete, not compact"),
        ("internal", True, "__transaction_state keeps the state of all transactional ids"),
        ("internal", False, "__checkpoints was deleted"),
    ]


def test_internal_topics_of_a_new_cluster_are_not_missed() -> None:
    examination = Examination(1.0)
    results = [settings_of("__checkpoints", message="There is no topic."), settings_of("__consumer_offsets")]
    examination.judge_internal_topics({}, DescribeConfigsResponse(results=results))
    assert [(step.ok, step.found) for step in examination.steps] == [
        (True, "not there, and made when first needed: __checkpoints, __consumer_offsets")
    ]
