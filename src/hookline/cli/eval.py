"""`hookline eval`: run an agent on cases, and compare a change of hooks or policy over them."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from .json_output import Json, print_json
from .options import Workspace, configure
from .replay import Pack, Plugin

if TYPE_CHECKING:
    from hookline.runtime.agent import Agent
    from hookline.runtime.app import Hookline
    from hookline.runtime.evals import EvalComparison, EvalReport, EvalRun
    from hookline.runtime.evals.file import EvalFile


def add(cli: typer.Typer, app: Hookline) -> None:
    """Add `hookline eval`."""

    @cli.command("eval")
    def eval_(
        file: Annotated[
            Path,
            typer.Argument(help="Python with `agent` and `cases`, or TOML, YAML, JSON, JSON Lines."),
        ],
        runs: Annotated[int | None, typer.Option(help="How often each case is run; once.")] = None,
        at_least: Annotated[
            float | None, typer.Option(help="The share of all runs that must pass; 1.0 is all.")
        ] = None,
        concurrency: Annotated[
            int | None, typer.Option(help="How many runs go on at the same time; 4.")
        ] = None,
        case: Annotated[list[str] | None, typer.Option(help="Only this case.")] = None,
        plugin: Plugin = None,
        pack: Pack = None,
        against: Annotated[
            Path | None, typer.Option(help="Compare with a report that --json wrote earlier.")
        ] = None,
        model: Annotated[
            str | None, typer.Option(help="The model that answers, for cases without an agent.")
        ] = None,
        junit: Annotated[Path | None, typer.Option(help="Write the report as JUnit XML.")] = None,
        html_file: Annotated[Path | None, typer.Option("--html", help="Write a page.")] = None,
        workspace: Workspace = None,
        as_json: Json = False,
    ) -> None:
        """Run an agent on cases; compare a change over them."""
        configure(app, model, workspace)
        options = {"runs": runs, "at_least": at_least, "concurrency": concurrency}
        given = {name: value for name, value in options.items() if value is not None}
        order = EvalOrder(app, file, given, case or [], plugin or [], pack or [], against)
        run_eval(order, junit, html_file, as_json=as_json)


@dataclass(frozen=True, slots=True)
class EvalOrder:
    """What is evaluated, and with which changes."""

    app: Hookline
    file: Path
    options: dict[str, Any]
    cases: list[str]
    plugins: Sequence[Path] = ()
    packs: Sequence[str] = ()
    against: Path | None = None

    @property
    def has_changes(self) -> bool:
        """Whether plugins or packs are tried."""
        return bool(self.plugins or self.packs)


def run_eval(order: EvalOrder, junit: Path | None, html_file: Path | None, *, as_json: bool) -> None:
    """Evaluate, print or write the report, and exit with 1 if a threshold was missed."""
    import asyncio

    from hookline.runtime.evals import EvalComparison

    from .tape import write_whole
    from .terminal import show_document

    found = asyncio.run(evaluated(order))
    report = found.after if isinstance(found, EvalComparison) else found
    if junit is not None:
        write_whole(junit, report.junit())
    document = found.document()
    if html_file is not None:
        write_whole(html_file, document.page())
    if as_json:
        print_json(found.data(), indent=2)
    else:
        show_document(document)
    if not report.ok:
        raise typer.Exit(1)


async def evaluated(order: EvalOrder) -> EvalReport | EvalComparison:
    """The report; if something is to be compared, the comparison."""
    before = earlier(order.against) if order.against is not None else None
    if before is None and order.has_changes:
        before = await evaluate_once(replace(order, plugins=(), packs=()))
    report = await evaluate_once(order)
    return report if before is None else report.compare(before)


def earlier(path: Path) -> EvalReport:
    """A report of an earlier evaluation, or what came out of an earlier comparison."""
    from hookline.errors import EvalError
    from hookline.runtime.evals.report import read_report
    from hookline.text.foreign_json import parse_json

    try:
        data: Any = parse_json(path.read_bytes())
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        raise EvalError(f"--against {path}: {why}") from None
    after: Any = cast("dict[str, Any]", data).get("after", data) if isinstance(data, dict) else data
    return read_report(after, f"--against {path}")


async def evaluate_once(order: EvalOrder) -> EvalReport:
    """Read the file, apply the changes to its agent, and evaluate it."""
    from hookline.observe.replay.plugins import add_plugin
    from hookline.runtime.evals import evaluate
    from hookline.runtime.evals.file import read_file

    found = read_file(order.file, order.app.hooks, order.app.trust)
    cases, options = found.only(order.cases), {**found.options, **order.options}
    agent = changed_agent(order, found)
    async with agent:
        if order.plugins:
            target = await agent._app()  # pyright: ignore[reportPrivateUsage]
            for path in order.plugins:
                add_plugin(target, path)
        label = "after the change" if order.has_changes else order.file.name
        with progress(len(cases) * options.get("runs", 1), label) as tell:
            report = await evaluate(agent, cases, tell=tell, **options)
    report.title = f"Evaluation of {order.file.name}"
    return report


def changed_agent(order: EvalOrder, found: EvalFile) -> Agent[Any]:
    """The agent of the file, or of the settings, with packs on top."""
    from hookline.observe.replay.app import with_packs
    from hookline.policy.pack import find_pack, load_pack
    from hookline.runtime.agent import Agent
    from hookline.runtime.agent_parts import CONFIGURED, plain_policy
    from hookline.tape.memory import MemoryTapeStore

    app, agent = order.app, found.agent
    if agent is not None:
        if order.packs:
            packs = [load_pack(find_pack(str(name), Path.cwd(), {})) for name in order.packs]
            own = agent._policy or plain_policy(None)  # pyright: ignore[reportPrivateUsage]
            agent._policy = own.with_packs(packs)  # pyright: ignore[reportPrivateUsage]
        return agent
    made = Agent(app._model or CONFIGURED, tape=MemoryTapeStore())  # pyright: ignore[reportPrivateUsage]
    return made._settled(  # pyright: ignore[reportPrivateUsage]
        home=app.home,
        workspace=app.workspace,
        profile=app.config.profile,
        project=app.project,
        overrides=with_packs(app, order.packs),
        without=app.absences.without,
        on_load_error=app.absences.on_load_error,
    )


@contextmanager
def progress(runs: int, label: str) -> Generator[Callable[[EvalRun], None]]:
    """A bar on a terminal; nothing elsewhere."""
    from rich.progress import Progress

    from .console import GuardedConsole

    console = GuardedConsole(stderr=True)
    if not console.is_terminal:
        yield lambda run: None
        return
    with Progress(*Progress.get_default_columns(), console=console, transient=True) as bar:
        task = bar.add_task(label, total=runs)
        yield lambda run: bar.advance(task)
