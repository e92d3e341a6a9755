"""Bounds of groups: how much, how long or how often, and what happens beyond."""

from typing import Final

ASSIGNMENT_ROUNDS_MAX: Final = 16
"""How often the topics of a group whose members subscribe differently are evened out; each round about halves what is
uneven, and what is left after the last stays."""

TOPIC_PATTERN_CHARACTERS_MAX: Final = 4096
"""Characters of a regular expression for topics; a longer one is refused."""

TOPIC_PATTERN_INSTRUCTIONS_MAX: Final = 5000
"""Instructions that a regular expression for topics compiles to; matching a name costs as much per character. A list of
names has one per character; a pattern with more than this is refused."""

TOPIC_PATTERNS_COMPILED_MAX: Final = 256
"""Compiled patterns kept; beyond it the one not used for longest is compiled again when needed."""

NEW_MEMBER_JOIN_MS_MAX: Final = 5 * 60_000
"""How long the first Join of a new member may wait; it cannot send heartbeats yet, and one that is gone would stay."""

HANDED_OUT_MEMBER_IDS_MAX: Final = 10_000
"""Newcomers of one group that were given an id to join with and have not; for one more the group counts as full."""

JOIN_EXTENSION_MS_MIN: Final = 1_000
"""How long a rebalance goes on waiting, at least, when none of its members has come back."""

ASKS_REMEMBERED_MAX: Final = 1_000
"""Questions for coordinators that one of them remembers; of more, only the newest."""

ASKS_REMEMBERED_MS: Final = 1_000
"""How long somebody who asked for a group's coordinator is taken for a member to come."""

ASKED_TOGETHER_MS: Final = 40
"""Questions this close to each other come from different members; librdkafka repeats its own after 50 ms."""

EXPECTED_MEMBERS_WAIT_MS: Final = 150
"""How long the first members of a group wait for others that asked for its coordinator; longer while some come."""

STRAGGLERS_WAIT_MS: Final = 30
"""How long they wait for one more when as many came as were expected."""

EXPECTED_MEMBERS_WAIT_MS_MAX: Final = 2_000
"""How long they wait at most."""

HURRIED_HEARTBEAT_MS: Final = 500
"""How soon members of a consumer group send heartbeats while partitions move. librdkafka takes it for how long it waits
for an answer, too, so it must be longer than the way around the world, and than a burst of commits may take."""

WAITING_HEARTBEAT_MS: Final = 300
"""The same for members that have nothing to read, and so nothing that holds up an answer."""

HURRIED_HEARTBEATS_MAX: Final = 10
"""So many times in a row a member is hurried; one that has not settled then may be too slow for it."""

UNHURRIED_HEARTBEAT_MS: Final = 1_000
"""How soon members send heartbeats that were hurried for long enough, while their group has not settled."""

HURRIED_HEARTBEATS_PER_SECOND_MAX: Final = 500
"""Heartbeats that one consumer group sends while partitions move: the more members, the less often each."""

FACTS_PER_WAKE_MAX: Final = 100
"""Facts after which a coordinator lets no more time run out in one turn; the next turn goes on."""

OFFSETS_EXPIRED_PER_TURN_MAX: Final = 10_000
"""Committed offsets that a coordinator looks at in one turn when it looks for expired ones; the next turn goes on."""

OFFSETS_FORGOTTEN_PER_TURN_MAX: Final = 1_000
"""Committed offsets that a coordinator forgets in one turn, be they expired or of a deleted topic: some ten
milliseconds; the next turn goes on."""

OFFSET_BYTES_FORGOTTEN_PER_TURN_MAX: Final = 384 * 1024
"""Bytes of groups' names in them, since each offset names its group: a batch has to fit into the smallest segment."""

MEMBER_NAME_CHARACTERS_MAX: Final = 1_000
"""Characters of a client's name that its member id begins with: the whole must fit into every version and record."""
