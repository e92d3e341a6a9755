"""AlterConfigs and IncrementalAlterConfigs."""

from typing import Any

import pytest

from riverlog.model.access import Operation
from riverlog.model.errors import ErrorCode
from riverlog.model.setting import SettingSource
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages import alter_configs as whole
from riverlog.wire.messages import incremental_alter_configs as incremental
from riverlog.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from riverlog.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from riverlog.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from riverlog.wire.messages.list_config_resources import ListConfigResourcesRequest
from tests.support.asking import Line, serving
from tests.support.denial import deny
from tests.support.group_lines import GROUP as GROUP_ID
from tests.support.group_lines import prepared
from tests.support.virtual_time import run

TOPIC = 2
BROKER = 4
GROUP = 32


async def with_orders(line: Line) -> None:
    await line.ask(ApiKey.CREATE_TOPICS, 7, CreateTopicsRequest(topics=[CreatableTopic("orders", 1)]))


async def value(line: Line, name: str) -> str:
    request = DescribeConfigsRequest(resources=[DescribeConfigsResource(TOPIC, "orders", [name])])
    return str((await line.ask(ApiKey.DESCRIBE_CONFIGS, 4, request)).results[0].configs[0].value)


async def change(
    line: Line, *resources: incremental.AlterConfigsResource, version: int = 1, validate_only: bool = False
) -> list[Any]:
    request = incremental.IncrementalAlterConfigsRequest(resources=list(resources), validate_only=validate_only)
    return list((await line.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, version, request)).responses)


async def test_every_version_changes_one_setting_and_leaves_the_others():
    async with serving() as (line, _node):
        await with_orders(line)
        for version in range(2):
            flush = incremental.AlterableConfig("flush.ms", 0, f"{version + 5}")
            policy = incremental.AlterableConfig("cleanup.policy", 2, "compact")
            for each in (flush, policy):
                (done,) = await change(line, incremental.AlterConfigsResource(TOPIC, "orders", [each]), version=version)
                assert (done.error_code, done.resource_type, done.resource_name) == (
                    ErrorCode.NONE,
                    TOPIC,
                    "orders",
                )
            assert await value(line, "flush.ms") == f"{version + 5}"
            assert await value(line, "cleanup.policy") == "delete,compact"


async def test_every_version_replaces_all_settings():
    async with serving() as (line, _node):
        await with_orders(line)
        flush = incremental.AlterableConfig("flush.ms", 0, "5")
        for version in range(3):
            await change(line, incremental.AlterConfigsResource(TOPIC, "orders", [flush]))
            for configs, code in (
                ([whole.AlterableConfig("segment.bytes", None)], ErrorCode.INVALID_REQUEST),
                ([whole.AlterableConfig("retention.ms", "7")], ErrorCode.NONE),
            ):
                resources = [whole.AlterConfigsResource(TOPIC, "orders", configs)]
                request = whole.AlterConfigsRequest(resources=resources)
                (done,) = (await line.ask(ApiKey.ALTER_CONFIGS, version, request)).responses
                assert done.error_code == code
            assert await value(line, "retention.ms") == "7"
            assert await value(line, "flush.ms") == str(2**63 - 1)


async def test_one_bad_resource_does_not_hold_up_the_others():
    async with serving() as (line, _node):
        await with_orders(line)
        flush = [incremental.AlterableConfig("flush.ms", 0, "5")]
        bad = [incremental.AlterableConfig("flush.ms", 0, "soon")]
        answers = await change(
            line,
            incremental.AlterConfigsResource(TOPIC, "bills", flush),
            incremental.AlterConfigsResource(TOPIC, "orders", flush),
            incremental.AlterConfigsResource(BROKER, "1", bad),
        )
        assert [each.error_code for each in answers] == [
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            ErrorCode.NONE,
            ErrorCode.INVALID_REQUEST,
        ]
        assert "for all topics of a node it is log.flush.interval.ms" in answers[2].error_message
        assert await value(line, "flush.ms") == "5"


async def test_a_rehearsal_changes_nothing():
    async with serving() as (line, _node):
        await with_orders(line)
        flush = incremental.AlterConfigsResource(TOPIC, "orders", [incremental.AlterableConfig("flush.ms", 0, "5")])
        (done,) = await change(line, flush, validate_only=True)
        assert done.error_code == ErrorCode.NONE
        assert await value(line, "flush.ms") == str(2**63 - 1)


def test_who_may_not_alter_is_told_so(monkeypatch: pytest.MonkeyPatch):
    async def scenario() -> None:
        async with serving() as (line, _node):
            await with_orders(line)
            flush = [incremental.AlterableConfig("flush.ms", 0, "5")]
            answers = await change(
                line,
                incremental.AlterConfigsResource(TOPIC, "orders", flush),
                incremental.AlterConfigsResource(BROKER, "", flush),
            )
            assert [each.error_code for each in answers] == [
                ErrorCode.TOPIC_AUTHORIZATION_FAILED,
                ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
            ]

    deny(monkeypatch, Operation.ALTER_CONFIGS)
    run(scenario())


def group_change(name: str, text: str | None, group: str = "g", operation: int = 0) -> incremental.AlterConfigsResource:
    return incremental.AlterConfigsResource(GROUP, group, [incremental.AlterableConfig(name, operation, text)])


async def group_settings(line: Line) -> dict[str, tuple[str, int]]:
    request = DescribeConfigsRequest(resources=[DescribeConfigsResource(GROUP, "g")])
    (described,) = (await line.ask(ApiKey.DESCRIBE_CONFIGS, 4, request)).results
    return {each.name: (each.value, each.config_source) for each in described.configs}


async def test_a_group_gets_settings_of_its_own_and_lives_by_them():
    async with serving() as (line, _node):
        await prepared(line, "orders")
        heartbeat = ConsumerGroupHeartbeatRequest(
            group_id=GROUP_ID,
            member_id="m",
            member_epoch=0,
            rebalance_timeout_ms=10_000,
            subscribed_topic_names=["orders"],
            topic_partitions=[],
        )
        beat = await line.ask(ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, heartbeat)
        assert beat.heartbeat_interval_ms > 100
        (done,) = await change(line, group_change("consumer.heartbeat.interval.ms", "100"))
        assert done.error_code == ErrorCode.NONE
        assert (await group_settings(line))["consumer.heartbeat.interval.ms"] == ("100", SettingSource.GROUP)
        listed = await line.ask(ApiKey.LIST_CONFIG_RESOURCES, 1, ListConfigResourcesRequest([GROUP]))
        assert [each.resource_name for each in listed.config_resources] == ["g"]
        beat = await line.ask(
            ApiKey.CONSUMER_GROUP_HEARTBEAT,
            1,
            ConsumerGroupHeartbeatRequest(group_id=GROUP_ID, member_id="m", member_epoch=beat.member_epoch),
        )
        assert (beat.error_code, beat.heartbeat_interval_ms) == (ErrorCode.NONE, 100)
        await change(line, group_change("consumer.heartbeat.interval.ms", None, operation=1))
        assert (await group_settings(line))["consumer.heartbeat.interval.ms"] == ("5000", SettingSource.DEFAULT)


@pytest.mark.parametrize(
    ("resource", "code", "message"),
    [
        (group_change("consumer.session.timeout.ms", "5000"), ErrorCode.INVALID_CONFIG, "must be greater than"),
        (group_change("consumer.session.timeout.ms", "soon"), ErrorCode.INVALID_CONFIG, "whole number"),
        (group_change("consumer.session.timeout.ms", "-1"), ErrorCode.INVALID_CONFIG, "at least 1"),
        (group_change("consumer.assignment.interval.ms", "15001"), ErrorCode.INVALID_CONFIG, "to 15,000"),
        (group_change("share.session.timeout.ms", "50000"), ErrorCode.INVALID_CONFIG, "There is no setting"),
        (group_change("group.consumer.session.timeout.ms", "9"), ErrorCode.INVALID_CONFIG, "setting of nodes"),
        (group_change("consumer.session.timeout.ms", "5", operation=2), ErrorCode.INVALID_CONFIG, "not a list"),
        (group_change("consumer.session.timeout.ms", "50000", group=""), ErrorCode.INVALID_REQUEST, "has a name"),
    ],
)
async def test_what_a_group_cannot_be_set_is_said(
    resource: incremental.AlterConfigsResource, code: ErrorCode, message: str
) -> None:
    async with serving() as (line, _node):
        (refused,) = await change(line, resource)
        assert refused.error_code == code
        assert message in refused.error_message
        assert all(source != SettingSource.GROUP for _, source in (await group_settings(line)).values())


def test_not_everybody_may_change_a_group(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        async with serving() as (line, _node):
            (refused,) = await change(line, group_change("consumer.session.timeout.ms", "50000"))
            assert refused.error_code == ErrorCode.GROUP_AUTHORIZATION_FAILED

    deny(monkeypatch, Operation.ALTER_CONFIGS)
    run(scenario())
