"""A port for markers whose way to the partitions can be made long, broken or forgetful."""

import asyncio
from collections import Counter
from collections.abc import Mapping
from random import Random

from riverlog.model.errors import ErrorCode
from riverlog.model.ids import TopicPartition
from riverlog.model.transactions import TransactionMarkers


class Markers:
    """Takes every marker to its partition at once, and remembers which came how often."""

    def __init__(self) -> None:
        self.asked: list[TransactionMarkers] = []
        self.codes: dict[TopicPartition, ErrorCode] = {}
        """What partitions answer that do not take their marker."""
        self.arrived: Counter[tuple[TopicPartition, int, int, bool]] = Counter()

    async def write(self, markers: TransactionMarkers) -> Mapping[TopicPartition, ErrorCode]:
        self.asked.append(markers)
        return {each: self._arrive(markers, each) for each in markers.partitions}

    def _arrive(self, markers: TransactionMarkers, partition: TopicPartition) -> ErrorCode:
        if partition in self.codes:
            return self.codes[partition]
        self.arrived[partition, markers.producer_id, markers.producer_epoch, markers.committed] += 1
        return ErrorCode.NONE


class FaultyMarkers(Markers):
    """Delays what it takes, loses some on the way there and some answers on the way back, and lets some come twice."""

    def __init__(self, random: Random) -> None:
        super().__init__()
        self._random = random

    async def write(self, markers: TransactionMarkers) -> Mapping[TopicPartition, ErrorCode]:
        self.asked.append(markers)
        codes: dict[TopicPartition, ErrorCode] = {}
        for partition in self._random.sample(markers.partitions, len(markers.partitions)):
            await asyncio.sleep(self._random.random() * 0.2)
            if self._random.random() < 0.3:
                continue
            codes[partition] = self._arrive(markers, partition)
            if self._random.random() < 0.2:
                self._arrive(markers, partition)
            if self._random.random() < 0.2:
                del codes[partition]
        if self._random.random() < 0.2:
            await asyncio.sleep(3_600)
        if self._random.random() < 0.2:
            raise ConnectionResetError
        return codes
