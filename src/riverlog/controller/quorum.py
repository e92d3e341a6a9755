"""The quorum behind the metadata log: runs this node's Raft machine and does what it asks.

This node is the only voter so far, and needs nobody else to lead: what is flushed here is committed. Each start begins
another epoch; the vote for it is in `quorum-state` before the record with which it begins is in the log.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

from riverlog.controller.snapshot_files import BadMetadata, VotersSaid
from riverlog.log.checkpoint import TEMPORARY_SUFFIX, read_file, write_durably
from riverlog.log.identity import DirectoryRefused
from riverlog.log.log import Log
from riverlog.model.disk_errors import NO_ROOM
from riverlog.model.errors import ErrorCode, InvariantBroken, Refusal
from riverlog.model.ids import LeaderEpoch, NodeId, Offset
from riverlog.model.machine import Instant
from riverlog.model.ports import Clock, Disk, Random
from riverlog.observe.logging import get_logger
from riverlog.raft.control_records import encode_batch, records_of
from riverlog.raft.effects import AppendControl, Committed, Effect, LeaderChanged, SaveElection
from riverlog.raft.election import ElectionState
from riverlog.raft.events import Appended, Event, Flushed, LogShortened, SnapshotTaken
from riverlog.raft.log_tail import LogTail, SnapshotId
from riverlog.raft.machine import Raft
from riverlog.raft.quorum_state import (
    QUORUM_STATE_FILE,
    BadQuorumState,
    SavedElection,
    decode_election,
    encode_election,
)
from riverlog.raft.replica import Replica, Timing
from riverlog.raft.voters import KRAFT_VERSIONS, RECONFIGURABLE, LogHistory, ReplicaKey, Voter, VoterSet
from riverlog.records.batch import read_header

_CONTROLLER_LISTENER: Final = "CONTROLLER"


class QuorumPast(NamedTuple):
    """What is known of elections before the log is opened."""

    voters: LogHistory[VoterSet]
    kraft_version: LogHistory[int]
    election: ElectionState

    @classmethod
    def read(cls, disk: Disk, folder: str, voter: Voter, said: Iterable[VotersSaid]) -> "QuorumPast":
        """Read the own vote; `said` is what snapshot and log say of voters, in the order of their offsets.

        Raises BadMetadata where the vote cannot be read, DirectoryRefused where others vote. Nothing is changed.
        """
        saved = _read_election(disk, folder)
        voters, kraft_version = LogHistory(VoterSet.of([voter])), LogHistory(RECONFIGURABLE)
        electorate = () if saved is None else saved.voters
        for each in said:
            if each.voters is not None:
                voters.append(each.offset, each.voters)
            if each.kraft_version is not None:
                _check_level(folder, each.kraft_version)
                kraft_version.append(each.offset, each.kraft_version)
            electorate = each.electorate or electorate
        if voters.latest_offset is None and electorate:  # a log of Kafka's in which voters are not named by disks
            _check_only_voter(folder, voter, VoterSet.of(Voter(ReplicaKey(each), ()) for each in electorate))
            kraft_version.restart(0, None)
        _check_only_voter(folder, voter, voters.latest)
        return cls(voters, kraft_version, ElectionState() if saved is None else saved.election)


class MetadataQuorum:
    """This node's share in the quorum, over an open log."""

    def __init__(
        self,
        log: Log,
        disk: Disk,
        clock: Clock,
        random: Random,
        *,
        voter: Voter,
        past: "QuorumPast",
        snapshots: Iterable[tuple[SnapshotId, int]],
    ) -> None:
        """Begin where the node stopped."""
        self._log = log
        self._disk = disk
        self._clock = clock
        self._logger = get_logger("riverlog.metadata")
        replica = Replica(
            key=voter.key,
            endpoints=voter.endpoints,
            listener=_CONTROLLER_LISTENER,
            log=LogTail(
                start=log.log_start_offset,
                end=log.log_end_offset,
                epochs=log.epochs.entries(),
                snapshots=snapshots,
            ),
            voters=past.voters,
            kraft_version=past.kraft_version,
            election=past.election,
            bootstrap=(),
            timing=Timing(),
            random=random,
            may_vote=True,
        )
        self._raft = Raft(replica, self._now())

    @property
    def epoch(self) -> LeaderEpoch:
        return self._raft.epoch

    @property
    def leader_id(self) -> NodeId | None:
        return self._raft.replica.leader_id

    @property
    def voters(self) -> VoterSet:
        return self._raft.replica.voters.latest

    @property
    def kraft_version(self) -> int:
        return self._raft.replica.kraft_version.latest

    @property
    def high_watermark(self) -> Offset:
        """Return the offset below which all is committed."""
        return self._raft.replica.high_watermark

    def start(self) -> None:
        """Begin an epoch and lead it, waiting for the disk; OSError where it fails."""
        self._carry_out(self._raft.start(self._now()))
        self._log.flush()
        self.flushed(self._log.log_end_offset)
        assert self.high_watermark == self._log.log_end_offset, "the only voter has committed what it has flushed"

    def appended(self, count: int) -> None:
        """Note that the log has taken records of this epoch."""
        self._hear(Appended(count))

    def flushed(self, end: Offset) -> None:
        """Note that everything below is on the medium."""
        self._hear(Flushed(end, self._raft.replica.log.generation))

    def snapshot_taken(self, snapshot: SnapshotId, size: int) -> None:
        """Note a snapshot of all records below its end, which is on the medium."""
        self._hear(SnapshotTaken(snapshot, size))

    def shortened(self, start: Offset) -> None:
        """Note that the log begins later, at the end of a snapshot."""
        self._hear(LogShortened(start))

    def _now(self) -> Instant:
        return Instant(self._clock.monotonic())

    def _hear(self, event: Event) -> None:
        self._carry_out(self._raft.on(event, self._now()))

    def _carry_out(self, effects: list[Effect]) -> None:
        """Do what is asked, in order. Of elections that follow each other only the last one is written."""
        unsaved: SaveElection | None = None
        for effect in effects:
            match effect:
                case SaveElection():
                    unsaved = effect
                case AppendControl():
                    if unsaved is not None:
                        self._save(unsaved)
                        unsaved = None
                    self._append(effect)
                case Committed() | LeaderChanged():
                    pass  # whoever waits looks at the high watermark after each flush
                case _:
                    raise InvariantBroken(f"the only voter of a quorum was to do {type(effect).__name__}")
        if unsaved is not None:
            self._save(unsaved)

    def _save(self, effect: SaveElection) -> None:
        """Write `quorum-state`. The only voter may go on without it: nothing of an epoch counts before its first
        record is in the log, and from there the next start knows it."""
        path = f"{self._log.folder}/{QUORUM_STATE_FILE}"
        content = encode_election(effect.election, kraft_version=effect.kraft_version, voters=self.voters.ids)
        try:
            write_durably(self._disk, path + TEMPORARY_SUFFIX, content)
            self._disk.rename(path + TEMPORARY_SUFFIX, path)
        except OSError as error:
            if error.errno not in NO_ROOM:
                raise
            self._logger.warning("no room for the vote on the disk", detail=str(error))
        self._disk.sync_folder(self._log.folder)

    def _append(self, effect: AppendControl) -> None:
        records, base_offset, now_ms = records_of(effect), effect.base_offset, self._clock.wall_ms()
        assert base_offset == self._log.log_end_offset
        batch = memoryview(encode_batch(records, base_offset=base_offset, epoch=effect.epoch, timestamp_ms=now_ms))
        try:
            self._log.append(batch, read_header(batch), leader_epoch=effect.epoch, now_ms=now_ms)
        except OSError as error:
            if error.errno not in NO_ROOM:
                raise
            raise no_room(self._log.folder, error) from error


def no_room(folder: str, error: OSError) -> Refusal:
    """Return the refusal of records for which the disk has no room."""
    return Refusal(
        ErrorCode.KAFKA_STORAGE_ERROR, f"There is no room for metadata in {folder} ({error.strerror}); free some."
    )


def _read_election(disk: Disk, folder: str) -> SavedElection | None:
    """Read the own vote; None where the log is new, or from before there were elections."""
    content = read_file(disk, f"{folder}/{QUORUM_STATE_FILE}")
    if content is None:
        return None
    try:
        return decode_election(content)
    except BadQuorumState as error:
        raise BadMetadata(folder, f"{QUORUM_STATE_FILE} cannot be read, {error}") from error


def _check_level(folder: str, kraft_version: int) -> None:
    least, most = KRAFT_VERSIONS
    if not least <= kraft_version <= most:
        raise DirectoryRefused(f"{folder} has kraft.version {kraft_version}, and this version knows {least} to {most}")


def _check_only_voter(folder: str, voter: Voter, voters: VoterSet) -> None:
    """Refuse a log that another node, or another disk, or several nodes vote on."""
    if len(voters) != 1:
        ids = ", ".join(str(each) for each in voters.ids)
        raise DirectoryRefused(
            f"{folder} belongs to a quorum of {len(voters)} controllers ({ids}), and this version runs quorums of one"
        )
    if not voters.includes(voter.key):
        [other] = voters
        raise DirectoryRefused(
            f"{folder} has the metadata of node {other.key}, and this is node {voter.key}; "
            "put back the meta.properties that it was used with"
        )
