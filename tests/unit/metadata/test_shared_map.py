"""Maps that never change."""

from random import Random
from typing import Any

import pytest

from riverlog.metadata.shared_map import GONE, LEAF_ENTRIES_MAX, SharedMap


def filled(count: int) -> SharedMap[str, int]:
    numbers: SharedMap[str, int] = SharedMap()
    for number in range(count):
        numbers = numbers.with_entry(f"key-{number}", number)
    return numbers


def test_it_holds_what_was_put_in():
    numbers = filled(5_000)
    assert len(numbers) == 5_000
    assert numbers.get("key-4321") == 4321
    assert "key-0" in numbers
    assert "other" not in numbers
    assert numbers.get("other") is None


def test_a_map_does_not_change_under_its_holder():
    before = filled(10)
    after = before.with_entry("key-3", 33).without("key-4")
    assert (before.get("key-3"), before.get("key-4"), len(before)) == (3, 4, 10)
    assert (after.get("key-3"), after.get("key-4"), len(after)) == (33, None, 9)


def leaves(node: Any) -> list[dict[str, int]]:
    return [node] if isinstance(node, dict) else [leaf for branch in node for leaf in leaves(branch)]


def test_what_did_not_change_is_shared():
    before = filled(3_000)
    after = before.with_entry("key-1", 7)
    pairs = zip(leaves(before._root), leaves(after._root), strict=True)
    assert sum(ours is not theirs for ours, theirs in pairs) == 1


def test_no_piece_is_large_however_many_entries_there_are():
    assert max(map(len, leaves(filled(20_000)._root))) <= LEAF_ENTRIES_MAX
    assert isinstance(filled(LEAF_ENTRIES_MAX)._root, dict)


def test_keys_with_one_hash_share_a_leaf(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("riverlog.metadata.shared_map._hash", lambda _key: 7)
    numbers = filled(100)
    assert numbers.get("key-99") == 99
    assert numbers.without("key-99").get("key-99") is None
    few = numbers
    for number in range(90):
        few = few.without(f"key-{number}")
    assert isinstance(few._root, dict)
    assert len(few) == 10


def test_the_shape_is_that_of_the_content():
    random = Random(1)
    keys = [f"key-{number}" for number in range(400)]
    for kept in (0, 1, 31, 32, 33, 200, 400):
        grown: SharedMap[str, int] = SharedMap()
        for key in random.sample(keys, 400):
            grown = grown.with_entry(key, len(key))
        gone = random.sample(keys, 400 - kept)
        for key in gone[: len(gone) // 2]:
            grown = grown.without(key)
        shrunk = grown.merged(dict.fromkeys(gone[len(gone) // 2 :], GONE))
        fresh = SharedMap[str, int]().merged({key: len(key) for key in keys if key not in gone})
        assert shrunk == fresh
        assert len(shrunk) == len(fresh) == kept
        assert list(shrunk.items()) == sorted((key, len(key)) for key in keys if key not in gone)


def test_keys_may_be_bytes():
    ids = SharedMap[bytes, str]().merged({bytes([each]): str(each) for each in range(100)})
    assert ids.get(b"\x07") == "7"
    assert b"\xff" not in ids


def test_taking_away_what_is_not_there_is_nothing():
    numbers = filled(3)
    assert numbers.without("other") is numbers


def test_items_come_in_the_order_of_their_keys_and_equality_does_not_depend_on_history():
    numbers: SharedMap[str, int] = SharedMap()
    for key in ("b", "a", "c", "d"):
        numbers = numbers.with_entry(key, ord(key))
    numbers = numbers.without("d")
    assert list(numbers.items()) == [("a", 97), ("b", 98), ("c", 99)]
    assert numbers == SharedMap[str, int]().with_entry("a", 97).with_entry("c", 99).with_entry("b", 98)
    assert numbers != numbers.with_entry("a", 1)
    assert repr(numbers) == "SharedMap({'a': 97, 'b': 98, 'c': 99})"


def test_it_is_no_key():
    with pytest.raises(TypeError):
        hash(SharedMap())


@pytest.mark.parametrize("seed", range(10))
def test_differences_are_what_is_not_the_same_object(seed: int) -> None:
    random = Random(seed)
    values = [object() for _ in range(4)]
    one = SharedMap[str, object]().merged({f"k{n}": random.choice(values) for n in range(random.choice((3, 400)))})
    changes: dict[str, object] = {f"k{random.randrange(500)}": random.choice((*values, GONE)) for _ in range(20)}
    two = one.merged(changes)  # type: ignore[arg-type]  # what is to go is an object too
    expected = {
        key: (one.get(key), two.get(key)) for key in [f"k{n}" for n in range(500)] if one.get(key) is not two.get(key)
    }
    found = list(one.differences(two))
    assert {key: (before, after) for key, before, after in found} == expected
    assert len(found) == len(expected)
    assert list(two.differences(two)) == []
