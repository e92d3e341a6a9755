"""The picture shows every topic, step and output, and what is shared once."""

from xml.etree import ElementTree

from riverlog.pipelines.inspection.picture import BoxKind, OutputPicture, as_svg, as_text, graph
from riverlog.pipelines.lineage import Lineage
from riverlog.pipelines.outputs import ConsoleTarget, CustomTarget, ParquetTarget, TopicTarget

ORDERS = Lineage(("orders",)).after("watermark at - 10 seconds").after("filter amount > 0 & 'x' < y")
PAYMENTS = Lineage(("payments",)).after("watermark at - 10 seconds")
JOINED = ORDERS.after("inner join on order within 1 hour", PAYMENTS).after("select order, total")
OUTPUTS = [
    OutputPicture("paid", JOINED, TopicTarget("paid"), "paid-late"),
    OutputPicture("paid-console", ORDERS, ConsoleTarget()),
    OutputPicture("paid-files", ORDERS, ParquetTarget("/data/orders")),
    OutputPicture("other", Lineage().after("apply"), CustomTarget(lambda writer: writer)),
]

TEXT = """\
query paid
    topic orders
    | watermark at - 10 seconds
    | filter amount > 0 & 'x' < y
    topic payments
    | watermark at - 10 seconds
  inner join on order within 1 hour
  | select order, total
  => topic paid
  => topic paid-late: late rows

query paid-console
  topic orders
  | watermark at - 10 seconds
  | filter amount > 0 & 'x' < y
  => console

query paid-files
  topic orders
  | watermark at - 10 seconds
  | filter amount > 0 & 'x' < y
  => files in /data/orders

query other
  rows
  | apply
  => a writer of Spark
"""


def test_text_goes_from_topics_to_outputs() -> None:
    assert as_text(OUTPUTS) == TEXT
    assert as_text([]) == ""


def test_what_outputs_share_is_drawn_once() -> None:
    drawn = graph(OUTPUTS)
    words = [box.words for box in drawn.boxes]
    assert words.count("topic orders") == 1
    assert words.count("filter amount > 0 & 'x' < y") == 1
    assert words.count("watermark at - 10 seconds") == 2
    assert [box.words for box in drawn.boxes if box.kind is BoxKind.OUTPUT] == [
        "topic paid",
        "topic paid-late",
        "console",
        "files in /data/orders",
        "a writer of Spark",
    ]
    join = words.index("inner join on order within 1 hour")
    assert sorted(arrow.tail for arrow in drawn.arrows if arrow.head == join) == [2, 4]
    assert all(arrow.tail < arrow.head for arrow in drawn.arrows)


def test_svg_is_well_formed_and_no_box_hides_another() -> None:
    root = ElementTree.fromstring(as_svg("paid <orders>", OUTPUTS))
    name = "{http://www.w3.org/2000/svg}"
    assert root.findtext(f"{name}title") == "paid <orders>"
    places = [(rect.get("x"), rect.get("y")) for rect in root.iter(f"{name}rect")]
    assert len(places) == len(set(places)) == len(graph(OUTPUTS).boxes)
    text = " ".join(element.text or "" for element in root.iter(f"{name}text"))
    for words in ("filter amount > 0 & 'x' < y", "late rows of paid", "topic payments", "query paid-console"):
        assert words in text
    width = int(root.get("width") or 0)
    assert all(int(rect.get("x") or 0) + int(rect.get("width") or 0) <= width for rect in root.iter(f"{name}rect"))


def test_a_topic_that_is_written_and_read_is_one_box() -> None:
    minutes = OutputPicture("minutes", Lineage(("sales",)).after("sum"), TopicTarget("minutes"))
    totals = OutputPicture("totals", Lineage(("minutes",)).after("add up"), TopicTarget("totals"))
    drawn = graph([minutes, totals])
    assert [box.words for box in drawn.boxes] == ["topic sales", "sum", "topic minutes", "add up", "topic totals"]
    assert [tuple(arrow) for arrow in drawn.arrows] == [(0, 1), (1, 2), (2, 3), (3, 4)]
    other_way_round = graph([totals, minutes])
    assert all(arrow.tail < arrow.head for arrow in other_way_round.arrows)
    itself = graph([OutputPicture("loop", Lineage(("loop",)).after("again"), TopicTarget("loop"))])
    assert [tuple(arrow) for arrow in itself.arrows] == [(0, 1), (1, 2)]


def test_a_pipeline_without_outputs_has_an_empty_picture() -> None:
    ElementTree.fromstring(as_svg("nothing", []))
