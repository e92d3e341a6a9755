"""What can go wrong for a client: one exception type with Kafka's error code, and a few that callers tell apart."""

from collections.abc import Mapping, Sequence

from riverlog.client.reasons import reason
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import TopicPartition


class KafkaError(Exception):
    """The cluster said no, or could not be asked. `code` is Kafka's, `message` says what happened and what to do."""

    def __init__(self, code: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message

    @property
    def retriable(self) -> bool:
        """Return whether the same call may succeed later without being changed."""
        return self.code.retriable

    def __str__(self) -> str:
        return f"{self.message} [{self.code.name}]"


class Unreachable(KafkaError):
    """No broker could be reached, or the connection broke before the answer came."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.NETWORK_EXCEPTION, message)

    @classmethod
    def all_of(cls, reasons: Sequence[str]) -> "Unreachable":
        """Explain for each address that was tried why it did not work."""
        return cls(f"no broker could be reached: {'; '.join(reasons)}. Is one running, and is the address right?")


class ConnectionRefused(Unreachable):
    """Nobody listens at the address."""


class TimedOut(KafkaError):
    """The answer did not come in time; the request may or may not have taken effect."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.REQUEST_TIMED_OUT, message)


class BufferFull(KafkaError):
    """The producer holds as many unsent bytes as it may."""

    def __init__(self, buffer_bytes_max: int) -> None:
        super().__init__(
            ErrorCode.RECORD_LIST_TOO_LARGE,
            f"{buffer_bytes_max} bytes wait to be sent, the most that buffer_bytes_max allows. "
            "Await producer.ready() before the next send_soon(), or use send(), which waits by itself",
        )


class Closed(KafkaError):
    """The producer, consumer or admin was closed before the call, or while it waited."""

    def __init__(self, what: str) -> None:
        super().__init__(ErrorCode.NETWORK_EXCEPTION, f"the {what} is closed")

    @property
    def retriable(self) -> bool:
        return False  # it stays so


class AuthenticationFailed(KafkaError):
    """The broker does not believe who this client says it is, or cannot be believed itself."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.SASL_AUTHENTICATION_FAILED, message)


class PartlyFailed(KafkaError):
    """Some of the things that one call was about failed; the others are done. `failures` has each by its name."""

    def __init__(self, failures: Mapping[str, KafkaError], total: int) -> None:
        reasons = "; ".join(error.message for error in failures.values())
        super().__init__(next(iter(failures.values())).code, f"{len(failures)} of {total} failed: {reasons}")
        self.failures = dict(failures)

    @property
    def retriable(self) -> bool:
        return False  # repeating the call would repeat what is done


class RecordsRefused(KafkaError):
    """A batch was refused for some of its records. `refused` has each of them by its place in the batch."""

    def __init__(self, refused: Mapping[int, KafkaError]) -> None:
        first = next(iter(refused.values()))
        super().__init__(first.code, first.message)
        self.refused = dict(refused)
        self._others = OtherRecordRefused(first)

    def of_record(self, place: int) -> KafkaError:
        """Return what became of one record."""
        return self.refused.get(place, self._others)


class OtherRecordRefused(KafkaError):
    """Nothing is wrong with the record itself: it was sent together with one that was refused. It may be sent again."""

    def __init__(self, refused: KafkaError) -> None:
        super().__init__(
            refused.code, f"the record was not written because of another record in the batch: {refused.message}"
        )


class OffsetOutOfRange(KafkaError):
    """The log has no record at the position, and the consumer was told not to choose another."""

    def __init__(self, partition: TopicPartition, offset: int) -> None:
        super().__init__(
            ErrorCode.OFFSET_OUT_OF_RANGE,
            f"{partition} has no offset {offset}: it was deleted by retention or not written yet. Seek to another "
            'offset, or let the consumer choose with auto_offset_reset="earliest" or "latest"',
        )
        self.partition = partition
        self.offset = offset


class CommitFailed(KafkaError):
    """The group has gone on without this member; its partitions may be with others by now."""

    def __init__(self, group: str, code: ErrorCode) -> None:
        super().__init__(
            code,
            f"group {group!r} has gone on without this member, and others may read its partitions by now: nothing was "
            "committed. Poll more often, in smaller portions, or raise max_poll_interval_ms; the next poll joins again",
        )


class ProducerFenced(KafkaError):
    """Another producer has taken over the transactional id; this one can write nothing any more."""

    def __init__(self, transactional_id: str) -> None:
        super().__init__(
            ErrorCode.PRODUCER_FENCED,
            f"another producer has taken over the transactional id {transactional_id!r}, or a transaction was open for "
            "longer than transaction_timeout_ms: this producer can write nothing any more. Close it; a new one takes "
            "over from whoever writes now",
        )


class TransactionAborted(KafkaError):
    """The transaction could not be committed and was aborted: nothing of it took effect, and it may be repeated."""

    def __init__(self, transactional_id: str, cause: KafkaError) -> None:
        super().__init__(
            ErrorCode.TRANSACTION_ABORTABLE,
            f"the transaction of {transactional_id!r} was aborted, and may be repeated: {cause.message}",
        )


class CorruptRecords(KafkaError):
    """A fetched batch failed its checks. The consumer stays before it; seek past it to go on."""

    def __init__(self, partition: TopicPartition, offset: int, reason: str) -> None:
        super().__init__(ErrorCode.CORRUPT_MESSAGE, f"the batch at offset {offset} of {partition} is corrupt: {reason}")
        self.partition = partition
        self.offset = offset


def error_code(number: int) -> ErrorCode:
    """Name a code from the wire; one that is newer than this client is an unknown server error."""
    try:
        return ErrorCode(number)
    except ValueError:
        return ErrorCode.UNKNOWN_SERVER_ERROR


def check(number: int, subject: str, message: str | None = None) -> None:
    """Raise KafkaError unless the code says that all is well; the broker's own sentence is kept where there is one."""
    if number != ErrorCode.NONE:
        raise failure(number, subject, message)


def failure(number: int, subject: str, message: str | None = None) -> KafkaError:
    """Make the exception for a code that the cluster gave about `subject`."""
    code = error_code(number)
    known = reason(code) if code == number else f"error code {number}"
    return KafkaError(code, f"{subject}: {message or known}")
