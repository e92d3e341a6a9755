"""DescribeConfigs."""

from typing import Any
from uuid import UUID

import pytest

from riverlog.model.access import Operation
from riverlog.model.errors import ErrorCode
from riverlog.model.setting import SettingSource, SettingType
from riverlog.model.settings import NODE_SETTINGS, TOPIC_SETTINGS
from riverlog.wire.apis import ApiKey
from riverlog.wire.limits import ERROR_MESSAGE_CHARACTERS_MAX
from riverlog.wire.messages.controller_registration import ControllerRegistrationRequest
from riverlog.wire.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from riverlog.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from riverlog.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from tests.support.asking import Line, serving
from tests.support.clusters import controller_line
from tests.support.denial import deny
from tests.support.virtual_time import run

TOPIC = 2
BROKER = 4


async def describe(line: Line, *resources: DescribeConfigsResource, version: int = 4, **wants: bool) -> list[Any]:
    request = DescribeConfigsRequest(resources=list(resources), **wants)
    return list((await line.ask(ApiKey.DESCRIBE_CONFIGS, version, request)).results)


async def with_orders(line: Line) -> None:
    config = CreatableTopicConfig("retention.ms", "5")
    request = CreateTopicsRequest(topics=[CreatableTopic("orders", 1, 1, [], [config])])
    await line.ask(ApiKey.CREATE_TOPICS, 7, request)


async def test_every_version_describes_every_setting_of_a_topic():
    async with serving(log_retention_hours="2") as (line, _node):
        await with_orders(line)
        for version in range(1, 5):
            for nothing_named in (None, []):
                asked = DescribeConfigsResource(TOPIC, "orders", nothing_named)
                (result,) = await describe(line, asked, version=version)
                assert [each.name for each in result.configs] == list(TOPIC_SETTINGS)
            retention = next(each for each in result.configs if each.name == "retention.ms")
            assert (retention.value, retention.config_source) == ("5", SettingSource.TOPIC)
            assert retention.synonyms == []
            assert retention.documentation is None


async def test_synonyms_types_and_documentation_are_given_when_asked_for():
    async with serving(log_retention_hours="2") as (line, _node):
        await with_orders(line)
        asked = DescribeConfigsResource(TOPIC, "orders", ["retention.ms"])
        (result,) = await describe(line, asked, include_synonyms=True, include_documentation=True)
        (retention,) = result.configs
        assert retention.config_type == SettingType.LONG
        assert retention.documentation == TOPIC_SETTINGS["retention.ms"].doc
        assert [(each.name, each.value, each.source) for each in retention.synonyms] == [
            ("retention.ms", "5", SettingSource.TOPIC),
            ("log.retention.hours", "2", SettingSource.STATIC),
            ("log.retention.hours", "168", SettingSource.DEFAULT),
        ]


async def test_a_broker_describes_itself_alone():
    async with serving(node_id="4") as (line, _node):
        own, other, nobody = await describe(
            line,
            DescribeConfigsResource(BROKER, "4"),
            DescribeConfigsResource(BROKER, "5"),
            DescribeConfigsResource(7, "4"),
        )
        assert {each.name for each in own.configs} == set(NODE_SETTINGS)
        read_only = {each.name: each.read_only for each in own.configs}
        assert (read_only["node.id"], read_only["log.retention.ms"]) == (True, False)
        assert other.error_code == nobody.error_code == ErrorCode.INVALID_REQUEST
        assert other.error_message
        assert nobody.error_message


async def test_all_brokers_have_what_was_set_for_all():
    async with serving() as (line, _node):
        (nothing,) = await describe(line, DescribeConfigsResource(BROKER, ""))
        assert nothing.configs == []
        change = AlterConfigsResource(BROKER, "", [AlterableConfig("max.connections", 0, "7")])
        await line.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, IncrementalAlterConfigsRequest(resources=[change]))
        (result,) = await describe(line, DescribeConfigsResource(BROKER, ""))
        assert [(each.name, each.value, each.config_source) for each in result.configs] == [
            ("max.connections", "7", SettingSource.CLUSTER)
        ]
        (own,) = await describe(line, DescribeConfigsResource(BROKER, "1", ["max.connections"]))
        assert [(each.value, each.config_source) for each in own.configs] == [("7", SettingSource.CLUSTER)]
        change = AlterConfigsResource(BROKER, "1", [AlterableConfig("max.connections", 0, "8")])
        await line.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, IncrementalAlterConfigsRequest(resources=[change]))
        (result,) = await describe(line, DescribeConfigsResource(BROKER, ""), include_synonyms=True)
        assert [(each.value, each.source) for each in result.configs[0].synonyms] == [("7", SettingSource.CLUSTER)]


def test_a_missing_topic_and_a_forbidden_one(monkeypatch: pytest.MonkeyPatch):
    async def missing() -> None:
        async with serving() as (line, _node):
            (result,) = await describe(line, DescribeConfigsResource(TOPIC, "orders"))
            assert result.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    async def forbidden() -> None:
        async with serving() as (line, _node):
            topic, broker = await describe(
                line, DescribeConfigsResource(TOPIC, "orders"), DescribeConfigsResource(BROKER, "1")
            )
            assert topic.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
            assert broker.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED

    run(missing())
    deny(monkeypatch, Operation.DESCRIBE_CONFIGS)
    run(forbidden())


async def test_a_group_shows_what_the_node_gives_it_and_loggers_have_nothing():
    async with serving(group_consumer_session_timeout_ms="30000") as (line, _node):
        asked = [DescribeConfigsResource(type_, name) for type_, name in ((32, "g"), (8, "1"), (16, "m"))]
        group, loggers, metrics = await describe(line, *asked)
        assert {each.name: (each.value, each.config_source) for each in group.configs} == {
            "consumer.assignment.interval.ms": ("200", SettingSource.DEFAULT),
            "consumer.heartbeat.interval.ms": ("5000", SettingSource.DEFAULT),
            "consumer.session.timeout.ms": ("30000", SettingSource.STATIC),
        }
        assert not any(each.read_only for each in group.configs)
        assert (loggers.error_code, loggers.configs, metrics.error_code, metrics.configs) == (0, [], 0, [])


@pytest.mark.parametrize("name", ["9" * 5_000, "x" * 32_767, "\x00" * 32_767])
@pytest.mark.parametrize("version", [1, 4])
async def test_the_longest_name_is_answered(name: str, version: int) -> None:
    async with serving() as (line, node):
        resources = [DescribeConfigsResource(resource_type=kind, resource_name=name) for kind in (4, 2)]
        asked = DescribeConfigsRequest(resources=resources)
        response = await line.ask(ApiKey.DESCRIBE_CONFIGS, version, asked)
        assert response.results[0].error_code == ErrorCode.INVALID_REQUEST
        assert len(response.results[0].error_message) <= ERROR_MESSAGE_CHARACTERS_MAX
        assert response.results[0].resource_name == name
        assert node.stats.contained == 0


def test_a_controller_describes_topics_and_itself() -> None:
    async def scenario() -> None:
        async with controller_line(log_retention_hours="3") as (line, _cluster):
            await with_orders(line)
            registration = ControllerRegistrationRequest(1, UUID(int=5))
            await line.ask(ApiKey.CONTROLLER_REGISTRATION, 0, registration)
            topic, itself, other, nobody = await describe(
                line,
                DescribeConfigsResource(TOPIC, "orders", ["retention.ms"]),
                DescribeConfigsResource(BROKER, "1", ["log.retention.hours"]),
                DescribeConfigsResource(BROKER, "4"),
                DescribeConfigsResource(BROKER, "9"),
            )
            assert [each.value for each in topic.configs] == ["5"]
            assert [each.value for each in itself.configs] == ["3"]
            assert (other.error_code, "4" in other.error_message) == (ErrorCode.INVALID_REQUEST, True)
            assert (nobody.error_code, "'9'" in nobody.error_message) == (ErrorCode.INVALID_REQUEST, True)

    run(scenario())
