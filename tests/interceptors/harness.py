"""The harness: one vector of the specification's test kit, run through a whole app.

The model is scripted, the tools are mocks; everything between them is what a user runs: the app and its
pipeline, the agent, the runner, the tape. The kit looks at what interceptors saw and what was recorded.
What went out and what was kept while an answer streamed it does not look at: the harness does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from agent_hooks import (
    ApprovalResolver,
    CompositionConfig,
    EnforcementMode,
    HostRegistry,
    HostSurface,
    InterceptionEmitter,
    Interceptor,
)
from agent_hooks.ctk import Capability, RunOutcome, RunRecord, Scenario, redact_paths
from agent_hooks.ctk.harness import ToolSpec as ScenarioTool

from hookline.agent.run import Limits
from hookline.agent.segments import WHOLE, Streaming
from hookline.channel import Channel
from hookline.config import Config
from hookline.errors import Blocked, ToolError
from hookline.events import MessageUpdateEvent
from hookline.ext.interceptors.host import surface
from hookline.ext.interceptors.plugin import AgentHooks
from hookline.ext.interceptors.settings import AgentHooksSettings
from hookline.hooks import Dispatch
from hookline.models import ScriptedModel
from hookline.models.script import Call, Turn
from hookline.runtime.app import Hookline
from hookline.specs import SideEffects, ToolSpec
from hookline.system.retry import RetryPolicy
from hookline.tools.registry import Registry
from hookline.tools.tool import Tool
from hookline.types import StreamEvent

SESSION = "conformance"
SURFACES = {"buffered": WHOLE, "incremental": Streaming(segment=1)}
"""The two ways in which answers go out, each declared as a surface of its own."""


@dataclass(slots=True)
class Seen:
    """Everything that left the host, or stayed in it, while a vector ran."""

    released: list[str] = field(default_factory=list[str])
    """Text, as whoever reads the stream got it."""
    updates: list[str] = field(default_factory=list[str])
    """Text, as `message_update` told it."""
    persisted: str = ""
    """The tape, in the end."""
    traced: list[str] = field(default_factory=list[str])
    """What observers of the model's results were shown."""


class HooklineHarness(Channel):
    """What the kit drives: one app for each vector."""

    tool_seam_host_error = "continue"

    def __init__(self, vector: Mapping[str, Any], streaming: Streaming = WHOLE) -> None:
        self.name = "hookline"
        self.streaming = streaming
        self.capabilities = {Capability(name) for name in self.host_surface().capabilities}
        self.seen = Seen()
        self._script: list[Any] = vector["scenario"].get("model_script", [])
        self._scenario: Scenario | None = None
        self._emitter: InterceptionEmitter | None = None
        self._invoked: list[dict[str, Any]] = []

    # --- what is declared -----------------------------------------------------------------------

    def host_surface(self) -> HostSurface:
        """The surface that an app with these settings has."""
        return surface(self.streaming)

    def declaration(self) -> dict[str, Any]:
        """The declaration of an app in which nothing but `[agent_hooks]` is set."""
        return AgentHooksSettings().document()

    # --- setting up -----------------------------------------------------------------------------

    def setup(
        self,
        scenario: Scenario,
        interceptors: list[Interceptor],
        resolver: ApprovalResolver | None,
        mode: EnforcementMode,
        composition: CompositionConfig,
        identity_provider: str | None,
        redact_for_approval: list[str] | None = None,
    ) -> None:
        """Take a vector that names its interceptors, as a document that binds them."""
        registry = HostRegistry.for_conformance(self.host_surface())
        document = self.declaration()
        configuration = document["configuration"]
        configuration["mode"] = mode.value
        configuration["composition"] = composition.to_wire()
        configuration["identity_provider"] = identity_provider
        configuration["approval"] = {"resolver": None, "redactor": None}
        if identity_provider == "ctk-fault":
            registry.identity_provider(identity_provider, _fail)
        if resolver is not None:
            registry.approval_resolver("ctk-scripted", resolver)
            configuration["approval"]["resolver"] = "ctk-scripted"
        if redact_for_approval:
            registry.approval_redactor("ctk-redact", lambda c: redact_paths(c, redact_for_approval))
            configuration["approval"]["redactor"] = "ctk-redact"
        registry.kind("ctk.instance", lambda index, _: interceptors[int(index)])
        document["bindings"] = [
            {"id": f"interceptor-{index}", "kind": "ctk.instance", "config": index}
            for index in range(len(interceptors))
        ]
        self.setup_declared(scenario, document, registry)

    def setup_declared(
        self, scenario: Scenario, document: dict[str, Any], registry: HostRegistry
    ) -> None:
        """Take a vector that is a document; one that is refused raises here."""
        self._scenario = scenario
        self._emitter = InterceptionEmitter.from_declaration_value(document, registry)

    def teardown(self) -> None:
        """Nothing is left: the app went with the run."""
        self._scenario = self._emitter = None

    # --- running --------------------------------------------------------------------------------

    async def run(self) -> RunRecord:
        """Run the scenario's message through an app."""
        with TemporaryDirectory(prefix="hookline-conformance-") as folder:
            return await self._run(Path(folder))

    async def _run(self, folder: Path) -> RunRecord:
        assert self._scenario is not None
        assert self._emitter is not None
        limits = Limits(streaming=self.streaming, retry=RetryPolicy(attempts=1))
        config = Config.load(folder, workspace=folder, environ={})
        app = Hookline(home=folder, workspace=folder, limits=limits, config=config)
        app.load_hooks(packages=False)
        app.user_home = folder  # nothing of whoever runs this
        app.tools = Registry(self._tool(tool) for tool in self._scenario.tools.values())
        app.models.add(ScriptedModel([turn_of(said["respond"]) for said in self._script]))
        app.model = "scripted"
        plugin = AgentHooks(app, self._emitter)
        app.plugins.add("agent_hooks", plugin)
        self._watch(app)
        outcome, final, error = await self._say(app, self._scenario.input["content"])
        return RunRecord(
            outcome=outcome,
            final_output=final,
            tool_invocations=list(self._invoked),
            error=error,
            identities=[(r.input_identity, r.enforced_identity) for r in plugin.records],
            records=[record.to_wire() for record in plugin.records],
        )

    async def _say(self, app: Hookline, content: str) -> tuple[RunOutcome, Any, str | None]:
        said: dict[str, Any] = {"content": content, "session_id": SESSION}
        try:
            async with app.running():
                try:
                    result = await app.process(said, self)
                finally:
                    entries = await app.store().entries(SESSION)
                    self.seen.persisted = repr([(entry.payload, entry.meta) for entry in entries])
        except Blocked as blocked:
            return RunOutcome.BLOCKED, None, str(blocked)
        except Exception as error:
            return RunOutcome.ERROR, None, str(error)
        if result.outcome == "blocked":
            return RunOutcome.BLOCKED, None, result.stopped
        return RunOutcome.COMPLETED, result.model_output, None

    def _tool(self, mock: ScenarioTool) -> Tool:
        def run(**arguments: Any) -> Any:
            self._invoked.append({"name": mock.name, "args": arguments})
            value, is_error = mock.invoke(arguments)
            if is_error:
                raise ToolError(str(value))
            return value

        spec = ToolSpec(name=mock.name, input_schema={"type": "object"}, side_effects=SideEffects.none)
        return Tool.from_spec(spec, run)

    # --- looking on -----------------------------------------------------------------------------

    def _watch(self, app: Hookline) -> None:
        seen = self.seen

        def updated(event: MessageUpdateEvent) -> None:
            seen.updates.append(event.message["content"])

        def subscribed(event: object) -> None:
            seen.traced.append(repr(event))

        def traced(dispatch: Dispatch) -> None:
            seen.traced.append(repr((dispatch.arguments, dispatch.value)))

        app.hooks.register("message_update", updated)
        app.hooks.subscribe(subscribed)
        app.hooks.trace(traced)

    def stream(self, event: StreamEvent) -> None:
        """Keep the text that is released."""
        if event.kind == "text":
            self.seen.released.append(event.data["delta"])


def turn_of(respond: Mapping[str, Any]) -> Turn:
    """A response of a vector as a turn of the scripted model."""
    pieces: list[str] = respond.get("stream", [])
    return Turn(
        text="" if pieces else respond["content"] or "",
        pieces=pieces,
        tool_calls=[Call(call["name"], call["args"], call["id"]) for call in respond["tool_calls"]],
        finish_reason=respond["finish_reason"],
        cut_off=respond.get("stream_truncated", False),
    )


def streaming_faults(vector: Mapping[str, Any], seen: Seen) -> list[str]:
    """What went out or was kept, and should not have been."""
    expect = vector["expect"]
    if "released_output" not in expect:
        return []
    faults: list[str] = []
    for name, text in (("stream", "".join(seen.released)), ("updates", "".join(seen.updates))):
        if text != expect["released_output"]:
            faults.append(f"{name}: released {text!r}, expected {expect['released_output']!r}")
    (said,) = vector["scenario"]["model_script"]
    whole: str = "".join(said["respond"]["stream"])
    assert whole.startswith(expect["released_output"])
    withheld = whole.removeprefix(expect["released_output"]).strip()
    for text in {*expect.get("persisted_must_not_contain", []), withheld} - {""}:
        if text in seen.persisted:
            faults.append(f"the tape has {text!r}, which was withheld")
        if any(text in shown for shown in seen.traced):
            faults.append(f"the trace has {text!r}, which was withheld")
    if withheld == "" and whole not in seen.persisted:
        faults.append("the tape has not the answer that was released")
    return faults


def _fail(context: Any) -> str:
    raise RuntimeError("a provider that fails")
