"""What is committed, loaded into the view: the newest snapshot, then batch by batch behind it.

It runs on nodes that do not decide, and everywhere at the start; the active controller publishes its own decisions.
A piece at a time is read, so that others get their turn; what a transaction holds back takes effect when it ends.
"""

from collections.abc import Iterable

from riverlog.controller.limits import RECORDS_LOADED_PER_TURN
from riverlog.controller.storage import MetadataStorage
from riverlog.controller.view import MetadataView
from riverlog.metadata.draft import MetadataDraft
from riverlog.metadata.image import MetadataImage
from riverlog.metadata.records import MetadataRecord, TransactionRecord
from riverlog.metadata.transactions import OpenTransaction
from riverlog.model.ids import Offset


class MetadataLoader:
    """Brings the view up to what is committed."""

    def __init__(self, storage: MetadataStorage, view: MetadataView) -> None:
        self._storage = storage
        self._view = view
        self.offset = Offset(0)
        """Everything below is in the view."""
        self._draft = MetadataDraft(MetadataImage())
        self._transaction = OpenTransaction()

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
            self.offset = end
        self._view.begin(self._draft.image())

    def load_some(self, upto: Offset) -> bool:
        """Read and publish some batches below an offset; return whether there are more."""
        if self._storage.log.log_start_offset > self.offset:
            self._load_installed()
        published, count = list[MetadataRecord](), 0
        for end, records in self._storage.records(self.offset, upto):
            published += self._apply(records)
            self.offset = end
            count += len(records)
            if count >= RECORDS_LOADED_PER_TURN:
                break
        if published:
            self._view.publish(self._draft.image(), published)
        return self.offset < upto

    def go_on_from(self, offset: Offset) -> None:
        """Go on behind what this node published as the active controller."""
        self.offset = offset
        self._draft = MetadataDraft(self._view.image)
        self._transaction = OpenTransaction()

    def _apply(self, records: Iterable[MetadataRecord | TransactionRecord]) -> list[MetadataRecord]:
        effective = [each for record in records for each in self._transaction.take(record)]
        for record in effective:
            self._draft.apply(record)
        return effective

    def _load_snapshot(self) -> None:
        newest = self._storage.newest_snapshot
        self._draft, self._transaction = MetadataDraft(MetadataImage()), OpenTransaction()
        if newest is not None:
            self._apply(self._storage.snapshot_records(newest))
            self.offset = newest.end_offset

    def _load_installed(self) -> None:
        """Take over a snapshot that was fetched, and tell those who watch what is different."""
        self._load_snapshot()
        self._view.replace(self._draft.image())
