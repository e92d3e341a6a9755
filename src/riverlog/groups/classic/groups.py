"""The classic groups of a coordinator: how they are found, resumed after a replay, taken over and dissolved."""

from riverlog.groups.classic.group import ClassicGroup
from riverlog.groups.classic.rebalance import ClassicRebalance
from riverlog.groups.commands import JoinReply, SyncReply
from riverlog.groups.effects import GroupEffects, JoinEnds, SyncEnds
from riverlog.groups.soft_state import GroupsSoftState
from riverlog.groups.state import GroupsState
from riverlog.model.errors import ErrorCode
from riverlog.model.settings import NodeSettings


class ClassicGroups:
    """The classic groups by their ids, whether they have members or only a record."""

    def __init__(self, state: GroupsState, soft: GroupsSoftState, settings: NodeSettings) -> None:
        self._state = state
        self._soft = soft
        self._settings = settings
        self.rebalance = ClassicRebalance(soft, settings)

    def find(self, group_id: str) -> ClassicGroup | None:
        """Return a group as it is now; without members, from its record."""
        group = self._soft.groups.get(group_id)
        if group is None and (value := self._state.classic.get(group_id)) is not None:
            group = ClassicGroup.from_record(group_id, value)
        return group

    def keep(self, group: ClassicGroup) -> None:
        """Keep the soft state of a group from now on."""
        self._soft.groups[group.id] = group

    def resume(self, effects: GroupEffects) -> None:
        """Resume groups with members after a replay: everybody gets a fresh session."""
        for group_id in self._state.classic:
            self._resume(group_id, effects)

    def resume_anew(self, group_id: str, effects: GroupEffects) -> None:
        """Resume a group from its record, as after a replay; whoever waits is called to join again."""
        self.dissolve(group_id, effects)
        self._resume(group_id, effects)

    def _resume(self, group_id: str, effects: GroupEffects) -> None:
        value = self._state.classic.get(group_id)
        if value is None or not value.members:
            return
        group = ClassicGroup.from_record(group_id, value)
        self._keep_with_sessions(group, effects)
        if len(group.members) > self._settings.group_max_size:
            self.rebalance.begin(group, effects)  # whoever rejoins first may stay

    def adopt(self, group: ClassicGroup, effects: GroupEffects) -> None:
        """Take over a group that was a consumer group; its members find out by being called to join."""
        self._keep_with_sessions(group, effects)
        group.write(effects)
        self.rebalance.begin(group, effects)

    def _keep_with_sessions(self, group: ClassicGroup, effects: GroupEffects) -> None:
        self.keep(group)
        for member in group.members.values():
            group.restart_session(member, effects)

    def dissolve(self, group_id: str, effects: GroupEffects) -> None:
        """Drop the soft state of a group: answer who waits and cancel all deadlines. Its record is up to the caller."""
        group = self._soft.groups.pop(group_id, None)
        if group is None:
            return
        for member_id in list(group.members):  # if the group lives on as a consumer group, so do its members
            group.answer_join(member_id, JoinReply(ErrorCode.REBALANCE_IN_PROGRESS, member_id), effects)
            group.answer_sync(member_id, SyncReply(ErrorCode.REBALANCE_IN_PROGRESS), effects)
            group.remove(member_id, effects)
        for member_id in list(group.handed_out):
            group.take_back(member_id, effects)
        effects.timers.cancel(JoinEnds(group_id))
        effects.timers.cancel(SyncEnds(group_id))
