"""Every bound that is not a setting: what the node will hold, wait for or try, and what happens beyond it."""

from typing import Final

FRAME_BYTES_BEFORE_AUTHENTICATION_MAX: Final = 512 * 1024
"""A longer first frame closes the connection: nobody may ask for memory before saying who they are."""

RECEIVE_BUFFER_BYTES_MIN: Final = 8 * 1024
"""A connection's buffer at rest; all that it costs while it has nothing to say."""

RECEIVE_BUFFER_BYTES: Final = 64 * 1024
"""The buffer of a busy connection. It grows with the bytes that arrive, never with the length that was claimed."""

REQUEST_MEMORY_RESERVE_PART: Final = 8
"""One part in so many of the request memory is kept for requests that others' answers wait for, and for small ones."""

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

UNSENT_BYTES_PER_CONNECTION_MAX: Final = 1024 * 1024
"""A connection whose peer has not taken this many bytes of answers is not read from until it has."""

SEND_BYTES_PER_TURN_MAX: Final = 4 * 1024 * 1024
"""What one connection may send before the others get their turn."""

HANDLING_SECONDS_PER_TURN_MAX: Final = 0.02
"""How long the requests of one connection may take before the others get their turn; one that has begun is ended."""

GATHERED_BYTES_PER_LOG_MAX: Final = 256 * 1024
"""Batches of one turn that wait to be written to a log together; beyond it they are written before the turn ends."""

SENDFILE_BYTES_MIN: Final = 128 * 1024
"""Ranges of files from this size on are sent by the system without copying; smaller ones are read and sent."""

CLOSING_SECONDS_MAX: Final = 2.0
"""How long answers still due may hold a connection whose peer has ended it, or a node that stops."""

TOPIC_NAME_CHARACTERS_MAX: Final = 249
"""The longest topic name: with the partition number it must fit a file name."""

PRODUCER_BATCHES_REMEMBERED: Final = 5
"""Batches per producer and partition that a retry may repeat; Kafka's clients keep at most five in flight."""

DECOMPRESSED_BYTES_MAX: Final = 128 * 1024 * 1024
"""What one compressed batch may unfold to; a larger one is refused, not unfolded."""

UNFOLDED_BATCHES_MAX: Final = 32
"""How many times `max.message.bytes` a produced batch may unfold to where the broker must look at its records."""

LOOKED_INTO_BYTES_MAX: Final = 16 * 1024 * 1024
"""What a batch may unfold to when a record is looked for by its time; of a larger one the first is given."""

LOOKED_INTO_RECORDS_MAX: Final = 150_000
"""Records of a compressed batch that the node looks through while everybody waits."""

RECORD_ERRORS_MAX: Final = 1_000
"""Records of a refused batch that the answer names one by one."""

OFFSETS_COMMITTED_AT_ONCE_MAX: Final = 3_000
"""Partitions whose offsets one request commits as one batch; of more, batch after batch."""

REQUEST_PORTION: Final = 400
"""Topics, partitions, groups and the like of one request that are dealt with at a stretch: some ten milliseconds."""

ERROR_MESSAGE_CHARACTERS_MAX: Final = 4_096
"""Characters of an error message in an answer; it may repeat what a client sent, and the rest is cut."""

ARRAY_NESTING_MAX: Final = 8
"""How deep a message may nest; no Kafka message comes near."""

MESSAGE_ELEMENTS_MAX: Final = 1_000_000
"""Structs and strings in the arrays of one message; a small frame must not unfold to gigabytes of objects."""

REQUEST_ELEMENTS_MAX: Final = 200_000
"""The same of a request, with its numbers: everybody waits while it is taken apart, and each may ask for an answer."""

PRODUCER_ID_BLOCK: Final = 1_000
"""Producer ids that a node takes from the controller at a time."""

DISK_RESERVE_BYTES: Final = 32 * 1024 * 1024
"""Free room below which a log directory takes no more records: checkpoints and metadata still need some."""

IDLE_SWEEP_SECONDS: Final = 5.0
"""How often the server looks for connections that have gone quiet; after that long they give back large buffers."""

DESCRIPTORS_ASSUMED: Final = 1024 * 1024
"""Open files and sockets of a process whose limit nobody has looked up."""

DESCRIPTORS_RESERVED_MIN: Final = 64
"""Descriptors that neither connections nor segments may have, besides an eighth of all: for listeners, locks, metrics,
pipes to other processes, and files that are open for a moment."""

DESCRIPTORS_RESERVED_MAX: Final = 1_024
"""The most that are kept so."""

DESCRIPTORS_PLENTY: Final = 4_096
"""A process that may have fewer descriptors is worth a line in the log."""

ACCEPT_PAUSE_LINES_SECONDS: Final = 60.0
"""How often the log may say that no connection can be accepted."""

FLUSHES_UNDER_WAY_MAX: Final = 32
"""Flushes of a log directory that are under way at once; those behind them cover more when their turn comes."""

COLD_READS_UNDER_WAY_MAX: Final = 4
"""Reads of bytes that are not in memory that are under way at once; fewer than workers, so that flushes go on."""

COLD_READ_BYTES_MIN: Final = 256 * 1024
"""What is read into memory at least, where something is not there."""

COLD_READ_BYTES_MAX: Final = 16 * 1024 * 1024
"""What is read into memory at most: twice as much each time, for those who go through a file."""

COLD_READ_TRUSTED_SECONDS: Final = 5.0
"""How long after such a read its bytes should still be in memory; if they are not, another one would not help."""

COLD_READS_REMEMBERED_MAX: Final = 1024
"""Such reads that are remembered for that; older ones are forgotten, and their bytes read once more."""

OPEN_SEGMENT_FILES_MAX: Final = 512
"""Segment files held open at once; the ones not used lately are closed and opened again when needed."""

RECOVERED_AT_ONCE_BYTES_MAX: Final = 1024 * 1024
"""Bytes that are read and checked on the loop when a log is opened after a crash; more is done elsewhere."""

RECOVERED_BY_THREADS_BYTES_MAX: Final = 8 * 1024 * 1024
"""Bytes of one step of recovery that are not worth another process."""

RECOVERY_STEP_BYTES: Final = 32 * 1024 * 1024
"""Bytes after which a step of recovery takes no more logs: who is asked for next need not wait for longer than that."""

RECOVERY_STEP_LOGS_MAX: Final = 64
"""Logs that one step of recovery opens."""

RECOVERY_WAIT_SECONDS_MAX: Final = 5.0
"""How long requests wait for a log that is being recovered; then they are told to try again."""

FLUSH_TRIES_AT_STOP_MAX: Final = 20
"""How often a stopping node tries again to begin flushes for want of descriptors; then the next start recovers."""

METADATA_TRIES_MAX: Final = 100
"""How often a write of metadata that could not begin is tried again, each tenth of a second, before the node ends."""

SWAP_TRIES_MAX: Final = 100
"""How often a step of a segment's exchange is tried again, each tenth of a second, before the directory is given up."""

RECOVERY_RETRY_SECONDS: Final = 1.0
"""How long requests for a log that could not be opened are refused before it is tried again."""

LOGS_CLOSING_MAX: Final = 16
"""Logs of a directory that are flushed at once when a node stops."""

UNVERIFIED_BYTES_PER_READ_MAX: Final = 4 * 1024 * 1024
"""Bytes whose checksums one read verifies before it answers; a longer range is answered in parts."""

VERIFIED_RANGES_PER_SEGMENT_MAX: Final = 256
"""Separate ranges remembered as verified; beyond it the smallest is forgotten and verified again when needed."""

FLAWS_PER_LOG_MAX: Final = 1_000
"""Damaged ranges remembered per log; beyond it those of one segment become one, with what lies between them."""

SEGMENTS_PER_SCRUB_MAX: Final = 1_000
"""Closed segments that one process of the scrubber is given; then another one begins with those behind them."""

PRODUCERS_PER_PARTITION_MAX: Final = 100_000
"""Producer ids remembered per partition; beyond it those not heard of for longest are forgotten."""

VERIFICATION_PATIENCE_SECONDS: Final = 0.1
"""How long the first batch of a transaction waits for the one before it to end; then the client tries again."""

VERIFICATION_RETRY_SECONDS: Final = 0.005
"""How often that is looked at."""

FETCH_WAIT_MS_MAX: Final = 5 * 60_000
"""How long a fetch may wait for records, whatever the client asks for."""

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

HTTP_IDLE_SECONDS_MAX: Final = 120.0
"""How long a connection to the metrics door may rest between two requests; scrapers come every minute or sooner."""

HTTP_CONNECTIONS_MAX: Final = 32
"""Connections to the metrics door at once; further ones are closed unheard."""

RESPONSE_BYTES_MAX: Final = 256 * 1024 * 1024
"""The longest answer our client takes; a broker that announces more is not spoken to any further."""

REQUESTS_IN_FLIGHT_PER_BROKER_MAX: Final = 5
"""Unanswered requests of a client on one connection: as many batches as a broker remembers per producer."""

RECEIVES_PER_TURN_MAX: Final = 16
"""How often a client's connection receives before other work of the loop gets its turn."""

EXPECTED_BYTES_MIN: Final = 64 * 1024
"""A client is called for each piece of an answer that lacks less; of a larger one, once much of it is there."""

UNKNOWN_TOPIC_ATTEMPTS_MAX: Final = 5
"""How often a client asks for a topic that the cluster does not know: it may be in the making."""

PARTITIONS_PER_REQUEST_MAX: Final = 10_000
"""Partitions that one request may create; they are one batch of the metadata log. More are refused."""

TOPICS_CREATED_PER_TURN_MAX: Final = 400
"""Topics of one request that the controller decides about at a stretch, and that are one batch of the metadata log."""

COMMANDS_IN_FLIGHT_MAX: Final = 100_000
"""Commands whose records a machine's log has not committed; each belongs to a connection that waits, so more
means that connections are not bounded."""

RECORDS_REPLAYED_PER_TURN: Final = 500
"""Records of its log that a machine reads at a stretch while the node serves others: some milliseconds."""

COORDINATOR_RELOAD_SECONDS_MIN: Final = 0.25
"""How long a coordinator whose log has failed stays away before the log is read again."""

COORDINATOR_RELOAD_SECONDS_MAX: Final = 5.0
"""How long at most, when one failure has followed on another."""

KEYS_PLACED_MAX: Final = 10_000
"""Keys of the metadata's maps whose place is remembered; that of others is reckoned again."""

COORDINATED_NAMES_PLACED_MAX: Final = 10_000
"""Groups and transactional ids whose partition is remembered; that of others is reckoned again."""

REPLAY_READ_BYTES: Final = 256 * 1024
"""Bytes of a machine's log that are read at once."""

FAILURES_REMEMBERED_MAX: Final = 1_000
"""Failed batches that a producer keeps until somebody asks; of more, only the newest are told about."""

CHECKPOINT_TRIES_MAX: Final = 10
"""How often a checkpoint is begun anew because a partition was created or deleted meanwhile; then the next one does."""

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

TRANSACTION_ABORT_RETRY_MS: Final = 1_000
"""How soon a transaction is aborted again whose time is up and whose end could not be written."""

TRANSACTION_END_BYTES_MAX: Final = 1_024
"""How much larger the record of a transaction may become when it ends: it names more ids, and no more partitions."""

TRANSACTION_PARTITIONS_WRITTEN_MAX: Final = 256
"""Sets of partitions whose bytes in the log of transactional ids are remembered: most transactions have the same as
the one before."""

MEMBERS_PER_BATCH_MAX: Final = 1_024
"""Attempts of tasks that join one batch of a shared transaction, and ids of its pool; further ones are refused."""

INCARNATIONS_REMEMBERED_MAX: Final = 16
"""Incarnations of a pipeline whose last committed batch is remembered; the least recently used is forgotten."""

SINK_WRITES_PER_BATCH_MAX: Final = INCARNATIONS_REMEMBERED_MAX - 1
"""Writes of one batch, in a query's foreachBatch, where its checkpoint is not on the node; further ones are refused."""

INCARNATION_LENGTH_MAX: Final = 256
"""Characters in the name of an incarnation; longer ones are refused."""

BATCH_MARKER_BYTES_MAX: Final = 1_024
"""Bytes that an owner may leave with a committed batch; more are refused."""

MARKER_RETRY_SECONDS_MIN: Final = 0.02
"""How soon the marker of a transaction is sent again that did not reach its partition; each time twice as late."""

MARKER_RETRY_SECONDS_MAX: Final = 5.0
"""The longest time between two attempts; there is no last one."""

MARKER_ANSWER_SECONDS_MAX: Final = 30.0
"""How long an answer about markers is waited for; then they are sent again."""

MEMBER_NAME_CHARACTERS_MAX: Final = 1_000
"""Characters of a client's name that its member id begins with: the whole must fit into every version and record."""

VERIFIED_RECORDS_MAX: Final = 500_000
"""Records whose history `verify` keeps in memory; a load that gets there ends early."""

VERIFIED_RECORDS_UNDER_WAY_MAX: Final = 1_000
"""Records of one producer of `verify` whose outcome is open; beyond it the producer waits."""

CHECKPOINT_PATH_BYTES_MAX: Final = 2_048
"""Bytes of a path in the checkpoint store; longer ones are refused."""

CHECKPOINT_PATH_DEPTH_MAX: Final = 64
"""Folders that lie in one another in the checkpoint store; deeper paths are refused."""

CHECKPOINT_FILES_MAX: Final = 500_000
"""Files and folders in the checkpoint store; further ones are refused."""

CHECKPOINT_INLINE_BYTES_MAX: Final = 64 * 1024
"""A file of the checkpoint store up to this size is one record; a temporary one of this size is in memory, too."""

CHECKPOINT_CHUNK_BYTES: Final = 512 * 1024
"""A larger file is written in chunks of this size, as its bytes arrive."""

CHECKPOINT_CHUNKS_MAX: Final = 20_000
"""Chunks of one file; a longer file (about 10 GB) is refused when it gets there."""

CHECKPOINT_TEMPORARY_BYTES_MAX: Final = 16 * 1024 * 1024
"""Bytes of all temporary files in memory; beyond it a new one is written as a chunk at once."""

CHECKPOINT_TEMPORARY_FILES_MAX: Final = 10_000
"""Temporary files at a time; one more and the oldest is deleted: whoever made it has long gone."""

CHECKPOINT_TEMPORARY_MS_MAX: Final = 24 * 3_600_000
"""The age of a temporary file that nobody has renamed; older ones are deleted when the next one comes."""

CHECKPOINT_WRITE_BYTES_MAX: Final = 4 * 1024 * 1024
"""Bytes of the changes that the checkpoint store writes in one transaction; one that is larger goes alone."""

CHECKPOINT_UNREADABLE_NAMED_MAX: Final = 10
"""Records that the checkpoint store cannot read and names in the log; the others are counted."""

CHECKPOINT_TOPIC_CHECKED_SECONDS: Final = 5.0
"""How often a checkpoint store in use looks whether its topic is still there."""

CHECKPOINT_CONNECTIONS_MAX: Final = 2_048
"""Connections to the checkpoint store at a time; one more is answered 503."""

CHECKPOINT_REQUESTS_MAX: Final = 512
"""Requests that the checkpoint store deals with at a time; one more ends one that rests, or tries again."""

ACCOUNTED_BATCHES_MAX: Final = 1_000
"""Batches of a pipeline's query that are known each; Spark tells of the last hundred more than once."""

CHECKPOINT_UPLOAD_REST_SECONDS: Final = 5.0
"""An upload that has rested for so long makes room when the checkpoint store has too many requests."""

CHECKPOINT_RUNS_REMEMBERED_MAX: Final = 64
"""Runs of a pipeline that were replaced, and are known to be; one that is older looks like a new one."""

CHECKPOINT_STARTS_REMEMBERED_MAX: Final = 4_096
"""Checkpoints whose queries have started and not yet written; of a forgotten one the first batch may be refused."""

CHECKPOINT_PLANS_REMEMBERED_MAX: Final = 256
"""Checkpoints whose last `offsets/N` is in memory, at most 64 KiB each; others are read once more when committed."""

CHECKPOINT_ARRIVAL_SECONDS_MAX: Final = 30.0
"""How long a commit waits for another driver that starts on the same checkpoint, so that it can take over."""

CHECKPOINT_ARRIVAL_PAUSE_SECONDS_MIN: Final = 60.0
"""How long no commit waits for drivers on a checkpoint where one was waited for in vain; each time twice as long."""

CHECKPOINT_ARRIVAL_PAUSE_SECONDS_MAX: Final = 3_600.0
"""The longest such time."""

CHECKPOINT_PIPELINES_MAX: Final = 256
"""Pipelines whose sinks write in shared transactions; one more takes the place of one without a plan, or is refused."""

BACKGROUND_PAUSE_SECONDS: Final = 1.0
"""How long background work rests after an unexpected exception, before it begins again."""

PROGRESS_REPORTED_MAX: Final = 2_048
"""Queries whose drivers report how they go; the reports of further ones are refused, and their queries go on."""

PROGRESS_RUNS_MAX: Final = 16
"""Runs of one query that are remembered; one more and one that is over is forgotten, else the longest silent."""

PROGRESS_KEPT_EVERY_MS: Final = 10_000
"""How often the latest report of a query is written down; when a run begins or ends it is at once."""

PROGRESS_SILENT_MS_MAX: Final = 30_000
"""A query whose driver has not reported for so long may not be running any more."""

PROGRESS_ERROR_LENGTH_MAX: Final = 2_000
"""Characters of an error that a driver reports; the rest is cut."""

CHECKPOINT_CALL_BYTES_MAX: Final = 256 * 1024
"""The longest body of a call by a pipeline's sink: all members of a batch must fit."""

CHECKPOINT_COMMIT_BYTES_MAX: Final = 512 * 1024
"""The longest `commits/N` and `offsets/N` that are decided about, or looked into; a longer `commits/N` is refused."""
