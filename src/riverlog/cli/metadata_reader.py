"""The committed metadata as a controller has them: its newest snapshot and the log behind it, read over the network."""

from typing import Any, Final

from riverlog.client.admin.controllers import ControllerAdmin
from riverlog.client.errors import KafkaError
from riverlog.controller.snapshot_files import decode_snapshot
from riverlog.metadata.draft import MetadataDraft
from riverlog.metadata.encoding import decode_record
from riverlog.metadata.image import MetadataImage
from riverlog.metadata.records import MetadataRecord, TransactionRecord
from riverlog.metadata.transactions import OpenTransaction
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import NO_NODE, NO_OFFSET, LeaderEpoch, Offset
from riverlog.raft.exchange.requests import encode_request
from riverlog.raft.exchange.responses import decode_response
from riverlog.raft.log_tail import SnapshotId
from riverlog.raft.messages import (
    FetchedBatches,
    FetchRequest,
    FetchResponse,
    FetchSnapshotRequest,
    FetchSnapshotResponse,
)
from riverlog.raft.voters import ReplicaKey
from riverlog.records.record import read_batches

_READER: Final = ReplicaKey(NO_NODE)
"""Somebody who reads, and is no replica."""
_BYTES_MAX: Final = 8 * 1024 * 1024


async def read_metadata(admin: ControllerAdmin) -> MetadataImage:
    """Read what is committed now; KafkaError where another controller leads meanwhile."""
    return await _Reading(admin).run()


class _Reading:
    """One pass over snapshot and log."""

    def __init__(self, admin: ControllerAdmin) -> None:
        self._admin = admin
        self._draft = MetadataDraft(MetadataImage())
        self._transaction = OpenTransaction()
        self._offset, self._last_epoch, self._epoch = Offset(0), LeaderEpoch(0), LeaderEpoch(0)

    async def run(self) -> MetadataImage:
        quorum = await self._admin.describe_quorum()
        self._epoch = quorum.epoch
        while self._offset < quorum.high_watermark:
            response: FetchResponse = await self._ask(
                FetchRequest(_READER, self._epoch, self._offset, self._last_epoch, NO_OFFSET, 0.0, _BYTES_MAX)
            )
            if response.snapshot is not None:
                await self._take_snapshot(response.snapshot)
            elif isinstance(response.records, FetchedBatches):
                self._take_batches(response.records, quorum.high_watermark)
            else:
                raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE, f"the metadata end at offset {self._offset}; try again")
        return self._draft.image()

    async def _ask(self, request: FetchRequest | FetchSnapshotRequest) -> Any:
        response = decode_response(await self._admin.ask_any(encode_request(request, self._admin.cluster_id)))
        assert isinstance(response, FetchResponse | FetchSnapshotResponse)
        if response.leadership.error is not ErrorCode.NONE:
            raise KafkaError(response.leadership.error, "the metadata cannot be read: another controller may lead now")
        return response

    async def _take_snapshot(self, snapshot: SnapshotId) -> None:
        content, size = bytearray(), 1
        while len(content) < size:
            response: FetchSnapshotResponse = await self._ask(
                FetchSnapshotRequest(_READER, self._epoch, snapshot, len(content), _BYTES_MAX)
            )
            assert isinstance(response.content, bytes)
            if not response.content:
                raise KafkaError(ErrorCode.SNAPSHOT_NOT_FOUND, f"the snapshot {snapshot} ends early; try again")
            content += response.content
            size = response.size
        for record in decode_snapshot(bytes(content)):
            self._apply(record)
        self._offset, self._last_epoch = snapshot.end_offset, snapshot.epoch

    def _take_batches(self, fetched: FetchedBatches, end: Offset) -> None:
        """Take what is committed of these; a leader sends more."""
        assert isinstance(fetched.content, memoryview)
        for header, records in read_batches(fetched.content):
            if header.base_offset >= end:
                return
            for record in records if not header.is_control else ():
                self._apply(decode_record(record.value or b""))
            self._offset, self._last_epoch = header.next_offset, header.leader_epoch

    def _apply(self, record: MetadataRecord | TransactionRecord) -> None:
        for each in self._transaction.take(record):
            self._draft.apply(each)
