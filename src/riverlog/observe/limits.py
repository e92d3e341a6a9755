"""Bounds of log lines and of the metrics server: how much, how long or how often, and what happens beyond."""

from typing import Final

LOG_FIELD_CHARACTERS_MAX: Final = 1_000
"""Characters of one field in a log line; what is longer is cut, because clients choose some of it."""

LOG_LINES_PER_EVENT_AND_SECOND_MAX: Final = 20
"""Log lines of the same event in one second; the rest are counted, and the next line names the count."""

LOG_EVENTS_COUNTED_MAX: Final = 1_000
"""Events whose lines are counted; beyond it, counting starts afresh."""

HTTP_REQUEST_BYTES_MAX: Final = 8 * 1024
"""The head of a request to the metrics door; a longer one is refused."""

HTTP_SECONDS_MAX: Final = 10.0
"""How long the metrics door waits for a request to be whole, or for its answer to be taken."""

HTTP_CONNECTIONS_MAX: Final = 32
"""Connections to the metrics door at once; further ones are closed unheard."""

BACKGROUND_PAUSE_SECONDS: Final = 1.0
"""How long background work rests after an unexpected exception, before it begins again."""

SCRAPED_PER_TURN: Final = 500
"""Partitions, groups or topics that a scrape looks at before others get their turn: a few milliseconds."""
