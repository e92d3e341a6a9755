"""Where a cluster is reached, as people write it: `broker-1:9092,broker-2:9092`."""

from collections.abc import Sequence
from typing import Final

from riverlog.model.ids import Address

DEFAULT_PORT: Final = 9092


def parse_addresses(bootstrap: str | Sequence[str]) -> tuple[Address, ...]:
    """Read `host:port,host:port`, or a sequence of `host:port`; the port may be left out, IPv6 stands in brackets."""
    parts = bootstrap.split(",") if isinstance(bootstrap, str) else list(bootstrap)
    addresses = tuple(_parse_address(part.strip()) for part in parts if part.strip())
    if not addresses:
        raise ValueError('no bootstrap address was given; write "host:port", for example "127.0.0.1:9092"')
    return addresses


def _parse_address(text: str) -> Address:
    if "://" in text:
        scheme, _, rest = text.partition("://")
        raise ValueError(f'{text!r} is no bootstrap address; write "{rest or "host:port"}", without {scheme}://')
    host, colon, port = text.rpartition(":")
    if not colon or text.endswith("]") or (":" in host and not host.startswith("[")):
        host, port = text, str(DEFAULT_PORT)
    if not host or not port.isdecimal() or not 0 < int(port) < 65_536:
        raise ValueError(f'{text!r} is no bootstrap address; write "host:port", for example "127.0.0.1:9092"')
    return Address(host.strip("[]"), int(port))
