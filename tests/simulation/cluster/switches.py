"""The rules of whole nodes in a cluster, each of which can be switched off: the simulated cluster must notice."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final
from unittest import mock

from riverlog.controller.channel import ControllerChannel
from riverlog.controller.controller import Controller
from riverlog.controller.log import MetadataLog
from riverlog.controller.quorum import MetadataQuorum
from riverlog.metadata.broker_lifecycle import BrokerLifecycle
from riverlog.metadata.image import BrokerImage
from riverlog.partitions import partition
from riverlog.raft.quorum_state import encode_election
from tests.simulation.cluster.plan import draw_plan
from tests.simulation.cluster.run import ClusterRun
from tests.simulation.cluster.scenarios import late_heartbeat, lost_answer

SEEDS: Final = 60
POWER: Final = ("power everywhere", "power", "slow disk")
KILLS: Final = ("active controller", "kill", "cut off", "reset", "slow link")


@dataclass(frozen=True)
class Switch:
    """A rule that can be switched off, and what finds that out."""

    name: str
    off: Callable[[], AbstractContextManager[Any]]
    faults: tuple[str, ...] = KILLS
    scenario: Callable[[int], list[str]] | None = None


def noticed(switch: Switch, seeds: int = SEEDS) -> str | None:
    """Switch the rule off until something fails; say what, or None."""
    with switch.off():
        for seed in range(seeds):
            if switch.scenario is not None:
                violations = switch.scenario(seed)
            else:
                violations = ClusterRun(draw_plan(seed, only=switch.faults)).run().violations
            if violations:
                return f"seed {seed}: {violations[0]}"
    return None


def _patched(owner: Any, name: str, value: Any) -> Callable[[], AbstractContextManager[Any]]:
    return lambda: mock.patch.object(owner, name, value)


def _save_beside(self: MetadataQuorum, effect: Any) -> None:
    """Write the vote, and go on before it is written."""
    if self._starting:
        return _SAVE(self, effect)
    content = encode_election(effect.election, kraft_version=effect.kraft_version, voters=self.voters.ids)
    return self._task(_do_later(self, partial(self._save_vote, content)))


async def _do_later(quorum: MetadataQuorum, work: Callable[[], None]) -> None:
    await quorum._workers.run(lambda: None)
    await quorum._workers.run(lambda: None)
    await quorum._workers.run(work)


def _flush_later(self: MetadataQuorum) -> None:
    """Say that all is flushed before it is."""
    log, generation = self.storage.log, self._raft.replica.log.generation
    plan = log.pending_sync()
    if self._starting:
        plan.run()
    else:
        self._task(_do_later(self, plan.run))
    log.synced(plan)
    self._flushed(plan.upto, generation)


def _look_without_loading(self: Controller) -> None:
    """Begin to decide as soon as this node leads, whatever is loaded."""
    if self._runner is None and self.quorum.leads and not self._closing:
        self._lead()
    _LOOK(self)


_SAVE: Final = MetadataQuorum._save
_LOOK: Final = Controller._look
_ASK: Final = ControllerChannel.ask
_HEARTBEAT: Final = BrokerLifecycle.heartbeat


async def _ask_again(self: ControllerChannel, message: object, lane: Any, *, repeatable: bool, **more: Any) -> Any:
    """Send again what may have been carried out."""
    return await _ASK(self, message, lane, repeatable=True, **more)


def _believe(self: BrokerLifecycle, command: Any, now: Any) -> Any:
    """Take every broker for one that has caught up."""
    return _HEARTBEAT(self, replace(command, current_metadata_offset=1 << 60), now)


def _whatever_epoch(self: BrokerLifecycle, node_id: Any, _epoch: int) -> BrokerImage | None:
    return self._image().brokers.get(node_id)


@contextmanager
def _answers_before_the_commit() -> Iterator[None]:
    """Let what was decided be said before it is committed."""
    append = MetadataLog.append

    def at_once(self: MetadataLog, records: Any) -> Any:
        committed = append(self, records)
        if not committed.done():
            self.resolved_end = self.next_offset
            committed.set_result(None)
        return committed

    with mock.patch.object(MetadataLog, "append", at_once):
        yield


SWITCHES: Final = (
    Switch("an epoch is on the medium before anything is said in it", _patched(MetadataQuorum, "_save", _save_beside)),
    Switch("what counts as flushed is", _patched(MetadataQuorum, "_flush", _flush_later), POWER),
    Switch(
        "a controller decides on a view that is complete",
        _patched(Controller, "_look", _look_without_loading),
        ("kill", "power everywhere"),
    ),
    Switch("what was decided is said when it is committed", _answers_before_the_commit),
    Switch(
        "what may have been carried out is not sent again",
        _patched(ControllerChannel, "ask", _ask_again),
        scenario=lost_answer,
    ),
    Switch("a broker is let in when it has caught up", _patched(BrokerLifecycle, "heartbeat", _believe)),
    Switch(
        "a broker's earlier process is not listened to",
        _patched(BrokerLifecycle, "_current", _whatever_epoch),
        scenario=late_heartbeat,
    ),
    Switch(
        "a broker that is fenced or stops is given nothing to lead",
        _patched(BrokerImage, "is_active", property(lambda _self: True)),
        ("stop", "kill", "power"),
    ),
    Switch(
        "a record is on the medium before it is acknowledged",
        _patched(partition, "_commits_by_writing", lambda _config: True),
        POWER,
    ),
)
