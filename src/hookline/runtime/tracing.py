"""Tracing: what an app keeps and sends of its dispatches, by `[trace]` and `[otel]`.

If nothing is kept or sent, no hook is compiled otherwise.
"""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hookline.observe.trace.otel import Spans
    from hookline.observe.trace.settings import Level, TraceSettings
    from hookline.observe.trace.store import TraceStore
    from hookline.observe.trace.tracer import Tracer

    from .app import Hookline

PLUGIN = "trace"
SPANS = "trace-spans"


class Tracing:
    """The trace of one app."""

    def __init__(self, app: Hookline) -> None:
        self._app = app
        self.tracer: Tracer | None = None
        """What takes records while the app runs; None where nothing is traced."""
        self.wanted = True
        """Whether to trace at all, whatever is configured: who only looks leaves no trace."""

    async def start(self, stack: AsyncExitStack) -> None:
        """Begin where it is configured; end with the stack."""
        config = self._app.config
        if not self.wanted:
            return
        from hookline.observe.trace.settings import OtelSettings, TraceSettings

        settings = config.settings("trace", TraceSettings)
        sending = config.settings("otel", OtelSettings)
        spans: Spans | None = None
        if sending.endpoint:
            from asyncio import to_thread

            from hookline.observe.trace.otel import Spans, provider_of

            leaving = self._app.safeguards.exporting
            spans = Spans(provider_of(sending), leaving.text if leaving else None)
            stack.push_async_callback(to_thread, spans.close)
        keeps = settings.level != "off" and self._app.get_tape_store() is not None
        if keeps or spans is not None:
            self._begin(stack, settings, spans)

    def _begin(self, stack: AsyncExitStack, settings: TraceSettings, spans: Spans | None) -> None:
        from hookline.observe.trace.store import traces_of
        from hookline.observe.trace.tracer import Tracer

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
            from hookline.observe.trace.plugin import TracePlugin

            plugins[PLUGIN] = TracePlugin(app, tracer)
        if spans is not None:
            from hookline.observe.trace.plugin import SpansPlugin

            plugins[SPANS] = SpansPlugin(app, tracer.epoch, (spans,))
        tracer.pass_over(plugins.values())
        for name, plugin in plugins.items():
            app.hooks.add(plugin, name=name)
            stack.callback(app.hooks.remove, name)
        stack.callback(app.hooks.observe(tracer.observer))

    @property
    def level(self) -> Level:
        """How much is kept."""
        from hookline.observe.trace.settings import TraceSettings

        return self._app.config.settings("trace", TraceSettings).level

    async def store(self) -> TraceStore:
        """The trace of the tape, with all that happened so far."""
        from hookline.observe.trace.store import MemoryTraces, traces_of

        if self.tracer is not None:
            await self.tracer.flush()
            return self.tracer.store or MemoryTraces()
        return traces_of(self._app.store())
