"""How a node takes part in the quorum, as its settings and its folder say: alone, as a voter, or as an observer.

A node that names no controllers but itself is a quorum of one: on an empty folder it begins a cluster. Whoever names
others is told which cluster it belongs to by `riverlog storage format`, and learns from the metadata who votes.
"""

import socket
from collections.abc import Callable
from typing import Final

from riverlog.controller.bootstrap_file import read_bootstrap
from riverlog.controller.controller import Controller
from riverlog.controller.folder_check import check_folder
from riverlog.controller.log import MetadataLog
from riverlog.controller.past import QuorumPast
from riverlog.controller.quorum import MetadataQuorum
from riverlog.controller.quorum_ports import QuorumPeers
from riverlog.controller.storage import METADATA_FOLDER, METADATA_PARTITION, MetadataStorage
from riverlog.controller.view import MetadataView
from riverlog.log.directory import LogDirectory
from riverlog.log.identity import DirectoryRefused, find
from riverlog.metadata.features import FIRST_LEVELS
from riverlog.model.endpoints import Endpoint
from riverlog.model.ids import Address
from riverlog.model.ports import Clock, Disk, Random, Workers
from riverlog.model.resolution import controller_listeners
from riverlog.model.settings import NodeSettings
from riverlog.raft.replica import Timing
from riverlog.raft.voters import ReplicaKey, Voter, VoterSet

EVERY_ADDRESS: Final = ("", "0.0.0.0", "::")
_MILLISECONDS: Final = 1000


def is_alone(settings: NodeSettings) -> bool:
    """Return whether nobody else can reach this node as a controller, nor it anybody."""
    return settings.is_broker and settings.is_controller and not controller_listeners(settings)


def begins_cluster(settings: NodeSettings) -> bool:
    """Return whether this node begins a cluster of its own on an empty folder."""
    if not settings.is_controller or settings.controller_quorum_voters:
        return False
    own = {endpoint.address for endpoint in controller_endpoints(settings)}
    own |= {endpoint.address for endpoint in controller_listeners(settings)}
    return set(settings.controller_quorum_bootstrap_servers) <= own


def controller_endpoints(settings: NodeSettings) -> tuple[Endpoint, ...]:
    """Return where others reach this controller, the listener for controllers first."""
    advertised = {endpoint.listener: endpoint for endpoint in settings.advertised_listeners}
    return tuple(
        advertised.get(each.listener) or reachable(each, each.address) for each in controller_listeners(settings)
    )


def reachable(endpoint: Endpoint, bound: Address) -> Endpoint:
    """Return the address to tell others: the one that was bound, or the machine's name where that is every address."""
    host = endpoint.host if endpoint.host not in EVERY_ADDRESS else socket.gethostname()
    return Endpoint(endpoint.listener, host, bound.port)


def check_formatted(disk: Disk, settings: NodeSettings) -> None:
    """Refuse to begin in a folder of which nobody said to which cluster it belongs; DirectoryRefused."""
    folder = settings.log_dirs[0]
    if begins_cluster(settings) or find(disk, folder) is not None:
        return
    raise DirectoryRefused(
        f"{folder} belongs to no cluster yet; say which one it joins: riverlog storage format --cluster-id ID --config "
        "FILE"
    )


def open_controller(
    settings: NodeSettings,
    logs: LogDirectory,
    view: MetadataView,
    *,
    disk: Disk,
    clock: Clock,
    workers: Workers,
    random: Random,
    peers: QuorumPeers | None,
    failed: Callable[[Exception], None],
) -> Controller:
    """Open the metadata log in the first log directory, and build the controller on it. Nothing is changed where it is
    refused: BadMetadata or DirectoryRefused."""
    found = check_folder(
        disk,
        f"{logs.folder}/{METADATA_FOLDER}",
        flushed=logs.recovery_point(METADATA_PARTITION),
        after_clean_stop=logs.clean,
    )
    key, endpoints = ReplicaKey(settings.node_id, logs.identity.directory_id), controller_endpoints(settings)
    past = QuorumPast.of(found, key, _first_voters(settings, key, endpoints))
    if is_alone(settings):
        past.check_only_voter(found.folder, key)
    past.check_own_disk(found.folder, key)
    storage = MetadataStorage.open(
        disk,
        clock,
        found,
        note_flushed=lambda offset: logs.note_flushed(METADATA_PARTITION, offset),
        lower_flushed=lambda offset: logs.lower_flushed(METADATA_PARTITION, offset),
    )
    names = settings.controller_listener_names
    voters = (voter.address for voter in settings.controller_quorum_voters)
    quorum = MetadataQuorum(
        storage,
        clock,
        workers,
        random,
        key=key,
        past=past,
        may_vote=settings.is_controller,
        peers=peers,
        endpoints=endpoints,
        listener=names[0] if names else "CONTROLLER",
        bootstrap=(*settings.controller_quorum_bootstrap_servers, *voters),
        timing=_timing(settings),
        auto_join=settings.controller_quorum_auto_join_enable,
    )
    log = MetadataLog(quorum, clock, workers)
    levels = None if is_alone(settings) or not settings.is_controller else read_bootstrap(disk, logs.folder)
    return Controller(
        log=log,
        view=view,
        clock=clock,
        failed=failed,
        alone=is_alone(settings),
        first_levels=FIRST_LEVELS if levels is None else levels,
    )


def _first_voters(settings: NodeSettings, key: ReplicaKey, endpoints: tuple[Endpoint, ...]) -> VoterSet:
    """Return who votes where the folder does not say it."""
    if settings.controller_quorum_voters:
        listener = settings.controller_listener_names[0]
        return VoterSet.of(
            Voter(ReplicaKey(each.id), (Endpoint(listener, *each.address),))
            for each in settings.controller_quorum_voters
        )
    return VoterSet.of([Voter(key, endpoints)] if begins_cluster(settings) else [])


def _timing(settings: NodeSettings) -> Timing:
    return Timing(
        election_timeout=settings.controller_quorum_election_timeout_ms / _MILLISECONDS,
        fetch_timeout=settings.controller_quorum_fetch_timeout_ms / _MILLISECONDS,
        request_timeout=settings.controller_quorum_request_timeout_ms / _MILLISECONDS,
        retry_backoff=settings.controller_quorum_retry_backoff_ms / _MILLISECONDS,
        election_backoff_max=settings.controller_quorum_election_backoff_max_ms / _MILLISECONDS,
    )
