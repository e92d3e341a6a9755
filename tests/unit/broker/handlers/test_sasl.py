"""SaslHandshake, SaslAuthenticate on a listener without SASL."""

import pytest

from riverlog.model.checkpoint_topic import CHECKPOINTS_PRINCIPAL, OWN_MECHANISM
from riverlog.model.errors import ErrorCode
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from riverlog.wire.messages.sasl_handshake import SaslHandshakeRequest
from tests.support.asking import serving
from tests.support.world import SECRET


@pytest.mark.parametrize("version", [0, 1])
async def test_nobody_is_to_say_who_is_there(version: int) -> None:
    async with serving() as (line, _node):
        agreed = await line.ask(ApiKey.SASL_HANDSHAKE, version, SaslHandshakeRequest("PLAIN"))
        assert (agreed.error_code, agreed.mechanisms) == (ErrorCode.ILLEGAL_SASL_STATE, [])
        told = await line.ask(ApiKey.SASL_AUTHENTICATE, version, SaslAuthenticateRequest(b"\0alice\0secret"))
        assert told.error_code == ErrorCode.ILLEGAL_SASL_STATE
        assert "PLAINTEXT" in told.error_message


async def test_a_part_of_the_node_is_known_by_its_secret_alone() -> None:
    async with serving() as (line, _node):
        agreed = await line.ask(ApiKey.SASL_HANDSHAKE, 1, SaslHandshakeRequest(OWN_MECHANISM))
        assert (agreed.error_code, agreed.mechanisms) == (ErrorCode.NONE, [OWN_MECHANISM])
        for words, code in (
            (f"\0{CHECKPOINTS_PRINCIPAL}\0guessed", ErrorCode.ILLEGAL_SASL_STATE),
            (f"\0{CHECKPOINTS_PRINCIPAL}\0", ErrorCode.ILLEGAL_SASL_STATE),
            (f"\0alice\0{SECRET}", ErrorCode.ILLEGAL_SASL_STATE),
            (f"\0{CHECKPOINTS_PRINCIPAL}\0{SECRET}", ErrorCode.NONE),
        ):
            told = await line.ask(ApiKey.SASL_AUTHENTICATE, 1, SaslAuthenticateRequest(words.encode()))
            assert told.error_code == code, words
