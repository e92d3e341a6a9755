"""Apache Kafka's DumpLogSegments reads what transactions leave in a partition: markers, the index of aborted ones."""

import re
from pathlib import Path
from typing import Final

from confluent_kafka import Producer

from tests.conformance.adapters.foreign import JavaClient
from tests.conformance.foreign.check_files import complaints
from tests.conformance.foreign.kafka_tools import dump
from tests.support.node import Node

RECORDS: Final = 4
FATES: Final = ("commit", "abort", "abort", "commit", "abort")


def test_markers_and_aborted_transactions_are_read(tmp_path: Path) -> None:
    with Node(tmp_path) as node:
        client = JavaClient(node.bootstrap)
        client.create_topic("orders")
        client.close()
        producer = Producer({"bootstrap.servers": node.bootstrap, "transactional.id": "copier"})
        producer.init_transactions()
        for fate in FATES:
            producer.begin_transaction()
            for number in range(RECORDS):
                producer.produce("orders", b"%d" % number)
            producer.flush()
            (producer.commit_transaction if fate == "commit" else producer.abort_transaction)()
        assert node.stop() == 0
        partition = node.data / "orders-0"
        ran = dump(sorted(partition.glob("*.txnindex")))
        firsts = [RECORDS * place + place for place, fate in enumerate(FATES) if fate == "abort"]
        found = re.findall(r"firstOffset: (\d+) lastOffset: (\d+) lastStableOffset: (\d+)", ran.text)
        assert [tuple(map(int, each)) for each in found] == [
            (first, first + RECORDS, first + RECORDS + 1) for first in firsts
        ]
        ran = dump(sorted(partition.glob("*.log")), "--deep-iteration", "--print-data-log")
        assert complaints(ran.text) == []
        assert tuple(each.lower() for each in re.findall(r"endTxnMarker: (\w+)", ran.text)) == FATES
        ran = dump(sorted(partition.glob("*.snapshot")))
        assert complaints(ran.text) == []
        assert re.search(r"coordinatorEpoch: \d+ currentTxnFirstOffset: OptionalLong.empty", ran.text), ran.text
