"""Transactions in a metadata log that Apache Kafka wrote: what was begun and not ended never happened (KIP-868)."""

from collections.abc import Iterable, Iterator

from riverlog.metadata.records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    MetadataRecord,
    TransactionRecord,
)


def decided(records: Iterable[MetadataRecord | TransactionRecord]) -> Iterator[MetadataRecord]:
    """Return the records that took effect; those of a transaction when it ends."""
    held: list[MetadataRecord] | None = None
    for record in records:
        if isinstance(record, BeginTransactionRecord):
            held = []
        elif isinstance(record, EndTransactionRecord):
            yield from held or ()
            held = None
        elif isinstance(record, AbortTransactionRecord):
            held = None
        elif held is not None:
            held.append(record)
        else:
            yield record
