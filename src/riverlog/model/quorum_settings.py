"""The settings of a node's share in the cluster: its roles, where the controllers are, and how long it waits."""

from dataclasses import dataclass
from enum import Enum
from typing import Final, NamedTuple

from riverlog.model.endpoints import PORT_MAX
from riverlog.model.ids import Address, NodeId
from riverlog.model.node_row import node_row
from riverlog.model.setting import INT_MAX, BadSetting, SettingType, Value


class ProcessRole(Enum):
    """What a node does in the cluster."""

    BROKER = "broker"
    CONTROLLER = "controller"


class StaticVoter(NamedTuple):
    """A controller that votes because the settings say so."""

    id: NodeId
    address: Address


def read_roles(value: Value) -> tuple[ProcessRole, ...]:
    """Read what a node is to be; BadSetting for anything else."""
    assert isinstance(value, tuple)
    names = [name.lower() for name in value]
    if not names or len(set(names)) < len(names) or not set(names) <= _ROLES.keys():
        raise BadSetting(
            f"process.roles is {','.join(value)!r}; write broker, controller, or broker,controller for both in one."
        )
    return tuple(_ROLES[name] for name in names)


def read_addresses(value: Value) -> tuple[Address, ...]:
    """Read a list of controllers, as host:port each."""
    assert isinstance(value, tuple)
    return tuple(_read_address(text, f"controller.quorum.bootstrap.servers has {text!r}") for text in value)


def read_voters(value: Value) -> tuple[StaticVoter, ...]:
    """Read a list of voters, as id@host:port each."""
    assert isinstance(value, tuple)
    voters = []
    for text in value:
        node, at, address = text.partition("@")
        what = f"controller.quorum.voters has {text!r}"
        if not (at and node.isascii() and node.isdigit() and len(node) <= _DIGITS_MAX and int(node) <= INT_MAX):
            raise BadSetting(f"{what}; write ID@HOST:PORT.")
        voters.append(StaticVoter(NodeId(int(node)), _read_address(address, what, form="ID@HOST:PORT")))
    if len({voter.id for voter in voters}) < len(voters):
        raise BadSetting("controller.quorum.voters names a node twice.")
    return tuple(voters)


def read_listener_names(value: Value) -> tuple[str, ...]:
    assert isinstance(value, tuple)
    return tuple(name.upper() for name in value)


def _read_address(text: str, what: str, form: str = "HOST:PORT") -> Address:
    host, colon, port = text.rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    is_port = port.isascii() and port.isdigit() and len(port) <= _DIGITS_MAX and 0 < int(port) <= PORT_MAX
    if not (host and colon and is_port):
        raise BadSetting(f"{what}; write {form}.")
    return Address(host, int(port))


_ROLES: Final = {role.value: role for role in ProcessRole}
_DIGITS_MAX: Final = 10


@dataclass(frozen=True, slots=True)
class QuorumSettings:
    """What a node knows of the cluster before it has asked anybody."""

    broker_heartbeat_interval_ms: int = node_row(
        "broker.heartbeat.interval.ms",
        SettingType.INT,
        500,
        "How often a broker tells the active controller that it lives.",
        unit="ms",
        least=50,
    )
    broker_session_timeout_ms: int = node_row(
        "broker.session.timeout.ms",
        SettingType.INT,
        9_000,
        "How long a broker may be silent before the active controller fences it: others lead its partitions then. A "
        "broker of riverlog whose process is gone is fenced earlier.",
        unit="ms",
        least=1_000,
    )
    controller_listener_names: tuple[str, ...] = node_row(
        "controller.listener.names",
        SettingType.LIST,
        "",
        "Listeners that are for controllers, and for brokers that ask them; clients have others. The first one is the "
        "one on which controllers reach each other.",
        read=read_listener_names,
    )
    controller_quorum_auto_join_enable: bool = node_row(
        "controller.quorum.auto.join.enable",
        SettingType.BOOLEAN,
        False,
        "Whether a controller that is not among the voters makes itself one.",
    )
    controller_quorum_bootstrap_servers: tuple[Address, ...] = node_row(
        "controller.quorum.bootstrap.servers",
        SettingType.LIST,
        "",
        "Some controllers of the cluster, as HOST:PORT; a node asks them who leads. Without it, and without "
        "`controller.quorum.voters`, a node is a cluster of its own.",
        read=read_addresses,
    )
    controller_quorum_election_backoff_max_ms: int = node_row(
        "controller.quorum.election.backoff.max.ms",
        SettingType.INT,
        300,
        "The longest time that a voter waits after its leader has resigned before it stands for election.",
        unit="ms",
        least=0,
    )
    controller_quorum_election_timeout_ms: int = node_row(
        "controller.quorum.election.timeout.ms",
        SettingType.INT,
        300,
        "How long a voter without a leader waits before it stands for election, and at random up to twice as long.",
        unit="ms",
        least=50,
    )
    controller_quorum_fetch_timeout_ms: int = node_row(
        "controller.quorum.fetch.timeout.ms",
        SettingType.INT,
        600,
        "How long a voter goes on without hearing its leader, before it looks for another one. A leader that no "
        "majority has asked for half as long again resigns.",
        unit="ms",
        least=100,
    )
    controller_quorum_request_timeout_ms: int = node_row(
        "controller.quorum.request.timeout.ms",
        SettingType.INT,
        1_000,
        "How long a controller waits for the response of another one.",
        unit="ms",
        least=100,
    )
    controller_quorum_retry_backoff_ms: int = node_row(
        "controller.quorum.retry.backoff.ms",
        SettingType.INT,
        20,
        "How long a controller waits before it asks again.",
        unit="ms",
        least=1,
    )
    controller_quorum_voters: tuple[StaticVoter, ...] = node_row(
        "controller.quorum.voters",
        SettingType.LIST,
        "",
        "The voters, as ID@HOST:PORT, of a cluster whose voters cannot be changed while it runs (kraft.version 0). New "
        "clusters have them in their metadata instead: see `controller.quorum.bootstrap.servers`.",
        read=read_voters,
    )
    initial_broker_registration_timeout_ms: int = node_row(
        "initial.broker.registration.timeout.ms",
        SettingType.INT,
        60_000,
        "How long a broker that starts tries to find an active controller and to register, before it gives up.",
        unit="ms",
        least=1_000,
    )
    inter_broker_listener_name: str = node_row(
        "inter.broker.listener.name",
        SettingType.STRING,
        "",
        "The listener on which brokers reach each other; the first one that is for clients where nothing is given.",
    )
    process_roles: tuple[ProcessRole, ...] = node_row(
        "process.roles",
        SettingType.LIST,
        "broker,controller",
        "What this node is: `broker` keeps partitions and serves clients, `controller` keeps the cluster's metadata, "
        "`broker,controller` does both.",
        read=read_roles,
    )

    @property
    def is_broker(self) -> bool:
        return ProcessRole.BROKER in self.process_roles

    @property
    def is_controller(self) -> bool:
        return ProcessRole.CONTROLLER in self.process_roles
