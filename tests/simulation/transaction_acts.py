"""What writers, copiers and pipelines do and suffer in a plan with transactions. All are named by number."""

from dataclasses import dataclass
from typing import Literal

End = Literal["commit", "abort", "leave open"]


class TransactionAct:
    """Any of them."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Transact(TransactionAct):
    """A writer makes a transaction in some partitions; `late` the one before the present holder of its id."""

    writer: int
    partitions: tuple[int, ...]
    records: int
    pause_seconds: float
    end: End
    late: bool


@dataclass(frozen=True, slots=True)
class WritePlainly(TransactionAct):
    """Somebody writes records beside all transactions."""

    partition: int
    records: int


@dataclass(frozen=True, slots=True)
class TakeOver(TransactionAct):
    """Another writer takes over a transactional id; the one before does not know."""

    writer: int


@dataclass(frozen=True, slots=True)
class WriterDies(TransactionAct):
    """The holder of an id is gone at once, after so many turns of the loop: between any two things that it does."""

    writer: int
    turns: int


@dataclass(frozen=True, slots=True)
class WriterFreezes(TransactionAct):
    """What the holder of an id sends and is sent is held back for a while."""

    writer: int
    seconds: float


@dataclass(frozen=True, slots=True)
class CopierStarts(TransactionAct):
    """A member of the group that copies is there, unless it is already."""

    copier: int


@dataclass(frozen=True, slots=True)
class CopierDies(TransactionAct):
    """A copier is gone at once, after so many turns of the loop."""

    copier: int
    turns: int


@dataclass(frozen=True, slots=True)
class CopierFreezes(TransactionAct):
    """What a copier sends and is sent is held back for a while."""

    copier: int
    seconds: float


@dataclass(frozen=True, slots=True)
class DriverStarts(TransactionAct):
    """A driver takes over a pipeline, be it that another is at work; `anew` it begins from nothing."""

    pipeline: int
    anew: bool


@dataclass(frozen=True, slots=True)
class DriverDies(TransactionAct):
    """The driver of a pipeline is gone at once, after so many turns; its tasks may go on."""

    pipeline: int
    turns: int


@dataclass(frozen=True, slots=True)
class DriverFreezes(TransactionAct):
    """What the driver of a pipeline sends and is sent is held back for a while."""

    pipeline: int
    seconds: float


@dataclass(frozen=True, slots=True)
class DropTopic(TransactionAct):
    """The topic that nobody reads is deleted, and created again."""
