"""Bounds that several rooms share, and are no settings: how much, how long or how often, and what happens beyond."""

from typing import Final

RECEIVE_BUFFER_BYTES_MIN: Final = 8 * 1024
"""A connection's buffer at rest; all that it costs while it has nothing to say."""

RECEIVE_BUFFER_BYTES: Final = 64 * 1024
"""The buffer of a busy connection. It grows with the bytes that arrive, never with the length that was claimed."""

UNSENT_BYTES_PER_CONNECTION_MAX: Final = 1024 * 1024
"""A connection whose peer has not taken this many bytes of answers is not read from until it has."""

SENDFILE_BYTES_MIN: Final = 128 * 1024
"""Ranges of files from this size on are sent by the system without copying; smaller ones are read and sent."""

PRODUCER_BATCHES_REMEMBERED: Final = 5
"""Batches per producer and partition that a retry may repeat; Kafka's clients keep at most five in flight."""

DECOMPRESSED_BYTES_MAX: Final = 128 * 1024 * 1024
"""What one compressed batch may unfold to; a larger one is refused, not unfolded."""

LOOKED_INTO_RECORDS_MAX: Final = 150_000
"""Records of a compressed batch that the node looks through while everybody waits."""

DESCRIPTORS_ASSUMED: Final = 1024 * 1024
"""Open files and sockets of a process whose limit nobody has looked up."""

DESCRIPTORS_RESERVED_MIN: Final = 64
"""Descriptors that neither connections nor segments may have, besides an eighth of all: for listeners, locks, metrics,
pipes to other processes, and files that are open for a moment."""

DESCRIPTORS_RESERVED_MAX: Final = 1_024
"""The most that are kept so."""

DESCRIPTORS_PLENTY: Final = 4_096
"""A process that may have fewer descriptors is worth a line in the log."""

COMMANDS_IN_FLIGHT_MAX: Final = 100_000
"""Commands whose records a machine's log has not committed; each belongs to a connection that waits, so more
means that connections are not bounded."""

RECORDS_REPLAYED_PER_TURN: Final = 500
"""Records of its log that a machine reads at a stretch while the node serves others: some milliseconds."""

PRODUCERS_PER_PARTITION_MAX: Final = 100_000
"""Producer ids remembered per partition; beyond it those not heard of for longest are forgotten."""

HTTP_IDLE_SECONDS_MAX: Final = 120.0
"""How long a connection to the metrics door may rest between two requests; scrapers come every minute or sooner."""

RESPONSE_BYTES_MAX: Final = 256 * 1024 * 1024
"""The longest answer our client takes; a broker that announces more is not spoken to any further."""

REPLICAS_MAX: Final = 1
"""Replicas that a partition may have until brokers fetch from each other; with that, this limit goes."""

PARTITIONS_PER_REQUEST_MAX: Final = 10_000
"""Partitions that one request may create; they are one batch of the metadata log. More are refused."""

MEMBERS_PER_BATCH_MAX: Final = 1_024
"""Attempts of tasks that join one batch of a shared transaction, and ids of its pool; further ones are refused."""

INCARNATIONS_REMEMBERED_MAX: Final = 16
"""Incarnations of a pipeline whose last committed batch is remembered; the least recently used is forgotten."""

INCARNATION_LENGTH_MAX: Final = 256
"""Characters in the name of an incarnation; longer ones are refused."""

CHECKPOINT_CONNECTIONS_MAX: Final = 2_048
"""Connections to the checkpoint store at a time; one more is answered 503."""
