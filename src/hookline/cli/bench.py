"""`hookline bench`: how fast turns are with your settings, plugins and model, and where the time goes.

    result = await measure(app, turns=200, concurrency=8)
    print(result.turns_per_second, result.shares)

Each turn is a new session. The tape of the turns is a file of its own beside the home's, deleted
afterwards: nothing is left in the home.
"""

from __future__ import annotations

import asyncio
import statistics
from collections.abc import AsyncIterator, Callable
from dataclasses import asdict, dataclass, field
from time import perf_counter, process_time
from typing import TYPE_CHECKING, Annotated, Any
from uuid import uuid4

import typer

from hookline.errors import BadInput
from hookline.hooks import HooklineError, hookimpl
from hookline.hooks.observers import Dispatch
from hookline.system.private_files import private_folder
from hookline.types import StreamEvent

from . import FAILED, beside
from .json_output import Json, print_json
from .options import Model, Workspace, configure

if TYPE_CHECKING:
    from hookline.models import Model as AnyModel
    from hookline.models.model import ModelRequest
    from hookline.runtime.app import Hookline

MESSAGE = "Say hello in five words."
OURS = ("builtin", "skills", "mcp", "command-hooks", "bench")
"""The plugins that are part of the runtime."""
_AROUND = ("run_model", "run_model_stream", "provide_tape_store")
"""Hooks in whose calls everything else happens."""


def add(cli: typer.Typer, app: Hookline) -> None:
    """Add `hookline bench`."""

    @cli.command()
    def bench(
        turns: Annotated[int, typer.Option(min=1, help="How many turns to make.")] = 100,
        concurrency: Annotated[int, typer.Option(min=1, help="How many at once.")] = 1,
        message: Annotated[str | None, typer.Option(help="What is said in each turn.")] = None,
        model: Model = None,
        workspace: Workspace = None,
        as_json: Json = False,
    ) -> None:
        """Measure turns with your settings, plugins and model."""
        configure(app, model, workspace)
        run_bench(app, turns, concurrency, message, as_json=as_json)


def run_bench(
    app: Hookline, turns: int, concurrency: int, message: str | None, *, as_json: bool
) -> None:
    """Measure and print the results; exit with status 1 if a turn failed."""
    found = asyncio.run(measure(app, turns=turns, concurrency=concurrency, message=message or MESSAGE))
    if as_json:
        print_json(found.as_json(), indent=2)
    else:
        typer.echo(f"{found.turns} turns with {found.model}, {found.concurrency} at once")
        typer.echo(
            f"  {found.turns_per_second:.1f} turns/s, {found.cpu_per_turn * 1e3:.2f} ms CPU each"
        )
        typer.echo(f"  p50 {found.p50 * 1e3:.1f} ms, p95 {found.p95 * 1e3:.1f} ms")
        for name, share in found.shares.items():
            typer.echo(f"  {name:8} {share:6.1%}")
    if found.failed:
        beside(f"{found.failed} turns failed: {found.first_failure}")
        raise typer.Exit(FAILED)


@dataclass(slots=True)
class BenchResult:
    """The measurements; times are in seconds."""

    model: str
    turns: int
    concurrency: int
    failed: int = 0
    seconds: float = 0.0
    turns_per_second: float = 0.0
    cpu_per_turn: float = 0.0
    p50: float = 0.0
    p95: float = 0.0
    shares: dict[str, float] = field(default_factory=dict[str, float])
    """Of the time that turns took: `model`, `tape`, `plugins`, and `rest`."""
    first_failure: str | None = None

    def as_json(self) -> dict[str, Any]:
        """The same as plain data."""
        return asdict(self)


@dataclass(slots=True)
class _Spent:
    model: float = 0.0
    tape: float = 0.0
    plugins: float = 0.0

    def dispatched(self, dispatch: Dispatch) -> None:
        if dispatch.hook not in _AROUND:
            self.plugins += sum(call.duration for call in dispatch.calls if call.by not in OURS)


async def measure(
    app: Hookline, *, turns: int = 100, concurrency: int = 1, message: str = MESSAGE
) -> BenchResult:
    """Run a number of turns, some of them concurrently, and measure them."""
    if turns < 1 or concurrency < 1:
        raise BadInput("turns and concurrency must be at least 1")
    spent = _Spent()
    model = app.models.get(app.model)
    app.models.add(_TimedModel(model, spent), app.model)
    app.hooks.add(_Tape(app, spent), name="bench")
    try:
        async with app.running():
            await app.process({"content": message, "session_id": "bench:first"})
            spent.model = spent.tape = spent.plugins = 0.0  # what loads at the first turn is no turn's
            stop_tracing = app.hooks.trace(spent.dispatched)
            try:
                return await _run_turns(app, spent, turns, concurrency, message)
            finally:
                stop_tracing()
    finally:
        app.hooks.remove("bench")
        app.models.add(model, app.model)


async def _run_turns(
    app: Hookline, spent: _Spent, turns: int, concurrency: int, message: str
) -> BenchResult:
    result = BenchResult(app.model, turns, concurrency)
    numbers, times = iter(range(turns)), list[float]()

    async def work() -> None:
        for number in numbers:
            began = perf_counter()
            try:
                await app.process({"content": message, "session_id": f"bench:{number}"})
            except HooklineError as error:
                result.failed += 1
                result.first_failure = result.first_failure or str(error)
            times.append(perf_counter() - began)

    began, cpu = perf_counter(), process_time()
    await asyncio.gather(*(work() for _ in range(concurrency)))
    result.seconds, used = perf_counter() - began, process_time() - cpu
    result.turns_per_second, result.cpu_per_turn = turns / result.seconds, used / turns
    result.p50 = statistics.median(times)
    result.p95 = sorted(times)[min(len(times) - 1, round(0.95 * len(times)))]
    total = sum(times)
    shares = {"model": spent.model, "tape": spent.tape, "plugins": spent.plugins}
    result.shares = {name: seconds / total for name, seconds in shares.items()}
    result.shares["rest"] = max(0.0, 1 - sum(result.shares.values()))
    return result


class _TimedModel:
    """A model, and how long it is waited for."""

    def __init__(self, model: AnyModel, spent: _Spent) -> None:
        self._model = model
        self._spent = spent
        self.name = model.name
        self.context_window = model.context_window

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        """The model's stream."""
        began = perf_counter()
        async for event in self._model.stream(request):
            self._spent.model += perf_counter() - began
            yield event
            began = perf_counter()
        self._spent.model += perf_counter() - began

    async def close(self) -> None:
        """Close the model."""
        await self._model.close()


class _TimedStore:
    """A store, and how long it is waited for."""

    def __init__(self, store: Any, spent: _Spent) -> None:
        self._store = store
        self._spent = spent

    def __getattr__(self, name: str) -> Callable[..., Any]:
        call = getattr(self._store, name)

        async def timed(*args: Any, **options: Any) -> Any:
            began = perf_counter()
            try:
                return await call(*args, **options)
            finally:
                self._spent.tape += perf_counter() - began

        setattr(self, name, timed)
        return timed


class _Tape:
    """Provides a tape of its own for the turns."""

    def __init__(self, app: Hookline, spent: _Spent) -> None:
        self._app = app
        self._spent = spent

    @hookimpl
    async def provide_tape_store(self) -> AsyncIterator[Any]:
        """A file next to the home's tape, on the same disk."""
        from hookline.tape import SQLiteStore

        private_folder(self._app.home)
        path = self._app.home / f"bench-{uuid4().hex}.db"
        store = SQLiteStore(path)
        try:
            yield _TimedStore(store, self._spent)
        finally:
            await store.close()
            for leftover in self._app.home.glob(f"{path.name}*"):
                leftover.unlink(missing_ok=True)
