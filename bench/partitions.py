"""Measurements over many partitions: creating them, filling them, and coming back after a stop or a kill.

A node is back when every partition has answered a Fetch with a record. What is asked for is asked in plain frames,
over and over while the answer is an error, so that no client's back-off is measured.
"""

import socket
import time
from typing import Final

from bench import clients, loadgen, machine
from bench.frames import CLIENT_ID, FETCH_VERSION, produce_load
from bench.trial import Failed, Node, Trial, Values, cpu_seconds
from riverlog.wire.apis import API_BY_KEY, ApiKey
from riverlog.wire.headers import decode_response, encode_request
from riverlog.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic

MANY: Final = 1_000
MEGABYTE: Final = 1e6
VALUE_BYTES: Final = 1_000
RECORDS_PER_BATCH: Final = 16
ANSWER_SECONDS_MAX: Final = 120
ASK_AGAIN_SECONDS: Final = 0.01
FILL_SECONDS_MAX: Final = 120


def thousand(trial: Trial) -> Values:
    """Create a thousand partitions, write a record into each, kill the node and start it again."""
    trial.contender.format(trial.folder)
    node = trial.contender.start(trial.folder)
    begin = machine.now()
    topic = clients.create_topic(node, MANY)
    created = machine.now()
    clients.produce_into_each(node, topic, partitions=MANY, value_bytes=VALUE_BYTES)
    written = machine.now()
    resident = machine.resident_bytes(node.pid)
    node.kill()
    node, restarted, _ = _come_back(trial, topic, MANY)
    node.stop()
    return {
        "create": created - begin,
        "first records": written - created,
        "memory": resident / MEGABYTE,
        "restart": restarted,
    }


def recovery(trial: Trial, *, partitions: int, total_bytes: int) -> Values:
    """Fill partitions, kill the node, start it again; then stop it in good order and start it once more."""
    trial.contender.format(trial.folder)
    node = trial.contender.start(trial.folder)
    topic = clients.create_topic(node, partitions)
    load = produce_load(topic, records=RECORDS_PER_BATCH, value_bytes=VALUE_BYTES, partitions=partitions)
    rounds = round(total_bytes / (RECORDS_PER_BATCH * VALUE_BYTES * partitions))
    _ask_all(node, topic, partitions, records=0)  # Kafka says that a topic is created before it takes records
    begin = machine.now()
    loadgen.replay(load, node, in_flight=2, seconds=FILL_SECONDS_MAX, requests_max=rounds)
    filled = machine.now() - begin
    node.kill()
    node, after_kill, after_kill_cpu = _come_back(trial, topic, partitions, records=rounds * RECORDS_PER_BATCH)
    loadgen.replay(load, node, seconds=FILL_SECONDS_MAX, requests_max=1)  # so that there is something to flush
    begin = machine.now()
    node.stop()
    stopped = machine.now() - begin
    node, after_stop, _ = _come_back(trial, topic, partitions, records=(rounds + 1) * RECORDS_PER_BATCH)
    node.kill()
    return {
        "fill": total_bytes / MEGABYTE / filled,
        "after kill": after_kill,
        "CPU": after_kill_cpu,
        "stop": stopped,
        "after stop": after_stop,
    }


def _come_back(trial: Trial, topic: str, partitions: int, records: int = 1) -> tuple[Node, float, float]:
    """Start the node and wait for a record of every partition; give it, the seconds and the CPU seconds."""
    begin = machine.now()
    node = trial.contender.start(trial.folder)
    _ask_all(node, topic, partitions, records)
    return node, machine.now() - begin, cpu_seconds(node)


def _ask_all(node: Node, topic: str, partitions: int, records: int) -> None:
    """Fetch a record from each partition, if there are any; each must hold as many as were acknowledged."""
    deadline = time.monotonic() + ANSWER_SECONDS_MAX
    with socket.create_connection((node.host, node.port), timeout=ANSWER_SECONDS_MAX) as connection:
        for partition in range(partitions):
            while (code := _fetch(connection, topic, partition, records)) and time.monotonic() < deadline:
                time.sleep(ASK_AGAIN_SECONDS)
            if code:
                raise Failed(f"partition {partition} still answers with error {code} after {ANSWER_SECONDS_MAX} s")


def _fetch(connection: socket.socket, topic: str, partition: int, records: int) -> int:
    """Ask for the first record of a partition; give the error code."""
    wanted = FetchPartition(partition=partition, fetch_offset=0, partition_max_bytes=1)
    request = FetchRequest(
        max_bytes=1, min_bytes=min(1, records), topics=[FetchTopic(topic=topic, partitions=[wanted])]
    )
    api = API_BY_KEY[ApiKey.FETCH]
    connection.sendall(encode_request(api, FETCH_VERSION, partition, CLIENT_ID, request))
    size = int.from_bytes(_receive(connection, 4), "big")
    _, response = decode_response(api, FETCH_VERSION, memoryview(_receive(connection, size)))
    (answer,) = response.responses[0].partitions
    if not answer.error_code and (answer.high_watermark != records or bool(records) > bool(answer.records)):
        raise Failed(f"partition {partition} holds {answer.high_watermark} records of {records} acknowledged ones")
    return int(answer.error_code)


def _receive(connection: socket.socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        piece = connection.recv(size - len(data))
        if not piece:
            raise Failed("the broker hung up in the middle of an answer")
        data += piece
    return bytes(data)
