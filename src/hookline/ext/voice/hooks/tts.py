"""Text to speech: answer a spoken message with speech as well. Settings: `[tts]`."""

from hookline.events import MessageSendEvent, MessageSendResult
from hookline.hooks import HooklineError
from hookline.types import HookContext


async def speak(event: MessageSendEvent, ctx: HookContext) -> MessageSendResult | None:
    """Add the sound of an answer; what hinders that is logged, and the text stands for itself."""
    app = ctx.app
    # The usual case, a written message and nothing set, must not load anything.
    if not event.is_voice and app.config.get("tts.enabled") is None:
        return None
    from hookline.ext.voice import Voice

    voice = Voice.of(app)
    try:
        enabled = voice.speaking.enabled
        if enabled is False or (enabled is None and not event.is_voice):
            return None
        part = await voice.say(event.response_text)
    except HooklineError as error:
        voice.warn_once(str(error))
        return None
    return None if part is None else MessageSendResult(parts=[part])


hooks = [("message:send", speak)]
