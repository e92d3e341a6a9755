"""ElectLeaders, on a node that leads everything and in a cluster."""

import pytest

from riverlog.model.access import Operation
from riverlog.model.errors import ErrorCode
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from riverlog.wire.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from tests.support.asking import Line, serving
from tests.support.clusters import ClusterOfNodes, controller_line
from tests.support.denial import deny
from tests.support.virtual_time import run


@pytest.mark.parametrize("version", range(3))
async def test_the_leader_is_there_already(version: int) -> None:
    async with serving() as (line, _node):
        await line.ask(ApiKey.CREATE_TOPICS, 7, CreateTopicsRequest([CreatableTopic("t", 2)]))
        asked = ElectLeadersRequest(topic_partitions=[TopicPartitions("t", [0, 2]), TopicPartitions("u", [0])])
        response = await line.ask(ApiKey.ELECT_LEADERS, version, asked)
        assert response.error_code == ErrorCode.NONE
        codes = {
            (topic.topic, each.partition_id): each.error_code
            for topic in response.replica_election_results
            for each in topic.partition_result
        }
        assert codes == {
            ("t", 0): ErrorCode.ELECTION_NOT_NEEDED,
            ("t", 2): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            ("u", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        }
        everything = await line.ask(ApiKey.ELECT_LEADERS, version, ElectLeadersRequest())
        assert everything.replica_election_results == []


async def test_an_unknown_kind_of_election_is_refused() -> None:
    async with serving() as (line, _node):
        request = ElectLeadersRequest(election_type=2, topic_partitions=[TopicPartitions("t", [0])])
        response = await line.ask(ApiKey.ELECT_LEADERS, 2, request)
        assert response.error_code == ErrorCode.INVALID_REQUEST


async def test_not_everybody_may_hold_elections(monkeypatch: pytest.MonkeyPatch) -> None:
    deny(monkeypatch, Operation.ALTER)
    async with serving() as (line, _node):
        request = ElectLeadersRequest(topic_partitions=[TopicPartitions("t", [0])])
        (topic,) = (await line.ask(ApiKey.ELECT_LEADERS, 0, request)).replica_election_results
        assert topic.partition_result[0].error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED


def test_a_controller_elects_for_those_who_ask_it_or_a_broker() -> None:
    async def scenario() -> None:
        async with controller_line() as (controller, cluster):
            await controller.ask(ApiKey.CREATE_TOPICS, 7, CreateTopicsRequest([CreatableTopic("t", 1)]))
            broker = Line(await cluster.network.connect("n4", 9092))
            for line in (controller, broker):
                asked = ElectLeadersRequest(topic_partitions=[TopicPartitions("t", [0])])
                [topic] = (await line.ask(ApiKey.ELECT_LEADERS, 2, asked)).replica_election_results
                assert [(each.error_code, each.error_message) for each in topic.partition_result] == [
                    (ErrorCode.ELECTION_NOT_NEEDED, "Broker 4 leads already.")
                ]

    run(scenario())


def test_a_leader_that_is_away_is_not_elected() -> None:
    async def scenario() -> None:
        async with controller_line() as (line, cluster):
            await line.ask(ApiKey.CREATE_TOPICS, 7, CreateTopicsRequest([CreatableTopic("t", 1)]))
            await cluster.stop(4)
            for election_type, code in (
                (0, ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE),
                (1, ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE),
            ):
                response = await line.ask(ApiKey.ELECT_LEADERS, 2, ElectLeadersRequest(election_type))
                [topic] = response.replica_election_results
                assert (topic.topic, topic.partition_result[0].error_code) == ("t", code)

    run(scenario())


def test_however_many_need_a_leader_all_are_answered() -> None:
    async def scenario() -> None:
        async with controller_line() as (line, cluster):
            await line.ask(ApiKey.CREATE_TOPICS, 7, CreateTopicsRequest([CreatableTopic("t", 2_500)]))
            await cluster.stop(4)
            response = await line.ask(ApiKey.ELECT_LEADERS, 2, ElectLeadersRequest())
            [topic] = response.replica_election_results
            assert [each.partition_id for each in topic.partition_result] == list(range(2_500))

    run(scenario())


def test_a_controller_that_does_not_lead_says_so() -> None:
    async def scenario() -> None:
        cluster = ClusterOfNodes({1: "controller", 2: "controller", 3: "controller"})
        await cluster.start()
        await cluster.until(cluster.active)
        other = next(node for node in cluster.nodes if node != cluster.active())
        line = Line(await cluster.network.connect(f"n{other}", 9093))
        asked = ElectLeadersRequest(topic_partitions=[TopicPartitions("t", [0])])
        response = await line.ask(ApiKey.ELECT_LEADERS, 2, asked)
        assert response.error_code == ErrorCode.NOT_CONTROLLER
        await cluster.stop()

    run(scenario())
