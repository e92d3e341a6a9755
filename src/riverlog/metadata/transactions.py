"""Transactions in a metadata log: what was begun and not ended never happened (KIP-868)."""

from collections.abc import Iterable, Iterator, Sequence

from riverlog.metadata.records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    MetadataRecord,
    TransactionRecord,
)


class OpenTransaction:
    """The records that are held back until it is known whether they take effect."""

    def __init__(self) -> None:
        self._held: list[MetadataRecord] | None = None

    @property
    def is_open(self) -> bool:
        return self._held is not None

    def take(self, record: MetadataRecord | TransactionRecord) -> Iterable[MetadataRecord]:
        """Take the next record; return those that take effect with it."""
        if isinstance(record, BeginTransactionRecord):
            self._held = []
        elif isinstance(record, EndTransactionRecord):
            ended, self._held = self._held, None
            return ended or ()
        elif isinstance(record, AbortTransactionRecord):
            self._held = None
        elif self._held is not None:
            self._held.append(record)
        else:
            return (record,)
        return ()


def decided(records: Iterable[MetadataRecord | TransactionRecord]) -> Iterator[MetadataRecord]:
    """Return the records that took effect; those of a transaction when it ends."""
    transaction = OpenTransaction()
    for record in records:
        yield from transaction.take(record)


def batches(records: Sequence[MetadataRecord], records_max: int) -> list[Sequence[MetadataRecord | TransactionRecord]]:
    """Divide records that take effect together into batches of a log; several of them are a transaction."""
    if len(records) <= records_max:
        return [records] if records else []
    begin: list[MetadataRecord | TransactionRecord] = [BeginTransactionRecord()]
    whole = [*begin, *records, EndTransactionRecord()]
    return [whole[first : first + records_max] for first in range(0, len(whole), records_max)]
