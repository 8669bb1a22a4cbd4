"""Server-Sent Events: a streamed answer over plain HTTP."""

from __future__ import annotations

from asyncio import TimerHandle, get_running_loop

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from .outbox import Outbox

BEAT = 15.0
"""Seconds between comments that keep proxies from closing an idle connection."""
COMMENT = ": still here\n\n"
HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),
]


class EventStream(Response):
    """Sends the contents of an outbox until it is closed.

    A disconnected reader is not noticed, and need not be: the turn continues, and what is written to
    the reader goes nowhere.
    """

    media_type = "text/event-stream"

    def __init__(self, outbox: Outbox, last: str = "") -> None:
        super().__init__()
        self._outbox = outbox
        self._last = last

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the events."""
        outbox = self._outbox
        beating = _Beat(outbox)
        try:
            await send({"type": "http.response.start", "status": 200, "headers": HEADERS})
            # The layers in between have seen the headers: pieces go straight to the server.
            send = scope.get("hookline.send", send)
            while events := await outbox.take():
                body = "".join(events).encode()
                await send({"type": "http.response.body", "body": body, "more_body": True})
        finally:
            beating.stop()
        last = SLOW if outbox.overflowed else self._last
        await send({"type": "http.response.body", "body": last.encode(), "more_body": False})


SLOW = (
    'event: error\ndata: {"type":"error","id":null,"message":"you read too slowly and were '
    'disconnected; the whole answer is on record"}\n\n'
)


class _Beat:
    def __init__(self, outbox: Outbox) -> None:
        self._outbox = outbox
        self._timer: TimerHandle = get_running_loop().call_later(BEAT, self._beat)

    def _beat(self) -> None:
        self._outbox.write(COMMENT)
        self._timer = get_running_loop().call_later(BEAT, self._beat)

    def stop(self) -> None:
        self._timer.cancel()
