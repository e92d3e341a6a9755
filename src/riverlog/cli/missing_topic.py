"""A topic to write to that is not there: the cluster may create it at the first record, also where it was misspelt."""

import sys
from typing import TYPE_CHECKING, Final

from riverlog.cli.terminal.exits import CommandError, ExitCode
from riverlog.cli.terminal.suggestions import did_you_mean
from riverlog.model.errors import ErrorCode
from riverlog.model.internal_topics import COORDINATOR_TOPICS

if TYPE_CHECKING:
    from riverlog import Admin

AUTO_CREATION: Final = "auto.create.topics.enable"


async def announce_creation(admin: "Admin", topic: str) -> None:
    """Print a line where writing will create a topic; KafkaError where the topic is missing and stays so."""
    from riverlog import KafkaError

    try:
        await admin.describe_topics(topic)
    except KafkaError as error:
        if error.code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION or not await _creates_topics(admin):
            raise
        if topic in COORDINATOR_TOPICS:
            sentence = f"only the cluster itself writes to {topic}; choose another topic"
            raise CommandError(sentence, ExitCode.REFUSED) from error
        meant = did_you_mean(topic, [each.name for each in await admin.list_topics()])
        print(f"riverlog: there is no topic {topic}: the first record creates it{meant}", file=sys.stderr)


async def _creates_topics(admin: "Admin") -> bool:
    """Return whether the cluster creates topics that are written to; so it may be where nobody says."""
    from riverlog import KafkaError

    try:
        brokers = (await admin.describe_cluster()).brokers
        found = await admin.describe_configs(broker=brokers[0].node_id, names=[AUTO_CREATION])
    except KafkaError:
        return True  # not for everybody to know
    return AUTO_CREATION not in found or found[AUTO_CREATION].value != "false"
