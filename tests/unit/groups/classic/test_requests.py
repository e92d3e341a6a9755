"""The classic protocol, request by request. Whole lives of groups are in tests/scenarios/groups."""

from typing import Any

import pytest

from riverlog.groups.commands import CodesReply, Heartbeat, JoinReply, Leave, Leaver, Protocol, Sync, SyncReply
from riverlog.groups.limits import HANDED_OUT_MEMBER_IDS_MAX
from riverlog.groups.records import GroupMetadataValue, GroupRecord
from riverlog.model.errors import ErrorCode
from tests.support.groups import CLIENT, Coordinator, settings_of, subscription

RANGE = (Protocol("range", subscription("t")),)
OTHER = (Protocol("range", subscription("t", "u")),)
OWNS_BOTH = bytes.fromhex("0001 00000001 0001 74 ffffffff 00000001 0001 74 00000002 00000000 00000001")
ASSIGNED_ONE = bytes.fromhex("0001 00000001 0001 74 00000001 00000000 ffffffff")


def last_group(coordinator: Coordinator) -> GroupMetadataValue:
    fact = coordinator.log[-1]
    assert isinstance(fact, GroupRecord)
    assert isinstance(fact.value, GroupMetadataValue)
    return fact.value


def test_a_newcomer_is_given_an_id_and_comes_back_with_it() -> None:
    coordinator = Coordinator()
    reply = coordinator.answers[coordinator.join()]
    assert reply == JoinReply(ErrorCode.MEMBER_ID_REQUIRED, "app-00000000-0000-0000-0000-000000000001")
    joined = coordinator.answers[coordinator.join(member_id=reply.member_id)]
    assert joined.code is ErrorCode.NONE
    assert (joined.member_id, joined.leader, joined.generation_id) == (reply.member_id, reply.member_id, 1)
    assert (joined.protocol_type, joined.protocol_name) == ("consumer", "range")
    assert [each.member_id for each in joined.members] == [reply.member_id]
    assert coordinator.phase == "CompletingRebalance"
    assert coordinator.log == [], "nothing is worth remembering before it is assigned"


def test_an_old_client_is_taken_in_at_once() -> None:
    coordinator = Coordinator()
    assert coordinator.answers[coordinator.join(needs_known_id=False)].generation_id == 1


def test_the_leaders_assignment_is_remembered_and_handed_out() -> None:
    coordinator = Coordinator()
    leader, follower = coordinator.stable(2)
    assert coordinator.phase == "Stable"
    value = last_group(coordinator)
    assert (value.generation, value.leader, value.protocol) == (2, leader.member_id, "range")
    assert {each.member_id: each.assignment for each in value.members} == {
        each.member_id: each.member_id.encode() for each in (leader, follower)
    }
    assert coordinator.answers[coordinator.sync(follower)] == SyncReply(
        protocol_type="consumer", protocol_name="range", assignment=follower.member_id.encode()
    )


def test_a_member_that_the_leader_forgot_has_nothing() -> None:
    coordinator = Coordinator()
    member_id, ticket = coordinator.enter()
    reply = coordinator.answers[coordinator.sync(coordinator.answers[ticket], assignments={"somebody else": b"x"})]
    assert reply.assignment == b""
    assert [each.member_id for each in last_group(coordinator).members] == [member_id]


REFUSED_JOINS: list[tuple[dict[str, Any], ErrorCode]] = [
    ({"group_id": ""}, ErrorCode.INVALID_GROUP_ID),
    ({"session_timeout_ms": 5_999}, ErrorCode.INVALID_SESSION_TIMEOUT),
    ({"session_timeout_ms": 1_800_001}, ErrorCode.INVALID_SESSION_TIMEOUT),
    ({"member_id": "unknown"}, ErrorCode.UNKNOWN_MEMBER_ID),
    ({"group_id": "missing", "member_id": "unknown"}, ErrorCode.UNKNOWN_MEMBER_ID),
    ({"member_id": "unknown", "group_instance_id": "unknown"}, ErrorCode.UNKNOWN_MEMBER_ID),
    ({"member_id": "unknown", "group_instance_id": "static"}, ErrorCode.FENCED_INSTANCE_ID),
    ({"protocol_type": "connect"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
    ({"protocols": (Protocol("sticky", b""),)}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
    ({"protocols": ()}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
    ({"group_id": "new", "protocols": ()}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
    ({"group_id": "new", "protocol_type": ""}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
]


@pytest.mark.parametrize(("fields", "code"), REFUSED_JOINS)
def test_joins_that_are_refused(fields: dict[str, Any], code: ErrorCode) -> None:
    coordinator = Coordinator()
    coordinator.join(group_instance_id="static")
    known = coordinator.machine.state
    reply = coordinator.answers[coordinator.join(**fields)]
    assert reply.code is code
    assert reply.member_id == fields.get("member_id", "")
    assert coordinator.machine.state == known
    assert "new" not in coordinator.machine.soft.groups


def test_a_full_group_turns_newcomers_away() -> None:
    coordinator = Coordinator(settings_of(group_initial_rebalance_delay_ms=0, group_max_size=1))
    member = coordinator.stable()[0]
    assert coordinator.answers[coordinator.join()].code is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert coordinator.answers[coordinator.join(member_id=member.member_id)].code is ErrorCode.NONE


def test_ids_are_not_handed_out_without_end() -> None:
    coordinator = Coordinator()
    coordinator.join()
    handed_out = coordinator.machine.soft.groups["g"].handed_out
    handed_out |= {f"newcomer {number}" for number in range(HANDED_OUT_MEMBER_IDS_MAX - 1)}
    assert coordinator.answers[coordinator.join()].code is ErrorCode.GROUP_MAX_SIZE_REACHED


def test_a_follower_that_says_nothing_new_does_not_disturb_the_others() -> None:
    coordinator = Coordinator()
    leader, follower = coordinator.stable(2)
    again = coordinator.answers[coordinator.join(member_id=follower.member_id)]
    assert again == follower
    assert coordinator.phase == "Stable"
    assert coordinator.beat(leader) is ErrorCode.NONE


def test_a_leader_that_rejoins_wants_a_new_assignment() -> None:
    coordinator = Coordinator()
    leader, follower = coordinator.stable(2)
    ticket = coordinator.join(member_id=leader.member_id)
    assert coordinator.waits(ticket)
    assert coordinator.beat(follower) is ErrorCode.REBALANCE_IN_PROGRESS
    coordinator.join(member_id=follower.member_id)
    assert coordinator.answers[ticket].generation_id == 3


def test_a_follower_with_another_subscription_makes_everybody_rejoin() -> None:
    coordinator = Coordinator()
    leader, follower = coordinator.stable(2)
    assert coordinator.waits(coordinator.join(member_id=follower.member_id, protocols=OTHER))
    assert coordinator.beat(leader) is ErrorCode.REBALANCE_IN_PROGRESS


def test_whoever_missed_the_answer_asks_again_while_the_generation_is_completed() -> None:
    coordinator = Coordinator()
    member_id, ticket = coordinator.enter()
    assert coordinator.answers[coordinator.join(member_id=member_id)] == coordinator.answers[ticket]
    changed = coordinator.answers[coordinator.join(member_id=member_id, protocols=OTHER)]
    assert changed.generation_id == 2


def test_a_join_that_is_repeated_answers_the_one_before() -> None:
    coordinator = Coordinator()
    leader, _ = coordinator.stable(2)
    first = coordinator.join(member_id=leader.member_id)
    second = coordinator.join(member_id=leader.member_id)
    assert coordinator.answers[first].code is ErrorCode.REBALANCE_IN_PROGRESS
    assert coordinator.waits(second)


def test_a_sync_that_is_repeated_answers_the_one_before() -> None:
    coordinator = Coordinator()
    leader, follower = coordinator.stable(2)
    tickets = [coordinator.join(member_id=each.member_id) for each in (leader, follower)]
    joined = [coordinator.answers[each] for each in tickets]
    first = coordinator.sync(joined[1])
    second = coordinator.sync(joined[1])
    assert coordinator.answers[first].code is ErrorCode.REBALANCE_IN_PROGRESS
    assert coordinator.waits(second)


def test_a_member_that_leaves_while_it_waits_is_told() -> None:
    coordinator = Coordinator()
    leader, follower = coordinator.stable(2)
    joining = coordinator.join(member_id=leader.member_id)
    coordinator.ask(Leave("g", (Leaver(leader.member_id),)))
    assert coordinator.answers[joining].code is ErrorCode.UNKNOWN_MEMBER_ID
    joined = coordinator.answers[coordinator.join(member_id=follower.member_id)]
    newcomer, ticket = coordinator.enter()
    assert coordinator.waits(ticket)
    coordinator.join(member_id=follower.member_id)
    syncing = coordinator.sync(coordinator.answers[ticket])
    coordinator.ask(Leave("g", (Leaver(newcomer),)))
    assert coordinator.answers[syncing].code is ErrorCode.UNKNOWN_MEMBER_ID
    assert joined.member_id == follower.member_id


REFUSED_REQUESTS: list[tuple[dict[str, Any], ErrorCode]] = [
    ({"group_id": ""}, ErrorCode.INVALID_GROUP_ID),
    ({"group_id": "missing"}, ErrorCode.UNKNOWN_MEMBER_ID),
    ({"member_id": "unknown"}, ErrorCode.UNKNOWN_MEMBER_ID),
    ({"member_id": ""}, ErrorCode.UNKNOWN_MEMBER_ID),
    ({"generation_id": 0}, ErrorCode.ILLEGAL_GENERATION),
    ({"generation_id": 2}, ErrorCode.ILLEGAL_GENERATION),
    ({"generation_id": -1}, ErrorCode.ILLEGAL_GENERATION),
    ({"group_instance_id": "unknown"}, ErrorCode.UNKNOWN_MEMBER_ID),
]


@pytest.mark.parametrize(("fields", "code"), REFUSED_REQUESTS)
def test_syncs_and_heartbeats_that_are_refused(fields: dict[str, Any], code: ErrorCode) -> None:
    coordinator = Coordinator()
    member = coordinator.stable()[0]
    named: dict[str, Any] = {"group_id": "g", "member_id": member.member_id, "generation_id": 1} | fields
    assert coordinator.ask(Sync(**named)) == SyncReply(code)
    assert coordinator.ask(Heartbeat(**named)) is code


def test_a_sync_for_another_protocol_is_refused() -> None:
    coordinator = Coordinator()
    member = coordinator.stable()[0]
    for fields in ({"protocol_type": "connect"}, {"protocol_name": "sticky"}):
        assert coordinator.answers[coordinator.sync(member, **fields)].code is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    reply = coordinator.answers[coordinator.sync(member, protocol_type="consumer", protocol_name="range")]
    assert reply.code is ErrorCode.NONE


def test_a_sync_comes_too_late_once_a_rebalance_has_begun() -> None:
    coordinator = Coordinator()
    leader, follower = coordinator.stable(2)
    coordinator.join(member_id=leader.member_id)
    assert coordinator.answers[coordinator.sync(follower)].code is ErrorCode.REBALANCE_IN_PROGRESS


def test_members_leave_together_and_the_rest_rebalances_once() -> None:
    coordinator = Coordinator()
    joined = coordinator.stable(3)
    reply = coordinator.ask(Leave("g", (Leaver(joined[1].member_id), Leaver("unknown"), Leaver(joined[2].member_id))))
    assert reply == CodesReply(codes=(ErrorCode.NONE, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.NONE))
    assert coordinator.answers[coordinator.join(member_id=joined[0].member_id)].generation_id == 3


def test_leaving_nothing_changes_nothing() -> None:
    coordinator = Coordinator()
    assert coordinator.ask(Leave("", (Leaver("m"),))) == CodesReply(ErrorCode.INVALID_GROUP_ID)
    assert coordinator.ask(Leave("g", (Leaver("m"),))).codes == (ErrorCode.UNKNOWN_MEMBER_ID,)
    coordinator.stable()
    unknown = Leave("g", (Leaver("", "instance"), Leaver("")))
    assert coordinator.ask(unknown).codes == (ErrorCode.UNKNOWN_MEMBER_ID,) * 2
    assert coordinator.phase == "Stable"


def test_a_newcomer_that_gives_up_disturbs_nobody() -> None:
    coordinator = Coordinator()
    coordinator.stable()
    handed_out = coordinator.answers[coordinator.join()].member_id
    assert coordinator.ask(Leave("g", (Leaver(handed_out),))).codes == (ErrorCode.NONE,)
    assert coordinator.phase == "Stable"
    assert coordinator.answers[coordinator.join(member_id=handed_out)].code is ErrorCode.UNKNOWN_MEMBER_ID


def test_the_last_one_to_leave_empties_the_group() -> None:
    coordinator = Coordinator()
    member = coordinator.stable()[0]
    coordinator.ask(Leave("g", (Leaver(member.member_id),)))
    value = last_group(coordinator)
    assert (value.generation, value.protocol_type, value.protocol, value.leader) == (2, "consumer", None, None)
    assert value.members == ()
    assert coordinator.machine.soft.groups == {}


def test_an_empty_group_may_begin_anew_with_another_protocol_type() -> None:
    coordinator = Coordinator()
    member = coordinator.stable()[0]
    coordinator.ask(Leave("g", (Leaver(member.member_id),)))
    _, ticket = coordinator.enter(protocol_type="connect", protocols=(Protocol("default", b""),))
    assert (coordinator.answers[ticket].protocol_type, coordinator.answers[ticket].generation_id) == ("connect", 3)


def test_a_member_may_rejoin_with_other_time_outs() -> None:
    coordinator = Coordinator()
    member = coordinator.stable(session_timeout_ms=60_000)[0]
    joined = coordinator.answers[coordinator.join(member_id=member.member_id, session_timeout_ms=10_000)]
    coordinator.assign([joined])
    coordinator.pass_time(10)
    assert coordinator.phase == "-"


# ---- static members


def static(coordinator: Coordinator, **more: Any) -> JoinReply:
    reply: JoinReply = coordinator.answers[coordinator.join(group_instance_id="i", **more)]
    return reply


def test_a_static_member_needs_no_second_join() -> None:
    joined = static(Coordinator())
    assert joined.code is ErrorCode.NONE
    assert joined.member_id.startswith("i-")


def test_a_static_member_comes_back_without_a_rebalance() -> None:
    coordinator = Coordinator()
    old = static(coordinator)
    coordinator.assign([old])
    new = static(coordinator)
    assert new.member_id != old.member_id
    assert (new.generation_id, new.leader, new.skip_assignment) == (1, new.member_id, True)
    assert [each.member_id for each in new.members] == [new.member_id]
    assert coordinator.phase == "Stable"
    assert coordinator.answers[coordinator.sync(new, group_instance_id="i")].assignment == old.member_id.encode()
    assert [each.member_id for each in last_group(coordinator).members] == [new.member_id]
    assert coordinator.beat(old, group_instance_id="i") is ErrorCode.FENCED_INSTANCE_ID
    assert coordinator.beat(old) is ErrorCode.UNKNOWN_MEMBER_ID


def test_an_older_client_that_led_is_kept_from_assigning() -> None:
    coordinator = Coordinator()
    old = static(coordinator)
    coordinator.assign([old])
    new = static(coordinator, may_skip_assignment=False)
    assert (new.leader, new.members, new.skip_assignment) == (old.member_id, (), False)
    assert coordinator.answers[coordinator.sync(new)].assignment == old.member_id.encode()


def test_a_static_member_whose_protocols_change_the_vote_makes_everybody_rejoin() -> None:
    coordinator = Coordinator()
    both = (Protocol("range", subscription("t")), Protocol("sticky", subscription("t")))
    coordinator.assign([static(coordinator, protocols=both)])
    assert static(coordinator, protocols=both[1:]).generation_id == 2


def test_a_static_member_that_was_to_give_up_partitions_comes_back_to_another_round() -> None:
    coordinator = Coordinator()
    old = static(coordinator, protocols=(Protocol("cooperative-sticky", OWNS_BOTH),))
    coordinator.sync(old, assignments={old.member_id: ASSIGNED_ONE})
    new = static(coordinator, protocols=(Protocol("cooperative-sticky", subscription("t")),))
    assert (new.generation_id, new.skip_assignment) == (2, False)
    coordinator.sync(new, assignments={new.member_id: ASSIGNED_ONE})
    newer = static(coordinator, protocols=(Protocol("cooperative-sticky", subscription("t")),))
    assert newer.generation_id == 2, "it had nothing to give up this time"


def test_a_static_member_that_comes_back_while_it_waits_fences_itself() -> None:
    coordinator = Coordinator()
    leader, _ = coordinator.stable(2)
    waiting = coordinator.join(group_instance_id="i")
    newer = coordinator.join(group_instance_id="i")
    assert coordinator.answers[waiting].code is ErrorCode.FENCED_INSTANCE_ID
    assert coordinator.waits(newer)
    coordinator.ask(Leave("g", (Leaver(leader.member_id),)))


def test_a_static_member_that_comes_back_while_others_sync_begins_another_round() -> None:
    coordinator = Coordinator()
    old = static(coordinator)
    ticket = coordinator.join(group_instance_id="other")
    joined = [coordinator.answers[coordinator.join(member_id=old.member_id, group_instance_id="i")]]
    joined.append(coordinator.answers[ticket])
    follower = next(each for each in joined if not each.members)
    syncing = coordinator.sync(follower)
    instance = "i" if follower.member_id == old.member_id else "other"
    again = coordinator.join(group_instance_id=instance)
    assert coordinator.answers[syncing].code is ErrorCode.FENCED_INSTANCE_ID
    assert coordinator.waits(again)
    assert coordinator.phase == "PreparingRebalance"


def test_an_operator_removes_a_static_member_by_its_instance_id() -> None:
    coordinator = Coordinator()
    coordinator.assign([static(coordinator)])
    assert coordinator.ask(Leave("g", (Leaver("", "i"),))).codes == (ErrorCode.NONE,)
    assert coordinator.phase == "-"
    assert coordinator.ask(Leave("g", (Leaver("x", "i"),))).codes == (ErrorCode.UNKNOWN_MEMBER_ID,)


def test_a_handed_out_id_is_not_for_static_members() -> None:
    coordinator = Coordinator()
    handed_out = coordinator.answers[coordinator.join()].member_id
    refused = coordinator.answers[coordinator.join(member_id=handed_out, group_instance_id="i")]
    assert refused.code is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_static_member_that_came_back_has_the_session_of_its_new_id_alone() -> None:
    coordinator = Coordinator()
    coordinator.assign([static(coordinator, session_timeout_ms=10_000)])
    coordinator.pass_time(9)
    static(coordinator, session_timeout_ms=10_000)
    coordinator.pass_time(9)
    assert coordinator.phase == "Stable"
    coordinator.pass_time(1)
    assert coordinator.phase == "-"


def test_a_static_member_that_came_back_is_not_waited_for_under_its_old_id() -> None:
    coordinator = Coordinator()
    long = {"session_timeout_ms": 100_000, "rebalance_timeout_ms": 30_000}
    members = coordinator.stable(2, **long)
    coordinator.join(group_instance_id="i", **long)
    tickets = [coordinator.join(member_id=each.member_id, **long) for each in members]
    for ticket in tickets:
        coordinator.sync(coordinator.answers[ticket])
    assert coordinator.phase == "Stable"
    static(coordinator, **long)
    coordinator.pass_time(31)
    assert coordinator.phase == "Stable"


def test_the_id_of_a_member_names_its_client() -> None:
    coordinator = Coordinator()
    ticket = coordinator.join()
    assert coordinator.answers[ticket].member_id.startswith(f"{CLIENT.id}-")


def test_the_longest_names_fit_into_a_record() -> None:
    coordinator = Coordinator()
    longest = "ü" * 16_000
    joined = coordinator.answers[coordinator.join(group_instance_id=longest)]
    coordinator.assign([joined])
    assert [each.group_instance_id for each in last_group(coordinator).members] == [longest]
    assert len(joined.member_id) < 1_100
