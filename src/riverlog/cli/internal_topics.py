"""The topics that a cluster keeps for itself: what is lost with each, and what each must be.

A cluster lets clients delete and change them as Kafka does, so commands ask for a word more before they do.
"""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

import click

from riverlog.cli.terminal.exits import CommandError, ExitCode
from riverlog.model.checkpoint_topic import CHECKPOINTS_PARTITIONS, CHECKPOINTS_TOPIC
from riverlog.model.internal_topics import INTERNAL_TOPICS, OFFSETS_TOPIC, TRANSACTIONS_TOPIC

if TYPE_CHECKING:
    from riverlog import Admin

internal_option: Final = click.option(
    "--internal", is_flag=True, help="Allow this for internal topics, which the cluster keeps for itself."
)

KEPT: Final[Mapping[str, str]] = {
    OFFSETS_TOPIC: "the committed offsets of all groups",
    TRANSACTIONS_TOPIC: "the state of all transactional ids",
    CHECKPOINTS_TOPIC: "the checkpoints of all pipelines",
}
"""What is in each of them; without it nobody goes on where they were."""
assert KEPT.keys() == INTERNAL_TOPICS

COMPACT: Final = "compact"


ON_DEMAND: Final = "with --internal it is done"
NODE_ONLY: Final = "only its node does that"
NEVER: Final = "clusters let no client do that"


async def check_internal(
    admin: "Admin", names: Iterable[str], *, internal: bool, undone: str, remedy: str = ON_DEMAND
) -> None:
    """Refuse to go on where a topic is internal, unless --internal says so; `undone` is what then was not done."""
    if internal:
        return
    wanted = set(names)
    for topic in await admin.list_topics(internal=True):
        if topic.name in wanted and topic.is_internal:
            kept = KEPT.get(topic.name, "what it needs itself")
            how = NODE_ONLY if topic.name == CHECKPOINTS_TOPIC and remedy == ON_DEMAND else remedy
            raise CommandError(
                f"{topic.name} is internal: the cluster keeps {kept} there. {undone}; {how}", ExitCode.REFUSED
            )


def unfit(name: str, partitions: int, cleanup_policy: str | None) -> str | None:
    """Return what is wrong with an internal topic as it is; None where nothing is, or where it is not known."""
    if name not in KEPT:
        return None
    if cleanup_policy is not None and cleanup_policy != COMPACT:
        return f"{name} has cleanup.policy={cleanup_policy or 'none'}, not {COMPACT}"
    if name == CHECKPOINTS_TOPIC and partitions != CHECKPOINTS_PARTITIONS:
        return f"{name} has {partitions} partitions, not {CHECKPOINTS_PARTITIONS}"
    return None
