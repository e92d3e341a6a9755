"""The partitions that have a replica on this node, out of those of the whole cluster.

It follows the metadata, so that nobody goes through all partitions of a large cluster to find the few that are here.
The partitions of a topic are the bits of one number, which is small also where all of them are here.
"""

from collections.abc import Iterable, Iterator

from riverlog.controller.view import MetadataView
from riverlog.metadata.broker_index import each_partition
from riverlog.metadata.delta import MetadataDelta
from riverlog.metadata.image import PARTITIONS_PER_CHUNK, PartitionImage, PartitionState, TopicImage
from riverlog.model.ids import NodeId

_CHUNK_BYTES = PARTITIONS_PER_CHUNK // 8


class LocalPartitions:
    """Finds the partitions of a node."""

    def __init__(self, node_id: NodeId, metadata: MetadataView) -> None:
        self._node_id = node_id
        self._metadata = metadata
        self._by_topic: dict[str, int] = {}  # bit n stands for partition n

    def start(self) -> None:
        """Find the partitions that are here, and follow the metadata."""
        self._add(self._metadata.image.all_topics())
        self._metadata.watch(self._follow)

    def __iter__(self) -> Iterator[tuple[TopicImage, PartitionImage]]:
        """Go through the partitions by name, as they are now, however long that takes."""
        image = self._metadata.image
        for name, bits in sorted(self._by_topic.items()):
            topic = image.topic(name)
            assert topic is not None, f"{name} is not in the image that this follows"
            for _, index in each_partition([(name, bits)]):
                yield topic, topic.partition(index)

    def of(self, topic: TopicImage, indexes: Iterable[int]) -> Iterator[PartitionImage]:
        """Return those of the named partitions that are here."""
        bits = self._by_topic.get(topic.name, 0)
        return (topic.partition(index) for index in indexes if index >= 0 and bits >> index & 1)

    def _follow(self, delta: MetadataDelta) -> None:
        for topic in delta.deleted:
            self._by_topic.pop(topic.name, None)
        self._add((*delta.created, *delta.grown))
        for topic, indexes in delta.moved:
            bits = self._by_topic.get(topic.name, 0)
            for index in indexes:
                is_here = self._node_id in topic.partition(index).replicas
                bits = bits | 1 << index if is_here else bits & ~(1 << index)
            self._set(topic.name, bits)

    def _add(self, topics: Iterable[TopicImage]) -> None:
        for topic in topics:
            packed = b"".join(self._word(chunk).to_bytes(_CHUNK_BYTES, "little") for chunk in topic.chunks)
            self._set(topic.name, int.from_bytes(packed, "little"))

    def _word(self, chunk: tuple[PartitionState, ...]) -> int:
        return sum(1 << row for row, state in enumerate(chunk) if self._node_id in state[0])

    def _set(self, topic: str, bits: int) -> None:
        if bits:
            self._by_topic[topic] = bits
        else:
            self._by_topic.pop(topic, None)
