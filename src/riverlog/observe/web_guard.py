"""Keeps web pages out of the node's HTTP ports: a browser on the developer's machine reaches them, and anybody may
have written the page that it shows.

Three looks at the head of a request, none of which a page can get around. `Host` names this node, and not a name that
somebody else's DNS made point here (rebinding). `Origin` and `Sec-Fetch-Site`, which browsers add and pages cannot
change, name no other site. And a route that changes something asks for a header of ours (`CALL_HEADER`): a page may add
one only after a preflight, which is never answered. Who is no browser is not held up: this is no access control.
"""

import ipaddress
import socket
from collections.abc import Iterable
from typing import Final

CALL_HEADER: Final = "Riverlog-Call"
"""Calls that change something have it, with any value: no web page can send it to another site."""

_CALL_HEADER: Final = CALL_HEADER.lower().encode("ascii")
_LOCAL_NAMES: Final = ("localhost", "*.localhost")
_OWN_SITES: Final = (b"none", b"same-origin")
_SHOWN_CHARACTERS_MAX: Final = 100
_EVERY_NAME: Final = "*"


class WebGuard:
    """Looks at the heads of requests to one port."""

    def __init__(self, names: Iterable[str] = ()) -> None:
        """Hold the names of this node: `node.example.org`, `*.example.org` or `*`; loopback is always one."""
        entries = {name.strip().lower().rstrip(".") for name in (*_LOCAL_NAMES, *names)}
        self._every = _EVERY_NAME in entries
        self._names = frozenset(entry for entry in entries if entry and not entry.startswith("*"))
        self._suffixes = tuple(entry[1:] for entry in entries if entry.startswith("*."))

    def refusal(self, headers: Iterable[tuple[bytes, bytes]]) -> str | None:
        """Return why a web page may have sent this, in a sentence; None where none has. Names are in lower case."""
        hosts: list[bytes] = []
        origins: list[bytes] = []
        for name, value in headers:
            if name == b"host":
                hosts.append(value)
            elif name == b"origin":
                origins.append(value)
            elif name == b"sec-fetch-site" and value.strip().lower() not in _OWN_SITES:
                return "a web page of another site sent this request, and such requests are not taken"
        if len(hosts) > 1:
            return "the request has more than one Host"
        if hosts and not self._knows(hosts[0]):
            return (
                f"this node is not known by the name {_shown(hosts[0])}; if that is its name, add it to the setting "
                "http.allowed.hosts"
            )
        own = b"http://" + hosts[0].strip().lower() if hosts else b""
        if any(origin.strip().lower() != own for origin in origins):
            return f"a web page of {_shown(origins[0])} sent this request, and such requests are not taken"
        return None

    def _knows(self, host: bytes) -> bool:
        """Return whether a Host is this node. An address is: no DNS decides where it leads."""
        name = _name_in(host)
        if name is None:
            return False
        if self._every or name in self._names or name.endswith(self._suffixes):
            return True
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return False
        return True


def is_call(headers: Iterable[tuple[bytes, bytes]]) -> bool:
    """Return whether a request has the header that only our own clients send."""
    return any(name == _CALL_HEADER for name, _ in headers)


def names_of_node(hosts: Iterable[str], allowed: Iterable[str]) -> list[str]:
    """Name a node as its clients may: by where it listens, by what it advertises, by its machine, by the setting."""
    machine = socket.gethostname()
    return [*hosts, machine, machine.partition(".")[0], *allowed]


def _name_in(host: bytes) -> str | None:
    """Return the name or address in a Host without its port; None where there is none."""
    try:
        text = host.decode("ascii").strip().lower()
    except UnicodeDecodeError:
        return None
    if text.startswith("["):
        name, bracket, port = text[1:].partition("]")
        if not bracket or (port and not port.startswith(":")):
            return None
        port = port[1:]
    else:
        name, _, port = text.partition(":")
    if port and not port.isdigit():
        return None
    return name.rstrip(".") or None


def _shown(value: bytes) -> str:
    text = value[:_SHOWN_CHARACTERS_MAX].decode("ascii", "replace")
    return "".join(each if each.isprintable() else "?" for each in text)
