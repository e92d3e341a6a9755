"""Bounds of transactions: how much, how long or how often, and what happens beyond."""

from typing import Final

TRANSACTIONAL_ID_DONE_MS: Final = 900_000
"""How long a transactional id is remembered whose owner has said that nothing follows; it may ask again until then."""

TRANSACTIONAL_IDS_EXPIRED_PER_TURN_MAX: Final = 10_000
"""Transactional ids that a coordinator looks at in one turn when it looks for idle ones; the next turn goes on."""

TRANSACTIONAL_FACTS_FORGOTTEN_PER_TURN_MAX: Final = 1_000
"""Ids and members of theirs that it forgets in one turn, about."""

TRANSACTION_END_WAIT_MS: Final = 500
"""How long a request for a transactional id whose transaction is ending waits for that; then it is to try again."""

WAITING_PER_TRANSACTIONAL_ID_MAX: Final = 100
"""Requests for one transactional id that wait for the end of its transaction; further ones are told to try again."""

VERIFICATION_PATIENCE_SECONDS: Final = 0.1
"""How long the first batch of a transaction waits for the one before it to end; then the client tries again."""

TRANSACTION_ABORT_RETRY_MS: Final = 1_000
"""How soon a transaction is aborted again whose time is up and whose end could not be written."""

TRANSACTION_END_BYTES_MAX: Final = 1_024
"""How much larger the record of a transaction may become when it ends: it names more ids, and no more partitions."""

TRANSACTION_PARTITIONS_WRITTEN_MAX: Final = 256
"""Sets of partitions whose bytes in the log of transactional ids are remembered: most transactions have the same as
the one before."""
