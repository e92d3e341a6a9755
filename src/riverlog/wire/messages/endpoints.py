"""What several messages between nodes have in common: where a node listens, and which features it knows."""

from riverlog.wire.types import int16, int32, string, struct, uint16


@struct
class NodeEndpoint:
    """Where a node is found, on the listener that was asked."""

    node_id: int = int32()
    host: str = string()
    port: int = uint16()


@struct
class ListenerEndpoint:
    """Where one listener of a controller is found."""

    name: str = string()
    host: str = string()
    port: int = uint16()


@struct
class RegisteredListener:
    """A listener of a node that registers."""

    name: str = string()
    host: str = string()
    port: int = uint16()
    security_protocol: int = int16()


@struct
class SupportedFeature:
    """The levels of a feature that a node that registers can work with."""

    name: str = string()
    min_supported_version: int = int16()
    max_supported_version: int = int16()
