"""Subagents: agents that an agent gives a task to, under everything that guards the agent itself.

    result = await app.subagents.run("count the tests", parent="garden")
    print(result.status, result.text)

A subagent runs on a session of its own, which is nested in its parent's: handlers of the parent's scope
see it too. What it may use is never more than what its parent may use.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from hookline.errors import AgentError
from hookline.events import SubagentEndEvent, SubagentStartEvent, SubagentStatus
from hookline.hooks.errors import error_text, suggestion
from hookline.sandbox.settings import strictest
from hookline.tools.context import calling
from hookline.types import NOBODY, HookContext, Identity, StreamEvent

from .subagent_task import Context, Role, SubagentResult, Task
from .turn import ActiveTurn

if TYPE_CHECKING:
    from collections.abc import Callable

    from hookline.agent.run import AgentRun, Limits
    from hookline.tape import Tape

    from .app import Hookline

DELEGATE = "delegate"


class Subagents:
    """The subagents of one app."""

    def __init__(self, app: Hookline) -> None:
        self._app = app
        self.roles: dict[str, Role] = {}
        self._configured: set[str] = set()
        self._places: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()
        self.reload()

    def reload(self) -> None:
        """Read the roles in the configuration again; the roles that plugins define stay."""
        config = self._app.config
        for name in self._configured:
            self.roles.pop(name, None)
        self._configured = set(config.section("agents"))
        for name in self._configured:
            role = config.settings(f"agents.{name}", Role)
            self.define(role.model_copy(update={"name": name}))

    def define(self, role: Role) -> Role:
        """Make a kind of subagent known by its name."""
        self.roles[role.name] = role
        return role

    async def run(
        self,
        text: str,
        *,
        parent: str,
        label: str = "",
        role: str = "",
        context: Context | None = None,
        tools: Sequence[str] | None = None,
        skills: Sequence[str] | None = None,
        task_id: str | None = None,
        report: Callable[[str], None] | None = None,
        identity: Identity | None = None,
    ) -> SubagentResult:
        """Give one task to a subagent of a session, and wait for its result.

        `context` is "temporary" (the task alone), "inherit" (the parent's conversation so far) or
        "named" (what this role did before in this conversation). The subagent acts for the user of the
        turn that starts it, and for `identity` if that is someone else.
        """
        task = Task(
            text,
            label,
            role,
            context,
            tuple(tools) if tools is not None else None,
            tuple(skills) if skills is not None else None,
        )
        if task_id is not None:
            task = replace(task, id=task_id)
        return (await self.run_all([task], parent=parent, report=report, identity=identity))[0]

    async def run_all(
        self,
        tasks: Iterable[Task],
        *,
        parent: str,
        report: Callable[[str], None] | None = None,
        identity: Identity | None = None,
    ) -> list[SubagentResult]:
        """Give several tasks to as many subagents at once; results come in the order of the tasks."""
        tasks = list(tasks)
        above = self._app.sessions.run(parent)
        who = await self._identity(parent, above, identity)
        made = [self._plan(task, parent, above, who) for task in tasks]  # all can be given, or none is
        places = self._places_of(parent, above)

        async def one(task: Task, plan: _Plan) -> SubagentResult:
            async with places:
                with self._confined(plan):
                    return await self._run(task, plan, parent, above, report)

        if len(made) == 1:
            return [await one(tasks[0], made[0])]
        async with asyncio.TaskGroup() as group:
            running = [group.create_task(one(*pair)) for pair in zip(tasks, made, strict=True)]
        return [task.result() for task in running]

    async def _identity(self, parent: str, above: AgentRun | None, given: Identity | None) -> Identity:
        """On whose behalf a subagent acts.

        Without a running turn (a task in the background, or code outside of turns) it acts for the
        user of the tool call that it is started from, or of the session's latest turn.
        """
        call = calling()
        if given is None and call is not None:
            given = call.identity
        if above is not None:
            return (
                above.identity if given in (None, above.identity) else above.identity.joined_by(given)
            )
        if given is not None:
            return given
        turn = self._app.sessions.turn(parent)
        if turn is not None and turn.identity != NOBODY:
            return turn.identity
        turns = await self._app.store().entries(parent, kinds={"turn"}, newest_first=True, limit=2)
        kept = (entry.payload.get("identity") for entry in turns)
        return Identity.restored(next((found for found in kept if found), None))

    def _confined(self, plan: _Plan) -> AbstractContextManager[None]:
        """Let no child of the subagent start in a looser profile than its role and `[sandbox]` say."""
        if plan.role.sandbox is None and not self._app.config.get("sandbox.subagents"):
            return nullcontext()
        sandbox = self._app.sandbox
        return sandbox.at_most(
            strictest(plan.role.sandbox or "off", sandbox.settings.subagents or "off")
        )

    def _places_of(self, parent: str, above: AgentRun | None) -> asyncio.Semaphore:
        places = self._places.get(parent)
        if places is None:
            places = asyncio.Semaphore(self._limits(above).subagents)
            self._places[parent] = places
        return places

    def _limits(self, above: AgentRun | None) -> Limits:
        return above.limits if above is not None else self._app.limits

    # --- what a subagent may do -----------------------------------------------------------------

    def _plan(self, task: Task, parent: str, above: AgentRun | None, identity: Identity) -> _Plan:
        """The role that takes the task and its tools, or the reason why there is none."""
        if not task.text.strip():
            raise AgentError("a task for a subagent is empty: say what is to be done")
        role = self._role(task)
        depth = above.ctx.depth + 1 if above is not None else 1
        most = self._limits(above).depth
        if depth > most:
            raise AgentError(
                f"a subagent may be {most} deep, this one would be {depth}: do the task yourself"
            )
        context = task.context or role.context
        session_id = f"{parent}/{task.id}"
        if context == "named":
            if not role.name:
                raise AgentError("context 'named' needs a role, whose earlier tasks it goes on from")
            root = above.lineage[0] if above is not None and above.lineage else parent
            session_id = f"{root}/@{role.name}"
            if above is not None and session_id in (*above.lineage, parent):
                raise AgentError(f"{role.name} would wait for itself: it is in this line already")
        tools = self._tools(task, role, above, depth)
        skills = task.skills or role.skills
        return _Plan(role, context, session_id, depth, tools, skills, identity)

    def _role(self, task: Task) -> Role:
        if not task.role:
            return Role()
        role = self.roles.get(task.role)
        if role is None:
            known = ", ".join(self.roles) or "none is defined"
            raise AgentError(
                f"there is no role {task.role!r}{suggestion(task.role, list(self.roles))}; "
                f"roles are [agents.NAME] sections of the configuration ({known})"
            )
        return role

    def _tools(
        self, task: Task, role: Role, above: AgentRun | None, depth: int
    ) -> frozenset[str] | None:
        """The tools that both the task and the role name, and the parent has."""
        registry = self._app.tools
        allowed = above.tools if above is not None else None
        for wanted in (task.tools, role.tools):
            if wanted is not None:
                for name in wanted:
                    registry.get(name)  # an unknown one raises now
                allowed = frozenset(wanted) if allowed is None else allowed & frozenset(wanted)
        excluded = {*role.excluded, *([DELEGATE] if depth >= self._limits(above).depth else [])}
        if excluded:
            allowed = (allowed if allowed is not None else frozenset(registry.names())) - excluded
        return allowed

    # --- one task -------------------------------------------------------------------------------

    async def _run(
        self,
        task: Task,
        plan: _Plan,
        parent: str,
        above: AgentRun | None,
        report: Callable[[str], None] | None,
    ) -> SubagentResult:
        app = self._app
        label = task.label or plan.role.name or task.id
        ctx = above.ctx if above is not None else app.context(parent, plan.identity)
        start, end = app.hooks[SubagentStartEvent], app.hooks[SubagentEndEvent]
        if start.live:
            await start.fire(SubagentStartEvent(task.id, label, task.text), ctx)
        status: SubagentStatus = "cancelled"
        result = SubagentResult(task.id, label, plan.session_id, status, "it was cancelled")
        unnest = app.hooks.nest(plan.session_id, parent)
        try:
            turn = ActiveTurn(channel=ctx.channel, session_id=plan.session_id, identity=plan.identity)
            async with app.sessions.queue(plan.session_id).hold(turn):
                run = await self._agent(task, plan, parent, above, label)
                said = await recorded(run) if plan.context != "named" else None
                status, text = said or await self._follow(turn, run, report, label)
            if above is not None:
                above.count(run.usage)
            result = SubagentResult(task.id, label, plan.session_id, status, text, dict(run.usage))
        finally:
            unnest()
            if end.live:
                await end.fire(SubagentEndEvent(task.id, label, status, result.text), ctx)
        return result

    async def _agent(
        self, task: Task, plan: _Plan, parent: str, above: AgentRun | None, label: str
    ) -> AgentRun:
        """The run that does the task; one that a crash cut off is taken up again."""
        from hookline.agent.journal import cut_off_turn
        from hookline.agent.run import AgentRun

        app = self._app
        tape = await self._tape(plan, parent)
        cut = await cut_off_turn(tape)
        upper = above.ctx if above is not None else app.context(parent, plan.identity)
        limits = self._limits(above)
        role = plan.role
        left = limits.tokens - above.tokens if above is not None and limits.tokens else limits.tokens
        state: dict[str, Any] = {"session_id": plan.session_id, "workspace": str(app.workspace)}
        if plan.skills is not None:
            state["skills"] = list(plan.skills)
        return AgentRun(
            prompt=task.text,
            ctx=HookContext(
                session_id=plan.session_id,
                agent_id=role.name or label,
                depth=plan.depth,
                parent_session_id=parent,
                app=app,
                channel=upper.channel,
                identity=plan.identity,
            ),
            identity=plan.identity,
            tape=tape,
            tape_context=app.build_tape_context(),
            model=app.models.get(role.model or app.sessions.model_of(parent)),
            workspace=app.workspace,
            state=state,
            limits=replace(limits, steps=role.steps or limits.steps, tokens=least(role.tokens, left)),
            options=app.options,
            resume=cut if cut is not None and cut.prompt == task.text else None,
            tools=plan.tools,
            missing=app.absences.notes(),
            instructions=role.instructions,
            thinking=app.sessions.thinking_of(parent),
            lineage=(*(above.lineage if above is not None else ()), parent),
        )

    async def _tape(self, plan: _Plan, parent: str) -> Tape:
        """The subagent's tape; one that inherits is forked off before the call that made it."""
        app = self._app
        tape = await app.tape(plan.session_id)
        if plan.context != "inherit" or tape.leaf is not None:
            return tape
        above = await app.tape(parent)
        if above.leaf is None:
            return tape
        at = above.leaf.id
        for entry in reversed(await above.context_entries()):
            message = entry.payload.get("message") if entry.kind == "message" else None
            if message and message.get("tool_calls"):
                at = entry.parent_id or at
                break
            if message:
                break
        return await above.fork(plan.session_id, entry_id=at)

    async def _follow(
        self, turn: ActiveTurn, run: AgentRun, report: Callable[[str], None] | None, label: str
    ) -> tuple[SubagentStatus, str]:
        """Read a run to its end; an error is a result, a cancellation propagates."""
        app = self._app
        events = turn.start(app.engine, run)
        status, failure = "cancelled", None
        try:
            async for event in events:
                if event.kind == "error":
                    raise event.data["error"]
                if report is not None and (line := told(label, event)):
                    report(line)
            status = "completed"
            return "completed", run.text
        except Exception as error:
            status, failure = "failed", error_text(error)
            on_error = app.hooks["on_error"]
            if on_error.live:
                await on_error.fire("run_model", error, run.envelope, run.ctx.agent_id)
            return "failed", failure
        finally:
            await events.aclose()
            await turn.finish(status, failure)


@dataclass(frozen=True, slots=True)
class _Plan:
    """A task that can be given."""

    role: Role
    context: Context
    session_id: str
    depth: int
    tools: frozenset[str] | None
    skills: tuple[str, ...] | None
    identity: Identity


async def recorded(run: AgentRun) -> tuple[SubagentStatus, str] | None:
    """The recorded result of the task, if a crash only kept the parent from receiving it."""
    entries = [e for e in await run.tape.context_entries() if e.session_id == run.ctx.session_id]
    turns = [entry.payload for entry in entries if entry.kind == "turn"]
    if not turns or turns[-1]["status"] != "completed":
        return None
    said = [e.payload["message"] for e in entries if e.kind == "message"]
    return "completed", str(said[-1]["content"]) if said else ""


def told(label: str, event: StreamEvent) -> str:
    """A line that describes what a subagent is doing."""
    if event.kind == "tool_call":
        return f"{label}: {event.data['name']} {event.data['arguments']}"[:200]
    return ""


def least(*given: int | None) -> int | None:
    """The smallest of the limits that are set."""
    return min((limit for limit in given if limit is not None), default=None)
