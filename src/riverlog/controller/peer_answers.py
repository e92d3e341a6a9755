"""What other controllers said last, in words: for the person who waits until a leader is found."""

from collections.abc import Iterable
from typing import Final

from riverlog.controller.limits import PEER_ANSWERS_MAX
from riverlog.controller.quorum_ports import ForeignCluster, NoResponse
from riverlog.model.ids import Address
from riverlog.raft.messages import Leadership

_FOREIGN: Final = "belongs to another cluster"


class PeerAnswers:
    """The last answer of each controller that was asked, by its address."""

    def __init__(self) -> None:
        self._by_address: dict[Address, str] = {}

    def note_silence(self, address: Address, reason: NoResponse) -> None:
        """Note why there was no answer that can be used."""
        is_foreign = isinstance(reason, ForeignCluster)
        self._note(address, _FOREIGN if is_foreign else str(reason).removeprefix(f"{address}: ").rstrip("."))

    def note(self, address: Address, leadership: Leadership) -> None:
        """Note an answer."""
        if leadership.leader_id is not None:
            self._note(address, f"says that node {leadership.leader_id} leads in epoch {leadership.epoch}")
        else:
            self._note(address, f"knows no leader in epoch {leadership.epoch}")

    def are_foreign(self, addresses: Iterable[Address]) -> bool:
        """Return whether all of these are of another cluster; no where there are none."""
        said = [self._by_address.get(address) for address in addresses]
        return bool(said) and all(each == _FOREIGN for each in said)

    def __str__(self) -> str:
        return (
            "; ".join(f"{address}: {said}" for address, said in sorted(self._by_address.items())) or "nobody was asked"
        )

    def _note(self, address: Address, said: str) -> None:
        self._by_address.pop(address, None)
        while len(self._by_address) >= PEER_ANSWERS_MAX:
            del self._by_address[next(iter(self._by_address))]
        self._by_address[address] = said
