"""The plugin `trace`: what an app keeps and sends of its dispatches, by `[trace]` and `[otel]`.

    traces = await Tracing.of(app).store()

If nothing is kept or sent, no hook is compiled otherwise.
"""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Self

from hookline.hooks import hookimpl

if TYPE_CHECKING:
    from hookline.runtime.app import Hookline

    from .otel import Spans
    from .settings import Level, TraceSettings
    from .store import TraceStore
    from .tracer import Tracer

FULL = "trace-full"
SPANS = "trace-spans"


class Tracing:
    """The trace of one app."""

    def __init__(self, app: Hookline) -> None:
        self._app = app
        self.tracer: Tracer | None = None
        """What takes records while the app runs; None where nothing is traced."""
        self._stack = AsyncExitStack()

    @classmethod
    def of(cls, app: Hookline) -> Self:
        """The trace of an app; one that records nothing if the plugin is not loaded."""
        return app.extensions.get(cls) or cls(app)

    @hookimpl(tryfirst=True)
    async def hookline_startup(self) -> None:
        """Begin to record, before any other plugin starts."""
        if not self._app.passive:
            await self._start(self._stack)

    @hookimpl(trylast=True)
    async def hookline_shutdown(self) -> None:
        """Keep what is left, after all other plugins stopped."""
        await self._stack.aclose()

    async def _start(self, stack: AsyncExitStack) -> None:
        config = self._app.config
        from .settings import OtelSettings, TraceSettings

        settings = config.settings("trace", TraceSettings)
        sending = config.settings("otel", OtelSettings)
        spans: Spans | None = None
        if sending.endpoint:
            from asyncio import to_thread

            from .otel import Spans, provider_of

            leaving = self._app.safeguards.exporting
            spans = Spans(provider_of(sending), leaving.text if leaving else None)
            stack.push_async_callback(to_thread, spans.close)
        keeps = settings.level != "off" and self._app.get_tape_store() is not None
        if keeps or spans is not None:
            self._begin(stack, settings, spans)

    def _begin(self, stack: AsyncExitStack, settings: TraceSettings, spans: Spans | None) -> None:
        from .store import traces_of
        from .tracer import Tracer

        app = self._app
        redactor, tape = app.safeguards.redactor, app.get_tape_store()
        tracer = self.tracer = Tracer(
            settings,
            traces_of(tape) if settings.level != "off" and tape is not None else None,
            redact=redactor.redact if redactor is not None else None,
            listeners=(spans,) if spans is not None else (),
        )
        stack.callback(setattr, self, "tracer", None)
        stack.push_async_callback(tracer.close)
        plugins: dict[str, object] = {}
        if settings.level == "full":
            from .recorders import TracePlugin

            plugins[FULL] = TracePlugin(app, tracer)
        if spans is not None:
            from .recorders import SpansPlugin

            plugins[SPANS] = SpansPlugin(app, tracer.epoch, (spans,))
        tracer.pass_over(plugins.values())
        for name, plugin in plugins.items():
            app.hooks.add(plugin, name=name)
            stack.callback(app.hooks.remove, name)
        stack.callback(app.hooks.observe(tracer.observer))

    @property
    def level(self) -> Level:
        """How much is kept."""
        from .settings import TraceSettings

        return self._app.config.settings("trace", TraceSettings).level

    async def store(self) -> TraceStore:
        """The trace of the tape, with all that happened so far."""
        from .store import MemoryTraces, traces_of

        if self.tracer is not None:
            await self.tracer.flush()
            return self.tracer.store or MemoryTraces()
        return traces_of(self._app.store())
