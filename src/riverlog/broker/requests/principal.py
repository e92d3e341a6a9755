"""Who asks, as brokers write it into an Envelope for the controller: Kafka's own form of its principals."""

import struct
from ipaddress import ip_address
from struct import Struct
from typing import Final

from riverlog.model.access import Principal
from riverlog.wire.codec import MalformedMessage, decode, encode
from riverlog.wire.types import boolean, record, string

_VERSION: Final = Struct(">h")
_USER: Final = "User"


class BadPrincipal(ValueError):
    """Bytes that name nobody."""


@record(flexible_since=0)
class PrincipalData:
    """A principal's kind and name."""

    type: str = string()
    name: str = string()
    token_authenticated: bool = boolean()


def encode_principal(principal: Principal) -> tuple[bytes, bytes]:
    """Return the principal, and the raw address from which it asks."""
    data = PrincipalData(type=_USER, name=principal.name, token_authenticated=False)
    return _VERSION.pack(0) + encode(data, 0), _address_of(principal.host)


def decode_principal(data: bytes | None, address: bytes) -> Principal:
    """Read who asks; BadPrincipal where nobody is named."""
    try:
        (version,) = _VERSION.unpack_from(data or b"")
        if version != 0:
            raise BadPrincipal(f"version {version} of a principal is not known")
        found, _ = decode(PrincipalData, 0, memoryview(data or b"")[_VERSION.size :])
        return Principal(found.name, str(ip_address(bytes(address))))
    except (MalformedMessage, struct.error, ValueError) as error:
        raise BadPrincipal(str(error)) from None


def _address_of(host: str) -> bytes:
    """Return the bytes of an address; those of no address where the host is a name."""
    try:
        return ip_address(host.partition("%")[0]).packed
    except ValueError:
        return bytes(4)
