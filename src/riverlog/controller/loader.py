"""What is committed, loaded into the view: the newest snapshot, then batch by batch behind it.

It runs on nodes that do not decide, and everywhere at the start; the active controller publishes its own decisions.
A piece at a time is read, so that others get their turn; what a transaction holds back takes effect when it ends.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from riverlog.controller.limits import RECORDS_LOADED_PER_TURN
from riverlog.controller.storage import MetadataStorage
from riverlog.controller.view import MetadataView
from riverlog.metadata.draft import MetadataDraft
from riverlog.metadata.image import MetadataImage
from riverlog.metadata.records import MetadataRecord, TransactionRecord
from riverlog.metadata.transactions import OpenTransaction
from riverlog.model.ids import Offset

_BATCHES_PER_TURN: Final = 100


class MetadataLoader:
    """Brings the view up to what is committed."""

    def __init__(self, storage: MetadataStorage, view: MetadataView) -> None:
        self._storage = storage
        self._view = view
        self.offset = Offset(0)
        """Everything below is in the view."""
        self._draft = MetadataDraft(MetadataImage())
        self._transaction = OpenTransaction()
        self._pieces: Iterator[tuple[Offset | None, list[MetadataRecord | TransactionRecord]]] | None = None
        self._unpublished: list[MetadataRecord] = []  # of a batch that was not read whole yet

    @property
    def in_transaction(self) -> bool:
        """Return whether records are held back that a snapshot of the view would lose."""
        return self._transaction.is_open

    def begin(self) -> None:
        """Read the newest snapshot into a view that nobody watches yet; BadMetadata where it is damaged."""
        self._load_snapshot()
        self._view.begin(self._draft.image())

    def load(self, upto: Offset) -> None:
        """Read everything below an offset at one stretch, into a view that nobody watches yet."""
        for end, records in self._storage.records(self.offset, upto):
            self._apply(records)
            self.offset = self.offset if end is None else end
        self._view.begin(self._draft.image())

    def load_some(self, upto: Offset) -> bool:
        """Read some records below an offset, and publish whole batches; return whether there are more."""
        if self._storage.log.log_start_offset > self.offset:
            self._load_installed()
        if self._pieces is None:
            self._pieces = self._storage.records(self.offset, upto)
        read, end = 0, None
        for count, (end, records) in enumerate(self._pieces, 1):
            self._unpublished += self._apply(records)
            if end is not None:
                self.offset = end
            read += len(records)
            if read >= RECORDS_LOADED_PER_TURN or count >= _BATCHES_PER_TURN:
                break
        else:
            self._pieces = None
            end = self.offset
        if end is not None and self._unpublished:
            published, self._unpublished = self._unpublished, []
            self._view.publish(self._draft.image(), published)
        return self._pieces is not None or self.offset < upto

    def go_on_from(self, offset: Offset) -> None:
        """Go on behind what this node published as the active controller."""
        self.offset = offset
        self._begin_anew()

    def _apply(self, records: Iterable[MetadataRecord | TransactionRecord]) -> list[MetadataRecord]:
        effective = [each for record in records for each in self._transaction.take(record)]
        for record in effective:
            self._draft.apply(record)
        return effective

    def _begin_anew(self) -> None:
        self._draft, self._transaction = MetadataDraft(self._view.image), OpenTransaction()
        self._pieces, self._unpublished = None, []

    def _load_snapshot(self) -> None:
        newest = self._storage.newest_snapshot
        self._begin_anew()
        self._draft = MetadataDraft(MetadataImage())
        if newest is not None:
            self._apply(self._storage.snapshot_records(newest))
            self.offset = newest.end_offset

    def _load_installed(self) -> None:
        """Take over a snapshot that was fetched, and tell those who watch what is different."""
        self._load_snapshot()
        self._view.replace(self._draft.image())
