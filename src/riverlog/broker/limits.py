"""Bounds of connections and requests: how much, how long or how often, and what happens beyond."""

from typing import Final

FRAME_BYTES_BEFORE_AUTHENTICATION_MAX: Final = 512 * 1024
"""A longer first frame closes the connection: nobody may ask for memory before saying who they are."""

REQUEST_MEMORY_RESERVE_PART: Final = 8
"""One part in so many of the request memory is kept for requests that others' answers wait for, and for small ones."""

PASSING_REQUEST_PART: Final = 64
"""A request of at most one part in so many of the pool passes larger ones that wait in line, where it fits."""

REQUEST_BYTES_PER_SECOND_MIN: Final = 64 * 1024
"""A request that keeps others waiting for memory must arrive this fast between two sweeps, or its line is closed."""

STALLED_FRAME_SECONDS: Final = 0.25
"""How often frames are looked at while others wait for their memory; one that comes too slowly gives back what it has
not filled."""

CONNECTION_WINDOW_BYTES_MIN: Final = 64 * 1024
"""The smallest window that a client is told, however short the node's memory is."""

ANSWERS_IN_FLIGHT_PER_CONNECTION_MAX: Final = 1_000
"""A connection with this many unanswered requests is not read from until some are answered."""

ROUTES_PER_CONNECTION_MAX: Final = 256
"""Partitions that a producing connection is known to write to; beyond it all are forgotten and learnt again."""

REPEATED_HEAD_BYTES_MAX: Final = 1024
"""A request whose batch begins later than this is taken apart anew each time."""

ANSWER_BYTES_PER_CONNECTION_MAX: Final = 4 * 1024 * 1024
"""Bytes of answers that wait behind others on a connection, with what waiting fetches may add; then no more is read."""

COPIED_BYTES_PER_ANSWER_MAX: Final = 1024 * 1024
"""Small ranges that one answer to a Fetch copies into memory; those behind them are sent from their files."""

ANSWERS_MEMORY_PART: Final = 4
"""When answers that were not taken are one part in so many of the request memory, a Fetch copies nothing."""

SEND_BYTES_PER_TURN_MAX: Final = 4 * 1024 * 1024
"""What one connection may send before the others get their turn."""

HANDLING_SECONDS_PER_TURN_MAX: Final = 0.02
"""How long the requests of one connection may take before the others get their turn; one that has begun is ended."""

CLOSING_SECONDS_MAX: Final = 2.0
"""How long answers still due may hold a connection whose peer has ended it, or a node that stops."""

OFFSETS_COMMITTED_AT_ONCE_MAX: Final = 3_000
"""Partitions whose offsets one request commits as one batch; of more, batch after batch."""

REQUEST_PORTION: Final = 400
"""Topics, partitions, groups and the like of one request that are dealt with at a stretch: some ten milliseconds."""

WALKED_BATCH_BYTES_MIN: Final = 64 * 1024
"""A batch beyond this is done at a stretch of its own where its records are looked through; a compressed one always."""

IDLE_SWEEP_SECONDS: Final = 5.0
"""How often the server looks for connections that have gone quiet; after that long they give back large buffers."""

ACCEPT_PAUSE_LINES_SECONDS: Final = 60.0
"""How often the log may say that no connection can be accepted."""

FETCH_WAIT_MS_MAX: Final = 5 * 60_000
"""How long a fetch may wait for records, whatever the client asks for."""

TOPICS_CREATED_PER_TURN_MAX: Final = 400
"""Topics of one request that the controller decides about at a stretch, and that are one batch of the metadata log."""

BATCH_MARKER_BYTES_MAX: Final = 1_024
"""Bytes that an owner may leave with a committed batch; more are refused."""

DAMAGED_PARTITIONS_NAMED_MAX: Final = 100
"""Damaged partitions that DescribeLogDirs names for each log directory; the log names all."""
