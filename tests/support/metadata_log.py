"""A metadata log over a disk in memory, of a node that is its own quorum."""

from collections.abc import Callable
from random import Random

from riverlog.controller.folder_check import check_folder
from riverlog.controller.log import MetadataLog
from riverlog.controller.past import QuorumPast
from riverlog.controller.quorum import MetadataQuorum
from riverlog.controller.storage import METADATA_CONFIG, MetadataStorage
from riverlog.model.ids import Offset
from riverlog.model.ports import Clock, Workers
from riverlog.model.settings import TopicConfig
from riverlog.raft.voters import Voter, VoterSet
from tests.support.disk import MemoryDisk

NOTHING = Offset(0)


def only_voter_log(
    disk: MemoryDisk,
    folder: str,
    clock: Clock,
    workers: Workers,
    voter: Voter,
    *,
    config: TopicConfig = METADATA_CONFIG,
    flushed: Offset = NOTHING,
    after_clean_stop: bool = False,
    note_flushed: Callable[[Offset], None] = lambda _offset: None,
) -> MetadataLog:
    """Return the log of a node that needs nobody else to lead."""
    found = check_folder(disk, folder, flushed=flushed, after_clean_stop=after_clean_stop)
    past = QuorumPast.of(found, voter.key, VoterSet.of([voter]))
    past.check_only_voter(folder, voter.key)
    storage = MetadataStorage.open(disk, clock, found, config=config, note_flushed=note_flushed)
    quorum = MetadataQuorum(storage, clock, workers, Random(1), key=voter.key, past=past, endpoints=voter.endpoints)
    return MetadataLog(quorum, clock, workers)
