"""Any gates and any calls: denied means not run, and what runs is what every gate allowed."""

import asyncio
from copy import deepcopy

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hookline.events import ToolCallEventResult
from hookline.policy import Policy
from hookline.tools.runner import Requested, ToolCaller

from ..effort import EFFORT
from .test_faults import LONG, SHORT, taking

words = st.sampled_from(["a", "b", "bad", "\uff42ad", "b\0d", "../bad", "", "a\nb"])
arguments = st.fixed_dictionaries(
    {"words": st.lists(words, max_size=3), "more": st.dictionaries(words, words, max_size=2)}
)
guards = st.sampled_from(
    ["allow", "none", "deny", "raise", "nonsense", "hang", "rewrite", "mutate", "ask", "unload"]
)
handlers = st.sampled_from(
    ["allow", "none", "deny", "raise", "nonsense", "rewrite", "mutate", "ask", "unload"]
)
answers = st.sampled_from(["allow", "none", "deny", "raise", "nonsense", "hang", "mutate", "unload"])
around = st.sampled_from(["once", "twice", "mutate", "not"])
behaviours = st.fixed_dictionaries(
    {
        "before": st.lists(
            st.sampled_from(["none", "rewrite", "mutate", "raise", "nonsense"]), max_size=2
        ),
        "handler": st.lists(handlers, max_size=2),
        "guard": st.lists(guards, max_size=3),
        "authorize": st.lists(answers, max_size=3),
        "judge": st.sampled_from(["allow", "deny", "ask", "raise"]),
        "approval": st.lists(answers, max_size=2),
        "around": st.lists(around, max_size=2),
    }
)


class World:
    """Gates that behave in some way, and note what they were shown and what they said."""

    def __init__(self, app, say, ran):
        self.app, self.say = app, say
        self._ran = ran
        self.no = []
        """Who said no, and how often the tool had run by then."""
        self.shown = {}
        self.attached = []

    def refuse(self, key):
        self.no.append((key, len(self._ran)))

    def attach(self, hook, handler, **options):
        self.attached.append(self.app.hooks.register(hook, handler, **options))
        return self.attached[-1]

    def gate(self, kind, number, behaviour, hook, given, yes, no, *, closed, **options):
        """One gate; a `closed` one denies when it fails."""
        key = f"{kind}{number}"

        async def decide(subject):
            await asyncio.sleep(0)
            values = given(subject)
            self.shown[key] = deepcopy(values)
            if behaviour == "unload":
                undo()
            if behaviour in ("raise", "nonsense", "hang", "deny"):
                if closed or behaviour == "deny":
                    self.refuse(key)
                if behaviour == "raise":
                    raise RuntimeError(key)
                if behaviour == "hang":
                    await asyncio.Event().wait()
                return no if behaviour == "deny" else object()
            if behaviour == "mutate":
                values["words"] = ["changed in place"]
                if kind == "guard":  # the call becomes what it made of it; others change a copy
                    self.shown[key] = deepcopy(values)
            if behaviour == "rewrite":
                self.shown[key] = {**values, "words": [f"by {key}"]}  # what it wants, it allows
                return ToolCallEventResult(input=deepcopy(self.shown[key]))
            if behaviour == "ask":
                return ToolCallEventResult(ask=True)
            return yes if behaviour in ("allow", "unload") else None

        undo = self.attach(
            hook, taking(hook, decide), timeout=SHORT if behaviour == "hang" else LONG, **options
        )

    def build(self):
        for number, behaviour in enumerate(self.say["before"]):
            self.attach("before_tool_call", self.before(behaviour, number))
        block = ToolCallEventResult(block=True)
        for kind, closed in (("handler", False), ("guard", True)):
            for number, behaviour in enumerate(self.say[kind]):
                self.gate(
                    kind, number, behaviour, "tool_call", lambda event: event.input,
                    ToolCallEventResult(), block, closed=closed, **({"guard": True} if closed else {}),
                )  # fmt: skip
        for kind, hook, yes, no in (
            ("authorize", "authorize_action", True, False),
            ("approval", "resolve_approval", "approve", "reject"),
        ):
            for number, behaviour in enumerate(self.say[kind]):
                self.gate(
                    kind,
                    number,
                    behaviour,
                    hook,
                    lambda action: action["arguments"],
                    yes,
                    no,
                    closed=True,
                )
        for behaviour in self.say["around"]:
            self.attach("around_tool_call", self.around(behaviour))
        floors = {
            "allow": {"default": "allow"},
            "deny": {"default": "allow", "floor": {"deny": {"tools": ["*"]}}},
            "ask": {"default": "allow", "floor": {"ask": {"tools": ["*"]}}},
            "raise": {"default": "allow"},
        }
        self.policy = Policy.load(floors[self.say["judge"]])
        self.app.runner.judge = self.judge

    async def judge(self, action):
        self.shown["judge"] = deepcopy(action["arguments"])
        if self.say["judge"] == "raise":
            self.refuse("judge")
            raise RuntimeError("judge")
        if self.say["judge"] == "deny":
            self.refuse("judge")
        return await self.policy.judge(action)

    def before(self, behaviour, number):
        def rewrite(arguments):
            if behaviour == "raise":
                raise RuntimeError("before")
            if behaviour == "mutate":
                arguments["words"] = ["before, in place"]
            if behaviour == "rewrite":
                return {**arguments, "words": [f"before {number}"]}
            return object() if behaviour == "nonsense" else None

        return rewrite

    def around(self, behaviour):
        async def run(call, call_next):
            if behaviour == "mutate":
                call.arguments["words"] = ["around"]
            if behaviour == "not":
                return "nothing"
            if behaviour == "twice":
                await call_next()
            return await call_next()

        return run


@settings(
    max_examples=50 * EFFORT,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(say=behaviours, asked=arguments, name=st.sampled_from(["typed", "raw"]))
async def test_denied_means_not_run_and_a_run_is_what_every_gate_allowed(app, nested, say, asked, name):
    nested.clear()
    world = World(app, say, nested)
    world.build()
    kept = []

    class Journal:
        async def tool_call(self, call, requested, rulings):
            kept.append(deepcopy(dict(call.arguments)))

        async def tool_result(self, result, **about):
            pass

    try:
        caller = ToolCaller(app.context("s"), Journal(), app.workspace)
        outcome = await app.runner.run(Requested("c", name, deepcopy(asked)), caller)
    finally:
        for undo in world.attached:
            undo()
    if world.no:  # one that runs twice is judged twice, by those who are left
        assert len(nested) == world.no[0][1], (world.no, say)
        assert outcome.is_error
        assert not nested or "twice" in say["around"]
    if nested:
        ran = {"words": nested[0][0], "more": nested[0][1]}
        assert all(each == nested[0] for each in nested)
        assert all(each == ran for each in kept)
        assert len(kept) == len(nested)
        strict = ("guard", "authorize", "approval", "judge")
        shown = {key: seen for key, seen in world.shown.items() if key.startswith(strict)}
        if "mutate" in say["handler"] + say["guard"]:  # then all are asked again, less who has gone
            gone = {f"guard{n}" for n, each in enumerate(say["guard"]) if each == "unload"}
            shown = {key: seen for key, seen in shown.items() if key not in gone}
        assert all(seen == ran for seen in shown.values()), (shown, ran, say)
    elif not outcome.is_error:
        assert "not" in say["around"]
