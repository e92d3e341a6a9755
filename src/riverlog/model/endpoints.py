"""Listener addresses as settings write them: `PLAINTEXT://broker-1:9092`."""

from typing import Final, NamedTuple

from riverlog.model.ids import Address
from riverlog.model.setting import BadSetting, Value

PORT_MAX: Final = 65_535


class Endpoint(NamedTuple):
    """A named listener and where it is. An empty host means every address of the machine."""

    listener: str
    host: str
    port: int

    @property
    def address(self) -> Address:
        return Address(self.host, self.port)

    def __str__(self) -> str:
        return f"{self.listener}://{self.address}"


def read_endpoints(value: Value) -> tuple[Endpoint, ...]:
    """Read a list of listeners; BadSetting names the one that cannot be understood."""
    assert isinstance(value, tuple)
    endpoints = tuple(_read_endpoint(text) for text in value)
    names = [endpoint.listener for endpoint in endpoints]
    for name in names:
        if names.count(name) > 1:
            raise BadSetting(f"Two listeners are called {name}; give each its own name.")
    return endpoints


def _read_endpoint(text: str) -> Endpoint:
    listener, separator, address = text.partition("://")
    host, colon, port = address.rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        raise BadSetting(f"The listener {text!r} has an IPv6 address without brackets; write [{host}]:{port}.")
    if not (listener and separator and colon and port.isascii() and port.isdigit() and int(port) <= PORT_MAX):
        raise BadSetting(f"The listener {text!r} cannot be understood; write NAME://host:port.")
    return Endpoint(listener.upper(), host, int(port))
