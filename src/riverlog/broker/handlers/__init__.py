"""One file per API, and the table of those that are served: one line adds one."""

from collections.abc import Mapping
from typing import Final

from riverlog.broker.dispatch import Handler
from riverlog.broker.handlers.alter_configs import alter_configs, incremental_alter_configs
from riverlog.broker.handlers.api_versions import api_versions
from riverlog.broker.handlers.create_partitions import create_partitions
from riverlog.broker.handlers.create_topics import create_topics
from riverlog.broker.handlers.delete_records import delete_records
from riverlog.broker.handlers.delete_topics import delete_topics
from riverlog.broker.handlers.describe_cluster import describe_cluster
from riverlog.broker.handlers.describe_configs import describe_configs
from riverlog.broker.handlers.describe_log_dirs import describe_log_dirs
from riverlog.broker.handlers.describe_topic_partitions import describe_topic_partitions
from riverlog.broker.handlers.fetch import fetch
from riverlog.broker.handlers.init_producer_id import init_producer_id
from riverlog.broker.handlers.list_offsets import list_offsets
from riverlog.broker.handlers.metadata import metadata
from riverlog.broker.handlers.offset_for_leader_epoch import offset_for_leader_epoch
from riverlog.broker.handlers.produce import produce
from riverlog.wire.apis import ApiKey

HANDLERS: Final[Mapping[ApiKey, Handler]] = {
    ApiKey.PRODUCE: produce,
    ApiKey.FETCH: fetch,
    ApiKey.LIST_OFFSETS: list_offsets,
    ApiKey.METADATA: metadata,
    ApiKey.API_VERSIONS: api_versions,
    ApiKey.CREATE_TOPICS: create_topics,
    ApiKey.DELETE_TOPICS: delete_topics,
    ApiKey.DELETE_RECORDS: delete_records,
    ApiKey.INIT_PRODUCER_ID: init_producer_id,
    ApiKey.OFFSET_FOR_LEADER_EPOCH: offset_for_leader_epoch,
    ApiKey.DESCRIBE_CONFIGS: describe_configs,
    ApiKey.ALTER_CONFIGS: alter_configs,
    ApiKey.DESCRIBE_LOG_DIRS: describe_log_dirs,
    ApiKey.CREATE_PARTITIONS: create_partitions,
    ApiKey.INCREMENTAL_ALTER_CONFIGS: incremental_alter_configs,
    ApiKey.DESCRIBE_CLUSTER: describe_cluster,
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: describe_topic_partitions,
}
