"""From what was set, and where, to what holds.

A node is configured by a file, then `RIVERLOG_*` variables, then flags, each overriding the one before; then by
what is set while it runs. A topic has its own settings in front of these. Names fall into four classes: used;
known from Kafka but without meaning here, which are listed for one warning; known from Kafka and not supported yet,
which are an error where they ask for something; unknown, which are an error that names the nearest setting.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from difflib import get_close_matches
from typing import Any, Final

from riverlog.model.endpoints import Endpoint
from riverlog.model.group_config import GROUP_SETTINGS, check_group_times, group_config
from riverlog.model.kafka_settings import (
    NODE_SETTINGS_WITHOUT_MEANING,
    TOPIC_SETTINGS_WITHOUT_MEANING,
    UNSUPPORTED_NODE_SETTINGS,
)
from riverlog.model.setting import BadSetting, NodeSettingName, Setting, SettingSource, SettingType, Value
from riverlog.model.settings import (
    NODE_SETTINGS,
    PROFILES,
    TOPIC_SETTINGS,
    NodeSettings,
    SettingLayers,
    TopicConfig,
)
from riverlog.model.topic_config import COMPRESSION_TYPE

NO_MEANING: Final = "Known from Kafka; has no meaning here."
"""How a setting is documented that was set though it does nothing."""

VARIABLE_PREFIX: Final = "RIVERLOG_"
CLIENT_VARIABLES: Final = frozenset(("RIVERLOG_BOOTSTRAP_SERVERS", "RIVERLOG_CHECKPOINTS", "RIVERLOG_PROFILE"))
"""Variables that speak to the command line's clients, not to the node."""

_OF_KUBERNETES: Final = re.compile(
    r"RIVERLOG_(?:\w+_)?(?:SERVICE_HOST|SERVICE_PORT(?:_\w+)?|PORT_\d+_(?:TCP|UDP|SCTP)(?:_(?:ADDR|PORT|PROTO))?)"
)
"""Variables that Kubernetes sets in every container next to a service whose name begins with riverlog."""
_LISTENER_PREFIX: Final = "listener.name."
_KNOWN_FROM_KAFKA: Final = NODE_SETTINGS_WITHOUT_MEANING | UNSUPPORTED_NODE_SETTINGS.keys() | NODE_SETTINGS.keys()


@dataclass(frozen=True, slots=True)
class Configuration:
    """A node's settings, and the names among what was given that mean nothing here."""

    settings: NodeSettings
    without_meaning: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SettingSynonym:
    """A value that was set, or the default: under which name, and where."""

    name: str
    text: str
    source: SettingSource


@dataclass(frozen=True, slots=True)
class SettingDescription:
    """A setting as it holds, and all that was set for it, strongest first."""

    setting: Setting
    name: str
    text: str
    source: SettingSource
    synonyms: tuple[SettingSynonym, ...]
    read_only: bool


def configure(
    *,
    profile: str = "serve",
    file: Mapping[str, str] | None = None,
    variables: Mapping[str, str] | None = None,
    flags: Mapping[str, str] | None = None,
    lines: Mapping[str, str] | None = None,
) -> Configuration:
    """Resolve a node's settings from all that was given at its start; BadSetting lists what is wrong, and where.

    `lines` names the place of each setting of the file, such as `line 7 of server.properties`.
    """
    of_variables = from_variables(variables or {})
    places = {**(lines or {}), **{name: _place_of_variable(name) for name in of_variables}}
    places = {name: place for name, place in places.items() if name not in (flags or {})}
    given = {**(file or {}), **of_variables, **(flags or {})}
    static = {name: text for name, text in given.items() if name in NODE_SETTINGS}
    rest = sorted(given.keys() - static.keys())
    wrong = {name: sentence for name in rest if (sentence := _objection(name, given[name])) is not None}
    if wrong:
        raise BadSetting(" ".join(wrong.values()) + _see(wrong, places))
    try:
        settings = node_settings(SettingLayers(static=static, profile=PROFILES[profile]))
        topic_config({}, settings.layers)
    except BadSetting as error:
        raise BadSetting(f"{error}{_see(_refused_with(str(error), static), places)}") from error
    _check_listeners(settings)
    if static.get(COMPRESSION_TYPE, "producer") != "producer":
        rest = sorted([*rest, COMPRESSION_TYPE])  # remembered and shown, but batches stay as they were sent
    return Configuration(settings, tuple(rest))


def from_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """Pick the settings out of an environment: `RIVERLOG_NUM_PARTITIONS` is `num.partitions`."""
    return {
        variable.removeprefix(VARIABLE_PREFIX).lower().replace("_", "."): text
        for variable, text in environment.items()
        if variable.startswith(VARIABLE_PREFIX)
        and variable not in CLIENT_VARIABLES
        and not _OF_KUBERNETES.fullmatch(variable)
        and not (variable.endswith("_PORT") and "://" in text)  # as Kubernetes sets RIVERLOG_PORT
    }


def _place_of_variable(name: str) -> str:
    return f"{VARIABLE_PREFIX}{name.upper().replace('.', '_')} in the environment"


def _see(names: Iterable[str], places: Mapping[str, str]) -> str:
    """Return where these names stand, as a sentence behind another; nothing for flags: who typed them sees them."""
    found = [places[name] for name in names if name in places]
    return f" See {', '.join(found)}." if found else ""


def _refused_with(sentence: str, static: Mapping[str, str]) -> list[str]:
    """Return the setting that cannot be read, for which this was said."""
    for name, text in static.items():
        setting, node_name = NODE_SETTINGS[name]
        try:
            setting.read(text, name=node_name)
        except BadSetting as error:
            if str(error) == sentence:
                return [name]
    return []


def node_settings(layers: SettingLayers) -> NodeSettings:
    """Read every setting of a node from its layers; BadSetting at the first that cannot be read."""
    return NodeSettings(**_read_all(NodeSettings, {}, layers), layers=layers)


def with_dynamic(settings: NodeSettings, *, node: Mapping[str, str], cluster: Mapping[str, str]) -> NodeSettings:
    """Lay what was set while the node ran over what it was started with."""
    return node_settings(replace(settings.layers, node=node, cluster=cluster))


def topic_config(overrides: Mapping[str, str], layers: SettingLayers) -> TopicConfig:
    """Read every setting of a topic: its own, else the node's, else the default."""
    return TopicConfig(**_read_all(TopicConfig, overrides, layers))


def check_topic(overrides: Mapping[str, str], layers: SettingLayers) -> None:
    """Check the settings wanted for a topic; BadSetting says what cannot be."""
    for name, text in overrides.items():
        setting = TOPIC_SETTINGS.get(name)
        if setting is not None:
            setting.read(text)
        elif name not in TOPIC_SETTINGS_WITHOUT_MEANING:
            raise BadSetting(_unknown_to_topics(name))
    config = topic_config(overrides, layers)
    if config.max_compaction_lag_ms < config.min_compaction_lag_ms:
        raise BadSetting(
            f"max.compaction.lag.ms ({config.max_compaction_lag_ms}) cannot be less than "
            f"min.compaction.lag.ms ({config.min_compaction_lag_ms})."
        )


def check_group(overrides: Mapping[str, str], layers: SettingLayers) -> None:
    """Check the settings wanted for a group; BadSetting says what cannot be."""
    for name, text in overrides.items():
        if name not in GROUP_SETTINGS:
            raise BadSetting(_unknown_to_groups(name))
        GROUP_SETTINGS[name].read(text)
    check_group_times(group_config(overrides, node_settings(layers)))


def check_node(overrides: Mapping[str, str]) -> None:
    """Check the settings wanted for nodes while they run; BadSetting says what cannot be."""
    for name, text in overrides.items():
        row = NODE_SETTINGS.get(name)
        if row is None:
            if (objection := _objection(name, text)) is not None:
                raise BadSetting(objection)
            continue
        setting, node_name = row
        if not can_change(setting, node_name):
            raise BadSetting(f"{name} cannot change while a node runs; set it in its configuration and restart it.")
        setting.read(text, name=node_name)


def can_change(setting: Setting, name: NodeSettingName) -> bool:
    """Return whether a node's setting under this name can change at run time; only the finest unit can."""
    return setting.dynamic and name == setting.node_names[0]


def describe_topic(
    overrides: Mapping[str, str], layers: SettingLayers, *, replication_factor: int
) -> list[SettingDescription]:
    """Describe every setting of a topic, and those of Kafka's that were set though they mean nothing here."""
    described = [
        _describe(setting, setting.name, overrides, layers, read_only=False) for setting in TOPIC_SETTINGS.values()
    ]
    foreign = ((name, text, SettingSource.TOPIC) for name, text in overrides.items() if name not in TOPIC_SETTINGS)
    return [_capped(each, replication_factor) for each in described] + [_without_meaning(*each) for each in foreign]


def describe_group(overrides: Mapping[str, str], layers: SettingLayers) -> list[SettingDescription]:
    """Describe every setting that a group may have of its own."""
    return [
        _describe(setting, setting.name, overrides, layers, read_only=False, own=SettingSource.GROUP)
        for setting in GROUP_SETTINGS.values()
    ]


def _capped(described: SettingDescription, replication_factor: int) -> SettingDescription:
    """Show what holds: a topic with fewer replicas than min.insync.replicas needs all it has. Tools that warn of
    topics below their minimum compare this value with the replicas that are in sync."""
    if described.name != "min.insync.replicas" or described.source is SettingSource.TOPIC:
        return described
    return replace(described, text=str(min(int(described.text), replication_factor)))


def describe_node(layers: SettingLayers) -> list[SettingDescription]:
    """Describe every setting of a node, those for all its topics under the node's names for them."""
    described = []
    for setting, name in NODE_SETTINGS.values():
        # A synonym in another unit is a name of its own: log.retention.hours does not show log.retention.ms.
        names = tuple(each for each in setting.node_names if each == name or (name == setting.node_names[0]))
        row = replace(setting, node_names=names)
        described.append(_describe(row, name.name, {}, layers, read_only=not can_change(setting, name)))
    return described


def unknown_name(name: str, known: Iterable[str]) -> str:
    """Build the error for a setting that does not exist, with the one that was perhaps meant."""
    nearest = get_close_matches(name, list(known), n=1, cutoff=0.6)
    hint = f"; did you mean {nearest[0]}?" if nearest else "."
    return f"There is no setting {name}{hint}"


def _objection(name: str, text: str) -> str | None:
    """Return why a node cannot be given a setting that it does not use; None where that does no harm."""
    known = name
    if name.startswith(_LISTENER_PREFIX):  # listener.name.internal.scram-sha-256.sasl.jaas.config
        of_listener = name.removeprefix(_LISTENER_PREFIX).partition(".")[2]
        known = of_listener if of_listener in _KNOWN_FROM_KAFKA else of_listener.partition(".")[2]
    unsupported = UNSUPPORTED_NODE_SETTINGS.get(known)
    if unsupported is not None and unsupported.asks(text):
        return f"{name} asks for {unsupported.feature}, which a node does not support yet; remove it to do without."
    return None if known in _KNOWN_FROM_KAFKA else _unknown_to_nodes(name)


def _unknown_to_nodes(name: str) -> str:
    if name in TOPIC_SETTINGS:
        return (
            f"{name} is a setting of topics; for all topics of a node it is {TOPIC_SETTINGS[name].node_names[0].name}."
        )
    return unknown_name(name, NODE_SETTINGS)


def _unknown_to_topics(name: str) -> str:
    if name in NODE_SETTINGS and (setting := NODE_SETTINGS[name][0]).name in TOPIC_SETTINGS:
        return f"{name} is a setting of nodes; for one topic it is {setting.name}."
    return unknown_name(name, TOPIC_SETTINGS)


def _unknown_to_groups(name: str) -> str:
    if name.removeprefix("group.") in GROUP_SETTINGS:
        return f"{name} is a setting of nodes; for one group it is {name.removeprefix('group.')}."
    return unknown_name(name, GROUP_SETTINGS)


def _read_all(
    config: type[TopicConfig] | type[NodeSettings], overrides: Mapping[str, str], layers: SettingLayers
) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for each in fields(config):
        if not each.metadata:
            continue
        setting: Setting = each.metadata["setting"]
        values[each.name] = each.metadata["read"](_strongest(setting, overrides, layers))
    return values


def _strongest(setting: Setting, overrides: Mapping[str, str], layers: SettingLayers) -> Value:
    text = overrides.get(setting.name)
    if text is not None:
        return setting.read(text)
    for layer in (layers.node, layers.cluster, layers.static, layers.profile):
        for name in setting.node_names:
            if name.name in layer:
                return setting.read(layer[name.name], name=name)
    return setting.read(setting.default)


def _describe(
    setting: Setting,
    name: str,
    overrides: Mapping[str, str],
    layers: SettingLayers,
    *,
    read_only: bool,
    own: SettingSource = SettingSource.TOPIC,
) -> SettingDescription:
    synonyms = [SettingSynonym(setting.name, overrides[setting.name], own)] if setting.name in overrides else []
    for source, layer in (
        (SettingSource.NODE, layers.node),
        (SettingSource.CLUSTER, layers.cluster),
        (SettingSource.STATIC, layers.static),
    ):
        synonyms += [
            SettingSynonym(each.name, layer[each.name], source) for each in setting.node_names if each.name in layer
        ]
    synonyms.append(_default(setting, layers))
    winner = synonyms[0]
    text = winner.text
    if winner.name != name:
        node_name = next(each for each in setting.node_names if each.name == winner.name)
        text = _in_own_unit(setting, winner.text, node_name)
    return SettingDescription(setting, name, text, winner.source, tuple(synonyms), read_only)


def _default(setting: Setting, layers: SettingLayers) -> SettingSynonym:
    for each in setting.node_names:
        if each.name in layers.profile:
            return SettingSynonym(each.name, layers.profile[each.name], SettingSource.DEFAULT)
    if not setting.node_names:
        return SettingSynonym(setting.name, setting.default, SettingSource.DEFAULT)
    # As in Kafka, the default is that of the coarsest unit: log.retention.hours=168.
    last = setting.node_names[-1]
    text = setting.default if last.factor == 1 else str(int(setting.default) // last.factor)
    return SettingSynonym(last.name, text, SettingSource.DEFAULT)


def _in_own_unit(setting: Setting, text: str, name: NodeSettingName) -> str:
    return text if name.factor == 1 else str(setting.read(text, name=name))


def _without_meaning(name: str, text: str, source: SettingSource) -> SettingDescription:
    setting = Setting(name=name, kind=SettingType.STRING, default="", doc=NO_MEANING)
    return SettingDescription(setting, name, text, source, (SettingSynonym(name, text, source),), read_only=False)


def _check_listeners(settings: NodeSettings) -> None:
    """Check what no single setting can know: protocols, roles, and that every advertised listener exists."""
    protocols = dict(pair.upper().partition(":")[::2] for pair in settings.listener_security_protocol_map)
    listening = client_listeners(settings)
    if settings.is_broker and not listening:
        raise BadSetting("listeners names no address for clients; write PLAINTEXT://host:port.")
    _check_roles(settings)
    for endpoint in (*listening, *controller_listeners(settings)):
        default = "PLAINTEXT" if endpoint.listener in settings.controller_listener_names else endpoint.listener
        protocol = protocols.get(endpoint.listener, default)
        if protocol != "PLAINTEXT":
            raise BadSetting(
                f"The listener {endpoint} speaks {protocol}, which this node cannot; use PLAINTEXT, or map the "
                f"name in listener.security.protocol.map."
            )
    names = {endpoint.listener for endpoint in settings.listeners}
    for endpoint in settings.advertised_listeners:
        if endpoint.listener not in names and endpoint.listener not in settings.controller_listener_names:
            raise BadSetting(f"advertised.listeners has {endpoint}, but listeners has no {endpoint.listener}.")
        if endpoint.host in ("", "0.0.0.0", "::"):
            raise BadSetting(
                f"advertised.listeners has {endpoint}: clients cannot connect to that; give a name they can reach."
            )


def _check_roles(settings: NodeSettings) -> None:
    knows_others = settings.controller_quorum_bootstrap_servers or settings.controller_quorum_voters
    if not settings.is_controller:
        if not knows_others:
            raise BadSetting(
                "A node with process.roles=broker must know controllers; name some in "
                "controller.quorum.bootstrap.servers."
            )
        for endpoint in controller_listeners(settings):
            raise BadSetting(f"{endpoint} is for controllers, and process.roles says that this node is none.")
    if not settings.is_broker:
        for endpoint in client_listeners(settings):
            raise BadSetting(
                f"{endpoint} is for clients, and process.roles says that this node is no broker; name the listener in "
                "controller.listener.names."
            )
    if (knows_others or not settings.is_broker) and not settings.controller_listener_names:
        raise BadSetting(
            "controller.listener.names must name the listener of the controllers, as in "
            "controller.listener.names=CONTROLLER."
        )
    if settings.is_controller and (knows_others or not settings.is_broker) and not controller_listeners(settings):
        raise BadSetting(
            f"listeners has no {settings.controller_listener_names[0]}, on which other controllers reach this one."
        )
    for endpoint in controller_listeners(settings):
        if endpoint.port == 0:
            raise BadSetting(f"{endpoint} needs a port: others find a controller by its address.")
    voters = settings.controller_quorum_voters
    if settings.is_controller and voters and settings.node_id not in {voter.id for voter in voters}:
        raise BadSetting(f"controller.quorum.voters does not name this node, which is {settings.node_id}.")
    if not settings.is_controller and settings.node_id in {voter.id for voter in voters}:
        raise BadSetting(
            f"controller.quorum.voters names node {settings.node_id}, and this broker has that id; give it another "
            "node.id: it would count as the voter."
        )


def client_listeners(settings: NodeSettings) -> tuple[Endpoint, ...]:
    """Return the listeners that are for clients."""
    return tuple(each for each in settings.listeners if each.listener not in settings.controller_listener_names)


def controller_listeners(settings: NodeSettings) -> tuple[Endpoint, ...]:
    """Return the listeners that are for controllers, the one on which they reach each other first."""
    names = settings.controller_listener_names
    found = [each for each in settings.listeners if each.listener in names]
    return tuple(sorted(found, key=lambda each: names.index(each.listener)))
