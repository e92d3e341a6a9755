"""riverlog: an event streaming platform that any Kafka client can use.

    from riverlog import Producer, Consumer, Admin

The client is imported on first use, so that importing the package costs nothing.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from riverlog.arrow.scan import Scan, scan
    from riverlog.client.admin.admin import Admin
    from riverlog.client.consumer.consumer import Consumer
    from riverlog.client.errors import KafkaError, ProducerFenced, TransactionAborted
    from riverlog.client.network.security import Security
    from riverlog.client.producer.exactly_once import NewRecord, process_exactly_once
    from riverlog.client.producer.producer import Producer
    from riverlog.client.producer.shared_transactions import Member, SharedTransactions
    from riverlog.model.ids import TopicPartition

__version__ = "0.1.0"
__all__ = [
    "Admin",
    "Consumer",
    "KafkaError",
    "Member",
    "NewRecord",
    "Producer",
    "ProducerFenced",
    "Scan",
    "Security",
    "SharedTransactions",
    "TopicPartition",
    "TransactionAborted",
    "__version__",
    "process_exactly_once",
    "scan",
]

_HOMES = {
    "Admin": "riverlog.client.admin.admin",
    "Consumer": "riverlog.client.consumer.consumer",
    "KafkaError": "riverlog.client.errors",
    "Member": "riverlog.client.producer.shared_transactions",
    "NewRecord": "riverlog.client.producer.exactly_once",
    "Producer": "riverlog.client.producer.producer",
    "ProducerFenced": "riverlog.client.errors",
    "Scan": "riverlog.arrow.scan",
    "Security": "riverlog.client.network.security",
    "SharedTransactions": "riverlog.client.producer.shared_transactions",
    "TopicPartition": "riverlog.model.ids",
    "TransactionAborted": "riverlog.client.errors",
    "process_exactly_once": "riverlog.client.producer.exactly_once",
    "scan": "riverlog.arrow.scan",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'riverlog' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
