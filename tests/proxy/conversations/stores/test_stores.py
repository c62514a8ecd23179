"""Behavior of every kind of store."""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace

import pytest

from dragoman.adapters.responses import stored
from dragoman.proxy.conversations.stores.interface import (
    OverLimit,
    ResponseStore,
    StoredResponse,
    StoreError,
    StoreLimits,
    new_response_id,
)

from .conftest import ManualClock, RecordFactory, StoreOpener

DAY = 24 * 3600.0


async def put_chain(store: ResponseStore, record: RecordFactory, length: int, text: str = "Hi") -> list[StoredResponse]:
    links: list[StoredResponse] = []
    for number in range(length):
        links.append(record(f"{text} {number}", links[-1].id if links else None))
        await store.put("me", links[-1])
    return links


async def test_a_response_is_returned_as_it_was_put(store: ResponseStore, record: RecordFactory) -> None:
    kept = record('Grüße, 世界 \U0001f600 "\\\n\0')
    await store.put("me", kept)
    assert await store.get("me", kept.id) == kept


async def test_altering_a_record_does_not_alter_the_stored_response(
    store: ResponseStore, record: RecordFactory
) -> None:
    kept = record()
    putting = asyncio.ensure_future(store.put("me", kept))
    await asyncio.sleep(0)
    kept.response["output"].append("later")
    await putting
    for _ in range(2):
        found = await store.get("me", kept.id)
        assert found is not None
        assert found.response["output"] == []
        found.response["output"].append("later")


async def test_a_second_put_replaces_the_first(store: ResponseStore, record: RecordFactory) -> None:
    first = record()
    second = replace(first, response={"status": "completed"})
    await store.put("me", first)
    await store.put("me", second)
    assert await store.get("me", first.id) == second


@pytest.mark.parametrize("unknown", ["resp_0", "", "\ud800", "a\0b", "x" * 100_000, "' OR 1=1 --"])
async def test_an_unknown_id_finds_nothing(store: ResponseStore, record: RecordFactory, unknown: str) -> None:
    await store.put("me", record())
    assert await store.get("me", unknown) is None
    assert await store.load_chain("me", unknown, 10) is None
    assert await store.delete("me", unknown) is False


async def test_a_deleted_response_is_not_found(store: ResponseStore, record: RecordFactory) -> None:
    kept, other = record(), record()
    await store.put("me", kept)
    await store.put("me", other)
    assert await store.delete("me", kept.id) is True
    assert await store.get("me", kept.id) is None
    assert await store.delete("me", kept.id) is False
    assert await store.get("me", other.id) == other


@pytest.mark.parametrize("owner", ["me", ""])
@pytest.mark.parametrize("other", ["you", "", "ME", "me "])
async def test_another_owner_finds_nothing(store: ResponseStore, record: RecordFactory, owner: str, other: str) -> None:
    if owner == other:
        other = "you"
    kept = record()
    await store.put(owner, kept)
    assert await store.get(other, kept.id) is None
    assert await store.load_chain(other, kept.id, 10) is None
    assert await store.delete(other, kept.id) is False
    assert await store.get(owner, kept.id) == kept


async def test_two_owners_can_use_the_same_id(store: ResponseStore, record: RecordFactory) -> None:
    mine = record("mine", id="resp_same")
    yours = record("yours", id="resp_same")
    await store.put("me", mine)
    await store.put("you", yours)
    await store.delete("you", "resp_same")
    assert await store.get("me", "resp_same") == mine


async def test_a_chain_comes_oldest_first(store: ResponseStore, record: RecordFactory) -> None:
    links = await put_chain(store, record, 4)
    assert await store.load_chain("me", links[-1].id, 4) == links
    assert await store.load_chain("me", links[1].id, 4) == links[:2]
    assert await store.load_chain("me", links[0].id, 1) == links[:1]


async def test_a_response_can_be_continued_twice(store: ResponseStore, record: RecordFactory) -> None:
    links = await put_chain(store, record, 2)
    branch = record("other", links[0].id)
    await store.put("me", branch)
    assert await store.load_chain("me", branch.id, 9) == [links[0], branch]
    assert await store.load_chain("me", links[1].id, 9) == links


@pytest.mark.parametrize("missing", [0, 1, 2])
async def test_a_chain_with_a_missing_link_is_not_found(
    store: ResponseStore, record: RecordFactory, missing: int
) -> None:
    links = await put_chain(store, record, 3)
    await store.delete("me", links[missing].id)
    assert await store.load_chain("me", links[2].id, 9) is None


async def test_a_chain_does_not_go_through_another_owners_response(store: ResponseStore, record: RecordFactory) -> None:
    theirs = record()
    mine = record("Hi", theirs.id)
    await store.put("you", theirs)
    await store.put("me", mine)
    assert await store.load_chain("me", mine.id, 9) is None


async def test_a_chain_with_too_many_links_is_over_the_limit(store: ResponseStore, record: RecordFactory) -> None:
    links = await put_chain(store, record, 4)
    with pytest.raises(OverLimit, match="more than 3 stored responses") as caught:
        await store.load_chain("me", links[-1].id, 3)
    assert caught.value.reason == "chain_too_long"


async def test_a_chain_with_a_cycle_is_over_the_limit(store: ResponseStore, record: RecordFactory) -> None:
    await store.put("me", record(id="resp_a", previous="resp_b"))
    await store.put("me", record(id="resp_b", previous="resp_a"))
    with pytest.raises(OverLimit):
        await store.load_chain("me", "resp_a", 50)


async def test_a_chain_with_too_many_bytes_is_over_the_limit(open_store: StoreOpener, record: RecordFactory) -> None:
    store = await open_store(StoreLimits(max_chain=3200))
    links = await put_chain(store, record, 4, "x" * 700)
    assert await store.load_chain("me", links[2].id, 9) == links[:3]
    with pytest.raises(OverLimit, match="more than 3200 bytes"):
        await store.load_chain("me", links[3].id, 9)


def with_items(record: RecordFactory, *items: str, text: str = "Hi", id: str | None = None) -> StoredResponse:
    made = record(text, id=id)
    made.response["output"] = [{"type": "message", "id": item} for item in items]
    return made


async def test_an_item_id_finds_the_latest_response_with_that_item(
    open_store: StoreOpener, record: RecordFactory, clock: ManualClock
) -> None:
    store = await open_store(StoreLimits(retention=100))
    one, other = with_items(record, "msg_1", "rs_1"), with_items(record, "msg_2")
    await store.put("me", one)
    await store.put("me", other)
    await store.put("you", with_items(record, "msg_1"))
    assert await store.find_by_items("me", ["msg_2", "rs_1", "msg_9", "msg_1", "\ud800"], 9) == [other, one]
    assert await store.find_by_items("nobody", ["msg_1"], 9) == []
    clock.now += 50
    later = with_items(record, "msg_1")
    await store.put("me", later)
    assert await store.find_by_items("me", ["msg_1", "rs_1"], 9) == [later, one]
    await store.delete("me", later.id)
    assert await store.find_by_items("me", ["msg_1"], 9) == []
    again = with_items(record, "msg_3", id=one.id)
    await store.put("me", again)
    assert await store.find_by_items("me", ["rs_1", "msg_3"], 9) == [again]
    clock.now += 60
    assert await store.find_by_items("me", ["msg_2", "msg_3"], 9) == [again]


async def test_items_in_too_many_responses_are_over_the_limit(open_store: StoreOpener, record: RecordFactory) -> None:
    store = await open_store(StoreLimits(max_chain=2400))
    for number in range(4):
        await store.put("me", with_items(record, f"msg_{number}", text="x" * 700))
    assert len(await store.find_by_items("me", ["msg_0", "msg_1"], 2)) == 2
    for ids, most in ((["msg_0", "msg_1"], 1), (["msg_0", "msg_1", "msg_2"], 9)):
        with pytest.raises(OverLimit, match="items referred to"):
            await store.find_by_items("me", ids, most)


async def test_a_response_that_is_too_large_is_refused(open_store: StoreOpener, record: RecordFactory) -> None:
    store = await open_store(StoreLimits(max_response=1000))
    large = record("x" * 1000)
    with pytest.raises(OverLimit, match=r"store\.max_response is 1000 bytes") as caught:
        await store.put("me", large)
    assert caught.value.reason == "too_large"
    assert await store.get("me", large.id) is None
    await store.put("me", record("x" * 600))


@pytest.mark.parametrize("value", [10**30, {1: 2}, "\ud800", object()])
async def test_a_value_that_json_lacks_is_refused(store: ResponseStore, record: RecordFactory, value: object) -> None:
    kept = replace(record(), response={"x": value})
    with pytest.raises(StoreError, match="not plain JSON") as caught:
        await store.put("me", kept)
    assert caught.value.reason == "unstorable"
    assert await store.get("me", kept.id) is None


async def test_an_expired_response_is_not_found(
    open_store: StoreOpener, record: RecordFactory, clock: ManualClock
) -> None:
    store = await open_store(StoreLimits(retention=DAY))
    old = record(created_at=0.0)  # what the reply says does not count
    await store.put("me", old)
    clock.now += DAY - 1
    young = record("Go on", old.id)
    await store.put("me", young)
    assert await store.load_chain("me", young.id, 9) == [old, young]
    clock.now += 1
    assert await store.get("me", old.id) is None
    assert await store.delete("me", old.id) is False
    assert await store.load_chain("me", young.id, 9) is None
    assert await store.get("me", young.id) == young


async def test_replacing_a_response_restarts_its_retention(
    open_store: StoreOpener, record: RecordFactory, clock: ManualClock
) -> None:
    store = await open_store(StoreLimits(retention=DAY))
    kept = record()
    await store.put("me", kept)
    clock.now += DAY / 2
    await store.put("me", kept)
    clock.now += DAY * 3 / 4
    assert await store.get("me", kept.id) == kept


async def test_the_oldest_responses_are_deleted_when_there_is_no_room(
    open_store: StoreOpener, record: RecordFactory, clock: ManualClock
) -> None:
    store = await open_store(StoreLimits(max_size=2000, max_response=2000))
    links = []
    for number in range(30):
        clock.now += 1
        links.append(record(f"Number {number}"))
        await store.put(f"owner {number % 2}", links[-1])
    found = [await store.get(f"owner {number % 2}", each.id) is not None for number, each in enumerate(links)]
    assert found == sorted(found), "one that went was younger than one that stayed"
    assert 5 <= sum(found) < 20


async def test_the_room_of_deleted_responses_is_used_again(open_store: StoreOpener, record: RecordFactory) -> None:
    store = await open_store(StoreLimits(max_size=2000, max_response=2000))
    first = record()
    await store.put("me", first)
    for number in range(30):
        passing = record(f"Number {number}")
        await store.put("me", passing)
        await store.put("me", passing)
        await store.delete("me", passing.id)
    assert await store.get("me", first.id) == first


async def test_the_last_response_stays_although_the_clock_was_set_back(
    open_store: StoreOpener, record: RecordFactory, clock: ManualClock
) -> None:
    """The last response is never deleted, even if it looks like the oldest."""
    store = await open_store(StoreLimits(max_size=1000, max_response=1000))
    for _ in range(10):
        clock.now -= 3600
        kept = record()
        await store.put("me", kept)
        assert await store.get("me", kept.id) == kept


async def test_a_closed_store_raises_closed(store: ResponseStore, record: RecordFactory) -> None:
    kept = record()
    await store.put("me", kept)
    await store.close()
    await store.close()
    for use in (
        lambda: store.put("me", kept),
        lambda: store.get("me", kept.id),
        lambda: store.delete("me", kept.id),
        lambda: store.load_chain("me", kept.id, 1),
    ):
        with pytest.raises(StoreError, match="closed") as caught:
            await use()
        assert caught.value.reason == "closed"


async def test_many_responses_can_be_put_at_the_same_time(store: ResponseStore, record: RecordFactory) -> None:
    kept = [record(f"Number {number}") for number in range(50)]
    await asyncio.gather(*(store.put("me", each) for each in kept))
    assert await asyncio.gather(*(store.get("me", each.id) for each in kept)) == kept


def test_ids_cannot_be_guessed() -> None:
    ids = {new_response_id() for _ in range(1000)}
    assert len(ids) == 1000
    assert all(re.fullmatch(r"resp_[0-9a-f]{44}", each) for each in ids)
    bits = [int(each[5:], 16) for each in ids]
    for position in range(128):  # 128 free bits: none of them is always the same, as a UUID's are
        assert 350 < sum(number >> position & 1 for number in bits) < 650


def test_ids_are_ordered_by_time(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    for milliseconds in (0, 1_000, 1_001, 1_800_000_000_000, 8_000_000_000_000):
        monkeypatch.setattr(stored.time, "time_ns", lambda now=milliseconds: now * 1_000_000)
        made.append(new_response_id())
    assert made == sorted(made)


@pytest.mark.parametrize(
    "wrong", [{"max_response": 0}, {"max_response": 2, "max_size": 1}, {"retention": 0}, {"max_chain": 0}]
)
def test_contradictory_limits_are_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="must be above 0"):
        StoreLimits(**wrong)
