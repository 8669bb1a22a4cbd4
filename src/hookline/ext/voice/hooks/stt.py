"""Speech to text: transcribe the recordings in a message. Settings: `[stt]`."""

import logging

from hookline.events import MessageReceiveEvent, MessageReceiveResult
from hookline.hooks import HooklineError
from hookline.types import AudioPart, HookContext, Part, TextPart

log = logging.getLogger("hookline.ext.voice")


async def transcribe(event: MessageReceiveEvent, ctx: HookContext) -> MessageReceiveResult | None:
    """Put a transcript in the place of each recording; one that is bad rejects the message."""
    if not any(isinstance(part, AudioPart) for part in event.parts):
        return None
    try:
        from hookline.ext.voice import Voice

        voice = Voice.of(ctx.app)
        if voice.hearing.enabled is False:
            return None
        parts: list[Part] = [
            TextPart(await voice.hear(part)) if isinstance(part, AudioPart) else part
            for part in event.parts
        ]
    except HooklineError as error:
        return MessageReceiveResult(action="reject", reason=str(error))
    except Exception:  # let through, the recording would go to a model that cannot listen
        log.exception("voice.not_heard")
        return MessageReceiveResult(action="reject", reason="the recording could not be understood")
    return MessageReceiveResult(action="transform", parts=parts)


hooks = [("message:receive", transcribe)]
