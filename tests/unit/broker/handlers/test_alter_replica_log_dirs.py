"""AlterReplicaLogDirs."""

import pytest

from riverlog.model.access import Operation
from riverlog.model.errors import ErrorCode
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from riverlog.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from tests.support.asking import Line, serving
from tests.support.denial import deny
from tests.support.virtual_time import run


async def moved(line: Line, path: str, topic: str, index: int, version: int = 2) -> int:
    """Ask for one partition to be moved; give the error code."""
    wanted = AlterReplicaLogDir(path, [AlterReplicaLogDirTopic(topic, [index])])
    response = await line.ask(ApiKey.ALTER_REPLICA_LOG_DIRS, version, AlterReplicaLogDirsRequest([wanted]))
    ((result,),) = (each.partitions for each in response.results)
    assert (response.results[0].topic_name, result.partition_index) == (topic, index)
    return int(result.error_code)


async def test_what_lies_there_already_is_done_and_the_rest_is_named():
    async with serving() as (line, _node):
        await line.ask(ApiKey.CREATE_TOPICS, 7, CreateTopicsRequest(topics=[CreatableTopic("orders", 2)]))
        for version in (1, 2):
            assert await moved(line, "/data", "orders", 1, version) == ErrorCode.NONE
        assert await moved(line, "/elsewhere", "orders", 1) == ErrorCode.LOG_DIR_NOT_FOUND
        assert await moved(line, "/data", "orders", 2) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert await moved(line, "/data", "nobody", 0) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_who_may_not_is_told(monkeypatch: pytest.MonkeyPatch):
    async def scenario() -> None:
        async with serving() as (line, _node):
            assert await moved(line, "/data", "orders", 0) == ErrorCode.CLUSTER_AUTHORIZATION_FAILED

    deny(monkeypatch, Operation.ALTER)
    run(scenario())
