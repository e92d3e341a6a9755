"""What Kafka's error codes mean, in words, where a cluster gives a code without a sentence of its own."""

from typing import Final

from riverlog.model.errors import ErrorCode

REASONS: Final = {
    ErrorCode.UNKNOWN_SERVER_ERROR: "the broker failed in a way that it does not explain",
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "there is no such topic or partition",
    ErrorCode.UNKNOWN_TOPIC_ID: "there is no topic with this id any more",
    ErrorCode.LEADER_NOT_AVAILABLE: "the partition has no leader at the moment",
    ErrorCode.NOT_LEADER_OR_FOLLOWER: "the partition has moved to another broker",
    ErrorCode.REQUEST_TIMED_OUT: "the cluster did not finish in time",
    ErrorCode.BROKER_NOT_AVAILABLE: "the broker is not there",
    ErrorCode.MESSAGE_TOO_LARGE: "the record is larger than the cluster takes",
    ErrorCode.RECORD_LIST_TOO_LARGE: "the batch is larger than a segment",
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: "the coordinator is still reading what it knows",
    ErrorCode.COORDINATOR_NOT_AVAILABLE: "there is no coordinator for it at the moment",
    ErrorCode.NOT_COORDINATOR: "the coordinator has moved to another broker",
    ErrorCode.INVALID_TOPIC_EXCEPTION: "a topic cannot have this name, or nobody but the cluster may change it",
    ErrorCode.NOT_ENOUGH_REPLICAS: "fewer replicas are in sync than min.insync.replicas asks for",
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: "it was written to fewer replicas than min.insync.replicas asks for",
    ErrorCode.INVALID_GROUP_ID: "a group cannot have this name",
    ErrorCode.REBALANCE_IN_PROGRESS: "the group is dividing its partitions anew",
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: "this user may not do that with the topic",
    ErrorCode.GROUP_AUTHORIZATION_FAILED: "this user may not do that with the group",
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "this user may not do that in the cluster",
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "this user may not write with the transactional id",
    ErrorCode.ILLEGAL_SASL_STATE: "nobody can log in here, or not at this point",
    ErrorCode.UNSUPPORTED_VERSION: "the broker is too old for that",
    ErrorCode.TOPIC_ALREADY_EXISTS: "it exists already",
    ErrorCode.INVALID_PARTITIONS: "the number of partitions cannot be that",
    ErrorCode.INVALID_REPLICATION_FACTOR: "the replication factor is below 1, or above the number of brokers",
    ErrorCode.INVALID_REPLICA_ASSIGNMENT: "the replicas cannot be assigned so",
    ErrorCode.INVALID_CONFIG: "a setting is not known, or cannot have this value",
    ErrorCode.NOT_CONTROLLER: "the controller has moved to another broker",
    ErrorCode.INVALID_REQUEST: "the broker does not understand the request",
    ErrorCode.POLICY_VIOLATION: "a policy of the cluster forbids it",
    ErrorCode.INVALID_TXN_STATE: "the transaction is in no state for that",
    ErrorCode.CONCURRENT_TRANSACTIONS: "the transaction before is still being ended",
    ErrorCode.KAFKA_STORAGE_ERROR: "the broker's disk failed",
    ErrorCode.NON_EMPTY_GROUP: "the group has members",
    ErrorCode.GROUP_ID_NOT_FOUND: "there is no such group",
    ErrorCode.TOPIC_DELETION_DISABLED: "the cluster does not allow topics to be deleted",
    ErrorCode.UNSUPPORTED_COMPRESSION_TYPE: "the topic does not take this compression",
    ErrorCode.OFFSET_OUT_OF_RANGE: "the partition does not have this offset",
    ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC: "members of the group read the topic",
    ErrorCode.INVALID_RECORD: "the topic does not take such a record",
    ErrorCode.TRANSACTIONAL_ID_NOT_FOUND: "there is no such transactional id",
    ErrorCode.THROTTLING_QUOTA_EXCEEDED: "a quota is used up at the moment",
    ErrorCode.INVALID_REGULAR_EXPRESSION: "the regular expression cannot be read",
}


def reason(code: ErrorCode) -> str:
    """Return what a code means; its name in plain words where nothing better is known."""
    return REASONS.get(code, code.title)
