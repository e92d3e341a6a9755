"""Producer ids, in blocks."""

from riverlog.metadata.commands.producer_ids import AllocateProducerIds, allocate_producer_ids
from riverlog.metadata.draft import after
from riverlog.model.ids import NodeId
from tests.unit.metadata.cluster import cluster


def test_blocks_follow_each_other():
    image = cluster(None)
    taken = []
    for count in (1000, 1, 500):
        records, block = allocate_producer_ids(image, AllocateProducerIds(NodeId(1), count))
        image = after(image, records)
        taken.append((block.first, block.count))
    assert taken == [(0, 1000), (1000, 1), (1001, 500)]
    assert image.next_producer_id == 1501
