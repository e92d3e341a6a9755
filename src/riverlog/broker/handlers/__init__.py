"""One file per API, and the table of those that are served: one line adds one.

A handler is named by its module and function and imported with its messages when the first request for it comes: a
node that starts needs none of them, and most clients use few.
"""

from collections.abc import Mapping
from importlib import import_module
from typing import Any, Final

from riverlog.broker.requests.dispatch import Handler, ShortCut
from riverlog.broker.requests.forwarded import FORWARDED
from riverlog.wire.apis import ApiKey

HANDLERS: Final[Mapping[ApiKey, str]] = {
    ApiKey.PRODUCE: "produce.produce",
    ApiKey.FETCH: "fetch.fetch",
    ApiKey.LIST_OFFSETS: "list_offsets.list_offsets",
    ApiKey.METADATA: "metadata.metadata",
    ApiKey.OFFSET_COMMIT: "offset_commit.offset_commit",
    ApiKey.OFFSET_FETCH: "offset_fetch.offset_fetch",
    ApiKey.FIND_COORDINATOR: "find_coordinator.find_coordinator",
    ApiKey.JOIN_GROUP: "join_group.join_group",
    ApiKey.HEARTBEAT: "heartbeat.heartbeat",
    ApiKey.LEAVE_GROUP: "leave_group.leave_group",
    ApiKey.SYNC_GROUP: "sync_group.sync_group",
    ApiKey.DESCRIBE_GROUPS: "describe_groups.describe_groups",
    ApiKey.LIST_GROUPS: "list_groups.list_groups",
    ApiKey.SASL_HANDSHAKE: "sasl.sasl_handshake",
    ApiKey.API_VERSIONS: "api_versions.api_versions",
    ApiKey.CREATE_TOPICS: "create_topics.create_topics",
    ApiKey.DELETE_TOPICS: "delete_topics.delete_topics",
    ApiKey.DELETE_RECORDS: "delete_records.delete_records",
    ApiKey.INIT_PRODUCER_ID: "init_producer_id.init_producer_id",
    ApiKey.OFFSET_FOR_LEADER_EPOCH: "offset_for_leader_epoch.offset_for_leader_epoch",
    ApiKey.ADD_PARTITIONS_TO_TXN: "add_partitions_to_txn.add_partitions_to_txn",
    ApiKey.ADD_OFFSETS_TO_TXN: "add_offsets_to_txn.add_offsets_to_txn",
    ApiKey.END_TXN: "end_txn.end_txn",
    ApiKey.WRITE_TXN_MARKERS: "write_txn_markers.write_txn_markers",
    ApiKey.TXN_OFFSET_COMMIT: "txn_offset_commit.txn_offset_commit",
    ApiKey.DESCRIBE_ACLS: "acls.describe_acls",
    ApiKey.CREATE_ACLS: "acls.create_acls",
    ApiKey.DELETE_ACLS: "acls.delete_acls",
    ApiKey.DESCRIBE_CONFIGS: "describe_configs.describe_configs",
    ApiKey.ALTER_CONFIGS: "alter_configs.alter_configs",
    ApiKey.ALTER_REPLICA_LOG_DIRS: "alter_replica_log_dirs.alter_replica_log_dirs",
    ApiKey.DESCRIBE_LOG_DIRS: "describe_log_dirs.describe_log_dirs",
    ApiKey.SASL_AUTHENTICATE: "sasl.sasl_authenticate",
    ApiKey.CREATE_PARTITIONS: "create_partitions.create_partitions",
    ApiKey.DELETE_GROUPS: "delete_groups.delete_groups",
    ApiKey.ELECT_LEADERS: "elect_leaders.elect_leaders",
    ApiKey.INCREMENTAL_ALTER_CONFIGS: "alter_configs.incremental_alter_configs",
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: "reassignments.alter_partition_reassignments",
    ApiKey.LIST_PARTITION_REASSIGNMENTS: "reassignments.list_partition_reassignments",
    ApiKey.OFFSET_DELETE: "offset_delete.offset_delete",
    ApiKey.DESCRIBE_CLIENT_QUOTAS: "describe_client_quotas.describe_client_quotas",
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: "describe_user_scram_credentials.describe_user_scram_credentials",
    ApiKey.DESCRIBE_QUORUM: "describe_quorum.describe_quorum",
    ApiKey.UPDATE_FEATURES: "update_features.update_features",
    ApiKey.DESCRIBE_CLUSTER: "describe_cluster.describe_cluster",
    ApiKey.DESCRIBE_PRODUCERS: "describe_producers.describe_producers",
    ApiKey.UNREGISTER_BROKER: "unregister_broker.unregister_broker",
    ApiKey.DESCRIBE_TRANSACTIONS: "transactions.describe_transactions",
    ApiKey.LIST_TRANSACTIONS: "transactions.list_transactions",
    ApiKey.CONSUMER_GROUP_HEARTBEAT: "consumer_group_heartbeat.consumer_group_heartbeat",
    ApiKey.CONSUMER_GROUP_DESCRIBE: "consumer_group_describe.consumer_group_describe",
    ApiKey.LIST_CONFIG_RESOURCES: "list_config_resources.list_config_resources",
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: "describe_topic_partitions.describe_topic_partitions",
    ApiKey.ADD_RAFT_VOTER: "raft_voters.add_raft_voter",
    ApiKey.REMOVE_RAFT_VOTER: "raft_voters.remove_raft_voter",
    ApiKey.JOIN_TRANSACTION: "join_transaction.join_transaction",
    ApiKey.END_TRANSACTION: "end_transaction.end_transaction",
    ApiKey.DESCRIBE_BATCHES: "describe_batches.describe_batches",
}

CONTROLLER_HANDLERS: Final[Mapping[ApiKey, str]] = {
    **{key: HANDLERS[key] for key in (ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE)},
    **{key: HANDLERS[key] for key in HANDLERS if key in FORWARDED},
    ApiKey.DESCRIBE_CONFIGS: HANDLERS[ApiKey.DESCRIBE_CONFIGS],
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: HANDLERS[ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS],
    ApiKey.DESCRIBE_ACLS: HANDLERS[ApiKey.DESCRIBE_ACLS],
    ApiKey.DESCRIBE_CLUSTER: "describe_cluster.describe_controllers",
    ApiKey.VOTE: "quorum_request.quorum_request",
    ApiKey.BEGIN_QUORUM_EPOCH: "quorum_request.quorum_request",
    ApiKey.END_QUORUM_EPOCH: "quorum_request.quorum_request",
    ApiKey.FETCH: "quorum_request.quorum_request",
    ApiKey.FETCH_SNAPSHOT: "quorum_request.quorum_request",
    ApiKey.UPDATE_RAFT_VOTER: "quorum_request.quorum_request",
    ApiKey.BROKER_REGISTRATION: "broker_registration.broker_registration",
    ApiKey.BROKER_HEARTBEAT: "broker_heartbeat.broker_heartbeat",
    ApiKey.ALTER_PARTITION: "alter_partition.alter_partition",
    ApiKey.ASSIGN_REPLICAS_TO_DIRS: "assign_replicas_to_dirs.assign_replicas_to_dirs",
    ApiKey.ALLOCATE_PRODUCER_IDS: "allocate_producer_ids.allocate_producer_ids",
    ApiKey.CONTROLLER_REGISTRATION: "controller_registration.controller_registration",
    ApiKey.ENVELOPE: "envelope.envelope",
}
"""What is served on the listeners for controllers."""

SHORT_CUTS: Final[Mapping[ApiKey, str]] = {
    ApiKey.PRODUCE: "produce.produce_one",
    ApiKey.FETCH: "fetch.fetch_one",
}
"""Functions that do the commonest form of a request from frame to bytes, and leave every other to the handler."""


def load_controller_handler(key: ApiKey) -> tuple[Handler, ShortCut | None]:
    """Import the handler of an API that controllers serve."""
    return _function(CONTROLLER_HANDLERS[key]), None


def load_handler(key: ApiKey) -> tuple[Handler, ShortCut | None]:
    """Import the handler of a served API, and its short cut if there is one."""
    return _function(HANDLERS[key]), _function(SHORT_CUTS[key]) if key in SHORT_CUTS else None


def _function(name: str) -> Any:
    module, _, function = name.partition(".")
    return getattr(import_module(f"{__name__}.{module}"), function)
