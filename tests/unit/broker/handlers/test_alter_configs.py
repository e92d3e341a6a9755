"""AlterConfigs and IncrementalAlterConfigs."""

from typing import Any

import pytest

from riverlog.model.access import Operation
from riverlog.model.errors import ErrorCode
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages import alter_configs as whole
from riverlog.wire.messages import incremental_alter_configs as incremental
from riverlog.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from riverlog.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from tests.support.asking import Line, serving
from tests.support.denial import deny
from tests.support.virtual_time import run

TOPIC = 2
BROKER = 4


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


def test_every_version_changes_one_setting_and_leaves_the_others():
    async def scenario() -> None:
        async with serving() as (line, _node):
            await with_orders(line)
            for version in range(2):
                flush = incremental.AlterableConfig("flush.ms", 0, f"{version + 5}")
                policy = incremental.AlterableConfig("cleanup.policy", 2, "compact")
                for each in (flush, policy):
                    (done,) = await change(
                        line, incremental.AlterConfigsResource(TOPIC, "orders", [each]), version=version
                    )
                    assert (done.error_code, done.resource_type, done.resource_name) == (
                        ErrorCode.NONE,
                        TOPIC,
                        "orders",
                    )
                assert await value(line, "flush.ms") == f"{version + 5}"
                assert await value(line, "cleanup.policy") == "delete,compact"

    run(scenario())


def test_every_version_replaces_all_settings():
    async def scenario() -> None:
        async with serving() as (line, _node):
            await with_orders(line)
            flush = incremental.AlterableConfig("flush.ms", 0, "5")
            for version in range(3):
                await change(line, incremental.AlterConfigsResource(TOPIC, "orders", [flush]))
                configs = [whole.AlterableConfig("retention.ms", "7"), whole.AlterableConfig("segment.bytes", None)]
                request = whole.AlterConfigsRequest(resources=[whole.AlterConfigsResource(TOPIC, "orders", configs)])
                (done,) = (await line.ask(ApiKey.ALTER_CONFIGS, version, request)).responses
                assert done.error_code == ErrorCode.NONE
                assert await value(line, "retention.ms") == "7"
                assert await value(line, "flush.ms") == str(2**63 - 1)

    run(scenario())


def test_one_bad_resource_does_not_hold_up_the_others():
    async def scenario() -> None:
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
                ErrorCode.INVALID_CONFIG,
            ]
            assert "for all topics of a node it is log.flush.interval.ms" in answers[2].error_message
            assert await value(line, "flush.ms") == "5"

    run(scenario())


def test_a_rehearsal_changes_nothing():
    async def scenario() -> None:
        async with serving() as (line, _node):
            await with_orders(line)
            flush = incremental.AlterConfigsResource(TOPIC, "orders", [incremental.AlterableConfig("flush.ms", 0, "5")])
            (done,) = await change(line, flush, validate_only=True)
            assert done.error_code == ErrorCode.NONE
            assert await value(line, "flush.ms") == str(2**63 - 1)

    run(scenario())


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
