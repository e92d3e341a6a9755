"""Transactions in a metadata log: what was begun and not ended never happened (KIP-868)."""

from collections.abc import Iterable, Iterator, Sequence

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


def batches(records: Sequence[MetadataRecord], records_max: int) -> list[Sequence[MetadataRecord | TransactionRecord]]:
    """Divide records that take effect together into batches of a log; several of them are a transaction."""
    if len(records) <= records_max:
        return [records] if records else []
    begin: list[MetadataRecord | TransactionRecord] = [BeginTransactionRecord()]
    whole = [*begin, *records, EndTransactionRecord()]
    return [whole[first : first + records_max] for first in range(0, len(whole), records_max)]
