"""Delivery: where the answer of a turn goes that no person's message started.

A plugin starts a turn with `app.process({"content": ..., "session_id": ...})` or by a trigger's
event. If neither names a channel, the answer goes where the people of the session are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hookline.types import Envelope, address_of, field_of

if TYPE_CHECKING:
    from .app import Hookline


async def session_address(app: Hookline, session_id: str) -> tuple[str, str] | None:
    """The channel and chat of a session: those of its last message that came through a channel.

    A session without one yet may be named after them, as `resolve_session` does by default.
    """
    from hookline.tape.entry import TURN

    for entry in reversed(await app.store().entries(session_id, kinds={TURN})):
        address = address_of(entry.payload.get("envelope") or {})
        if is_channel(address[0]):
            return address
    channel, _, chat_id = session_id.partition("#")[0].partition(":")
    return (channel, chat_id) if chat_id and is_channel(channel) else None


async def answer_address(app: Hookline, message: Envelope) -> Envelope | None:
    """Where the people are whom a turn is for that none of them started; None: nowhere.

    That is the chat that a trigger answers to, or else the chat of the session.
    """
    chosen, session_id = field_of(message, "answer_to"), field_of(message, "session_id")
    if chosen:
        channel, chat_id = str(chosen), address_of(message)[1]
    elif session_id and (found := await session_address(app, str(session_id))) is not None:
        channel, chat_id = found
    else:
        return None
    return {"channel": channel, "chat_id": chat_id, "session_id": session_id, "content": ""}


async def to_session(app: Hookline, outbound: Envelope) -> Envelope:
    """An outbound envelope, addressed to the channel of its session unless it names one.

    `unprompted` tells the channel that it answers no message of the person.
    """
    session_id = field_of(outbound, "session_id")
    if not session_id or address_of(outbound)[0] != "default":
        return outbound
    address = await session_address(app, str(session_id))
    if address is None:
        return outbound
    from hookline.agent.journal import field_names

    fields = {name: field_of(outbound, name) for name in field_names(outbound)}
    return {**fields, "channel": address[0], "chat_id": address[1], "unprompted": True}


def is_channel(name: str) -> bool:
    """Whether a message with this channel came through one: not from a trigger or from code."""
    return name not in ("", "default", "trigger") and not name.startswith("trigger:")
