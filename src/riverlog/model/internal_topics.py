"""The topics that a cluster keeps for itself; the one place that lists them."""

from typing import Final

from riverlog.model.checkpoint_topic import CHECKPOINTS_TOPIC

OFFSETS_TOPIC: Final = "__consumer_offsets"
TRANSACTIONS_TOPIC: Final = "__transaction_state"
COORDINATOR_TOPICS: Final = frozenset({OFFSETS_TOPIC, TRANSACTIONS_TOPIC})
"""Only coordinators write to these, and never a client."""

INTERNAL_TOPICS: Final = COORDINATOR_TOPICS | {CHECKPOINTS_TOPIC}
"""Topics that clients are told are internal, and that their patterns leave out."""

WAS_DELETED: Final = "It was deleted, and what was kept in it is lost."
"""How the refusal of an internal topic ends that somebody has deleted; tools find it there."""
