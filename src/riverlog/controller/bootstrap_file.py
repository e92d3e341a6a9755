"""`bootstrap.checkpoint` of a log directory: the feature levels with which a new cluster begins, in Kafka's form.

`riverlog storage format` writes it. Who becomes active first reads it; once there are metadata it says nothing more.
"""

from collections.abc import Mapping
from typing import Final

from riverlog.controller.snapshot_files import BadMetadata, decode_snapshot, encode_snapshot
from riverlog.log.checkpoint import TEMPORARY_SUFFIX, read_file, write_durably
from riverlog.metadata.encoding import BadMetadataRecord
from riverlog.metadata.features import METADATA_VERSION, NODE_FEATURES
from riverlog.metadata.records import FeatureLevelRecord
from riverlog.model.ids import LeaderEpoch
from riverlog.model.ports import Disk
from riverlog.raft.control_records import BadControlRecord
from riverlog.raft.voters import VoterSet
from riverlog.records.errors import CorruptBatch

BOOTSTRAP_FILE: Final = "bootstrap.checkpoint"


def write_bootstrap(disk: Disk, folder: str, levels: Mapping[str, int]) -> None:
    """Write the levels, metadata.version first; a feature that is off is left out. Whoever formats syncs the name."""
    names = sorted(levels, key=lambda name: (name != METADATA_VERSION, name))
    records = [FeatureLevelRecord(name=name, feature_level=levels[name]) for name in names if levels[name] > 0]
    content = encode_snapshot(records, LeaderEpoch(0), 0, voters=VoterSet(), kraft_version=0)
    path = f"{folder}/{BOOTSTRAP_FILE}"
    write_durably(disk, path + TEMPORARY_SUFFIX, content)
    disk.rename(path + TEMPORARY_SUFFIX, path)


def read_bootstrap(disk: Disk, folder: str) -> Mapping[str, int] | None:
    """Read the levels; None where there is no file. BadMetadata where it is damaged, or asks for what is not there."""
    content = read_file(disk, f"{folder}/{BOOTSTRAP_FILE}")
    if content is None:
        return None
    try:
        records = list(decode_snapshot(content))
    except (CorruptBatch, BadControlRecord, BadMetadataRecord) as error:
        raise BadMetadata(folder, f"{BOOTSTRAP_FILE} cannot be read, {error}") from error
    levels: dict[str, int] = {}
    for record in records:
        if not isinstance(record, FeatureLevelRecord):
            raise BadMetadata(folder, f"{BOOTSTRAP_FILE} has a {type(record).__name__}, which no cluster begins with")
        known = NODE_FEATURES.get(record.name)
        if known is None or not known.lowest <= record.feature_level <= known.highest:
            raise BadMetadata(
                folder, f"{BOOTSTRAP_FILE} wants {record.name} at level {record.feature_level}, which is not known here"
            )
        levels[record.name] = record.feature_level
    if METADATA_VERSION not in levels:
        raise BadMetadata(folder, f"{BOOTSTRAP_FILE} names no {METADATA_VERSION}")
    return levels
