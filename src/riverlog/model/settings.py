"""Every setting, once: name, type, default, unit, meaning. Replies, documentation and checks derive from here."""

from dataclasses import dataclass
from enum import StrEnum

from riverlog.model.ids import NodeId


class Durability(StrEnum):
    """When a record counts as written: in the page cache, or on the medium."""

    OS = "os"
    FSYNC = "fsync"


@dataclass(frozen=True, slots=True)
class TopicConfig:
    """The settings of one topic, resolved: its own, else the node's, else the default."""

    cleanup_delete: bool = True
    cleanup_compact: bool = False
    compression_type: str = "producer"
    delete_retention_ms: int = 86_400_000
    durability: Durability = Durability.OS
    file_delete_delay_ms: int = 60_000
    flush_messages: int = 2**63 - 1
    flush_ms: int = 2**63 - 1
    index_interval_bytes: int = 4096
    max_compaction_lag_ms: int = 2**63 - 1
    max_message_bytes: int = 1_048_588
    message_timestamp_after_max_ms: int = 3_600_000
    message_timestamp_before_max_ms: int = 2**63 - 1
    message_timestamp_log_append_time: bool = False
    min_cleanable_dirty_ratio: float = 0.5
    min_compaction_lag_ms: int = 0
    min_insync_replicas: int = 1
    retention_bytes: int = -1
    retention_ms: int = 604_800_000
    segment_bytes: int = 1_073_741_824
    segment_index_bytes: int = 10_485_760
    segment_jitter_ms: int = 0
    segment_ms: int = 604_800_000


DEFAULT_TOPIC_CONFIG = TopicConfig()
DEFAULT_NODE_ID = NodeId(1)
