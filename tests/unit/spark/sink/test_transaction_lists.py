"""Lists as they are kept; that they are found again is shown with real processes, beside `listed_transactions`."""

from riverlog.client.producer.transaction_handover import HandedTransaction
from riverlog.spark.sink.transaction_lists import ListedBatch, topic_of


def test_a_list_is_read_as_it_was_written() -> None:
    listed = ListedBatch("query", 7, (HandedTransaction("orders-0-0", 5, 2), HandedTransaction("orders-1-0", 6, 0)))
    assert ListedBatch.read(listed.write()) == listed
    done = ListedBatch("query", 7, (), is_done=True)
    assert ListedBatch.read(done.write()) == done
    one = ListedBatch("query", 7, listed.transactions, run="r", seen=1, topics=("topic a", "topic b"))
    assert ListedBatch.read(one.write()) == one
    assert (done.writes, one.writes) == (1, 2)
    assert one.done() == ListedBatch("query", 7, (), is_done=True, run="r", seen=1, topics=("topic a", "topic b"))


def test_a_list_of_before_is_read() -> None:
    old = b'{"query": "query", "batch": 7, "transactions": [], "is_done": true}'
    assert ListedBatch.read(old) == ListedBatch("query", 7, (), is_done=True)


def test_every_pipeline_has_a_topic_with_a_name_that_topics_may_have() -> None:
    assert topic_of("spark:/checkpoints/orders") == "__riverlog_sink_" + topic_of("spark:/checkpoints/orders")[-32:]
    assert topic_of("a") != topic_of("b")
    assert len(topic_of("x" * 1_000)) < 250
