"""One file per API, and the table of those that are served: one line adds one."""

from collections.abc import Mapping
from typing import Final

from riverlog.broker.dispatch import Handler
from riverlog.broker.handlers.api_versions import api_versions
from riverlog.broker.handlers.fetch import fetch
from riverlog.broker.handlers.list_offsets import list_offsets
from riverlog.broker.handlers.metadata import metadata
from riverlog.broker.handlers.offset_for_leader_epoch import offset_for_leader_epoch
from riverlog.broker.handlers.produce import produce
from riverlog.wire.apis import ApiKey

HANDLERS: Final[Mapping[ApiKey, Handler]] = {
    ApiKey.PRODUCE: produce,
    ApiKey.FETCH: fetch,
    ApiKey.LIST_OFFSETS: list_offsets,
    ApiKey.METADATA: metadata,
    ApiKey.API_VERSIONS: api_versions,
    ApiKey.OFFSET_FOR_LEADER_EPOCH: offset_for_leader_epoch,
}
