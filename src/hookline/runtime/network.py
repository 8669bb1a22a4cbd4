"""The network gate: it decides on each connection that a sandboxed child opens.

The order is that of a tool call: the hook `network_request`, then the packs and the floor, then a
person if one can be asked. Without an answer in time the connection is refused.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from typing import TYPE_CHECKING, Any

from hookline.agent.journal import decisions
from hookline.events import NetworkRequestEvent
from hookline.hooks import Decision, Ruling
from hookline.hooks.errors import error_text
from hookline.tape import DECISION
from hookline.types import NOBODY, Identity

if TYPE_CHECKING:
    from hookline.sandbox.proxy import NetworkRequest

    from .app import Hookline

log = logging.getLogger("hookline")

HOOK = "network_request"
SANDBOX = "sandbox"
"""Who decides by the hosts in the settings of the sandbox."""
MOST_NOTED = 100
"""Different decisions of one call that are written on the tape."""
MOST_CALLS = 256
MOST_COMMAND = 1000
"""Characters of a command on the tape."""
SECONDS = 120.0
"""How long a connection waits for a person; the program gives up sooner or later."""


class NetworkGate:
    """Judges the connections of one app's children."""

    def __init__(self, app: Hookline) -> None:
        self._app = app
        self._noted: OrderedDict[tuple[str, str], set[tuple[str, ...]]] = OrderedDict()
        """What the tape has of the last calls, so that a child which tries again adds nothing."""

    async def judge(self, request: NetworkRequest) -> str | None:
        """Let a connection through (None), or say why not. A failure refuses it."""
        rulings: list[Ruling] = []
        action = self._action(request)
        if request.refused:
            rulings.append(Ruling(Decision.DENY, request.refused, by=SANDBOX))
            if not await self._note(request, rulings):
                return request.refused  # a child may try as often as it likes
            reason = request.refused
        else:
            try:
                reason = await self._decide(request, action, rulings)
            except Exception as error:
                reason = f"the connection could not be judged: {error_text(error)}"
                rulings.append(Ruling(Decision.DENY, reason, by=HOOK))
            await self._note(request, rulings)
        auditor = self._app.safeguards.auditor
        if auditor is not None:
            try:
                await auditor.decided(action, rulings, "denied" if reason else "allowed")
            except Exception as error:
                return reason or f"the decision could not be recorded: {error_text(error)}"
        return reason

    async def _note(self, request: NetworkRequest, rulings: list[Ruling]) -> bool:
        """Write a decision on the tape of the session, once for each call; whether it is a new one."""
        client = request.client
        last = rulings[-1]
        outcome = "denied" if last.decision is Decision.DENY else "allowed"
        key = (request.host, str(request.port), outcome, *(str(each.by) for each in rulings))
        noted = self._noted.setdefault((client.session_id, client.call_id), set())
        self._noted.move_to_end((client.session_id, client.call_id))
        if len(self._noted) > MOST_CALLS:
            self._noted.popitem(last=False)
        if key in noted or len(noted) >= MOST_NOTED:
            return False
        noted.add(key)
        if client.session_id:
            payload = {
                "text": f"{request.host}:{request.port}: {outcome}",
                "hook": HOOK,
                "call_id": client.call_id,
                "host": request.host,
                "port": request.port,
                "scheme": request.scheme,
                "child": client.kind,
                "command": client.command[:MOST_COMMAND],
                "outcome": outcome,
            }
            try:
                tape = await self._app.tape(client.session_id)
                await tape.append(DECISION, payload, meta=decisions(rulings))
            except Exception as error:  # it is in the audit log all the same
                log.warning("network.not_on_the_tape session=%s: %s", client.session_id, error)
        return True

    async def _decide(
        self, request: NetworkRequest, action: dict[str, Any], rulings: list[Ruling]
    ) -> str | None:
        app, client = self._app, request.client
        questions: list[str] = []
        hook = app.hooks[HOOK]
        if hook.live:
            event = NetworkRequestEvent(
                request.host,
                request.port,
                request.scheme,
                client.kind,
                client.command,
                client.call_id,
            )
            verdict = await hook.fire(event, app.context(client.session_id, self._identity(request)))
            rulings.extend(verdict.trail)
            if verdict.denied:
                return verdict.reason or f"{verdict.decided_by} refused {request.host}"
            if verdict.asked:
                questions.append(verdict.reason or f"connect to {request.host}?")
        rulings.append(Ruling(Decision.ALLOW, by=SANDBOX))  # its settings name the host
        for who in self._identity(request).everyone:  # the strictest decision counts
            theirs = {**action, **_caller(who), "authorized": True}
            for ruling in (await app.policy.judge(theirs))[1:]:  # without the default, which allows
                rulings.append(ruling)
                if ruling.decision is Decision.DENY:
                    return ruling.reason or f"{ruling.by} refuses {request.host}"
                if ruling.decision is Decision.ASK:
                    questions.append(ruling.reason or f"connect to {request.host}?")
        questions = list(dict.fromkeys(questions))
        return await self._ask(action, "; ".join(questions), rulings) if questions else None

    async def _ask(self, action: dict[str, Any], question: str, rulings: list[Ruling]) -> str | None:
        app = self._app
        lineage = [str(key) for key in app.hooks.line_of(action["session_id"])]
        request = {**action, "question": question, "lineage": lineage, "diff": None}
        resolve = app.runner.resolver(app.context(action["session_id"]))
        try:
            async with asyncio.timeout(SECONDS):
                ruling = await app.safeguards.approve(request, resolve)
        except TimeoutError:
            ruling = Ruling(Decision.DENY, f"nobody answered: {question}", by="resolve_approval")
        rulings.append(ruling)
        return None if ruling.decision is Decision.ALLOW else str(ruling.reason)

    def _action(self, request: NetworkRequest) -> dict[str, Any]:
        """The connection as an action, for policies and records."""
        client = request.client
        who = self._identity(request)
        ctx = self._app.context(client.session_id, who)
        host = f"[{request.host}]" if ":" in request.host else request.host
        action: dict[str, Any] = {
            "kind": "network.request",
            "tool": HOOK,
            "name": HOOK,
            "namespace": "",
            "arguments": {"url": f"{request.scheme}://{host}:{request.port}/"},
            "call_id": client.call_id,
            "session_id": client.session_id,
            "agent_id": ctx.agent_id,
            "depth": ctx.depth,
            "source": client.kind,
            **_caller(who),
            "side_effects": "external",
            "permissions": [],
            "workspace": str(self._app.workspace),
        }
        if who.others:
            action["participants"] = [one.plain() for one in who.everyone]
        return action

    def _identity(self, request: NetworkRequest) -> Identity:
        """On whose behalf the child runs: that of its call, or of the turn of its session."""
        client = request.client
        if client.identity != NOBODY or not client.session_id:
            return client.identity
        return self._app.context(client.session_id).identity


def _caller(who: Identity) -> dict[str, str]:
    """The fields of an action that say who acts."""
    return {"channel": who.channel, "chat": who.chat, "user": who.user}
