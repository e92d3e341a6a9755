"""What is known of elections before the metadata log is opened for Raft: the own vote, and who votes."""

from typing import NamedTuple

from riverlog.controller.folder_check import CheckedFolder
from riverlog.log.identity import DirectoryRefused
from riverlog.raft.election import ElectionState
from riverlog.raft.voters import KRAFT_VERSIONS, RECONFIGURABLE, LogHistory, ReplicaKey, Voter, VoterSet


class QuorumPast(NamedTuple):
    """The vote, and the voters along the log."""

    voters: LogHistory[VoterSet]
    kraft_version: LogHistory[int]
    election: ElectionState

    @classmethod
    def of(cls, found: CheckedFolder, key: ReplicaKey, begins_with: VoterSet) -> "QuorumPast":
        """Return what a folder says.

        `begins_with` votes where nothing says who does: the node itself, those of `controller.quorum.voters`, or, where
        others are to be asked, nobody. DirectoryRefused where the folder is of a newer version.
        """
        static = any(voter.key.directory_id is None for voter in begins_with)
        voters, kraft_version = LogHistory(begins_with), LogHistory(0 if static else RECONFIGURABLE)
        electorate = () if found.vote is None else found.vote.voters
        for each in found.said:
            if each.voters is not None:
                voters.append(each.offset, each.voters)
            if each.kraft_version is not None:
                _check_level(found.folder, each.kraft_version)
                kraft_version.append(each.offset, each.kraft_version)
            electorate = each.electorate or electorate
        if voters.latest_offset is None and electorate and not static:
            # A log in which voters are not named by disks (kraft.version 0).
            known = {voter.key.id: voter for voter in begins_with}
            if set(electorate) != {key.id} or key.id not in known:
                voters.restart(VoterSet.of(Voter(ReplicaKey(each), ()) for each in electorate), None)
            kraft_version.restart(0, None)
        return cls(voters, kraft_version, ElectionState() if found.vote is None else found.vote.election)

    def check_only_voter(self, folder: str, key: ReplicaKey) -> None:
        """Refuse a log that another node, or another disk, or several nodes vote on; DirectoryRefused."""
        voters = self.voters.latest
        if len(voters) != 1:
            ids = ", ".join(str(each) for each in voters.ids)
            raise DirectoryRefused(
                f"{folder} belongs to a quorum of {len(voters)} controllers ({ids}); set "
                "controller.quorum.bootstrap.servers and controller.listener.names, so that they find each other"
            )
        if not voters.includes(key):
            [other] = voters
            raise DirectoryRefused(
                f"{folder} has the metadata of node {other.key}, and this is node {key}; "
                "put back the meta.properties that it was used with"
            )

    def check_own_disk(self, folder: str, key: ReplicaKey) -> None:
        """Refuse to wait for ever: only this node votes, and what it voted for and flushed was on another disk."""
        voters = self.voters.latest
        if len(voters) == 1 and key.id in voters.ids:
            self.check_only_voter(folder, key)


def _check_level(folder: str, kraft_version: int) -> None:
    least, most = KRAFT_VERSIONS
    if not least <= kraft_version <= most:
        raise DirectoryRefused(f"{folder} has kraft.version {kraft_version}, and this version knows {least} to {most}")
