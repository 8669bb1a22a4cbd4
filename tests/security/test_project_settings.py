# ruff: noqa: E501, RUF021 -- tables of attacks read best in long lines
"""What a project's config.toml can change before it is trusted: the allow-list, and nothing else."""

import importlib
import math
import pkgutil
import typing
from functools import reduce

import pytest
from pydantic import BaseModel

import hookline
from hookline.agent.run import Limits
from hookline.config import Config, ConfigError
from hookline.config.project import HARMLESS, SHIPPED_PACKS, TRUSTED, admitted
from hookline.config.schema import CORE
from hookline.config.sections import CHECKED, OPEN
from hookline.policy.pack import shipped_packs

from ..tables import each_row

OWN = {
    "model": "openai:gpt",
    "thinking": "medium",
    "limits": {"steps": 20, "tool_seconds": 60, "tokens": 1000, "depth": 1},
    "agents": {"fast": {"model": "groq:llama"}},
    "policy": {"default": "ask", "budgets": {"calls": 5, "cost": 1.0}, "approvals": {"seconds": 60}},
    "plugins": {"mail": {"key": "k"}},
    "mcp": {"servers": {"mine": {"command": "x"}}},
}


def leaves(table, above=()):
    for name, value in table.items():
        if isinstance(value, dict) and value:
            yield from leaves(value, (*above, name))
        else:
            yield (*above, name), value


def nested(names, value):
    for name in reversed(names):
        value = {name: value}
    return value


# --- every section and every leaf that the code base knows ----------------------------------------


def settings_models():
    """Every section with its pydantic model, found by walking the package."""
    found = dict(CORE)
    for info in pkgutil.walk_packages(hookline.__path__, "hookline."):
        if not info.name.endswith((".settings", ".schema")):
            continue
        try:
            module = importlib.import_module(info.name)
        except ImportError:
            continue
        for name, value in vars(module).items():
            if isinstance(value, type) and issubclass(value, BaseModel) and value.model_fields:
                section = name.removesuffix("Settings").lower()
                found.setdefault(section, value)
    return found


def fields(model, above=(), depth=0):
    for name, field in model.model_fields.items():
        names = (*above, field.alias or name)
        inner = [
            a for a in (field.annotation, *typing.get_args(field.annotation)) if isinstance(a, type)
        ]
        deeper = [a for a in inner if issubclass(a, BaseModel)]
        if deeper and depth < 4:
            yield from fields(deeper[0], names, depth + 1)
        else:
            yield names


EVERY_LEAF = sorted(
    {(section, *names) for section, model in settings_models().items() for names in fields(model)}
    | {(section, "anything") for section in (*OPEN, *CHECKED, "tomorrow", "worker", "environment")}
)
VALUES = ("text", "${HOME}", 10**9, -1, True, False, ["a"], {"a": 1}, 1.5, math.inf)


@each_row("names", EVERY_LEAF, ids=".".join)
def test_a_leaf_that_is_not_listed_stays_inert_whatever_its_value(names):
    for value in VALUES:
        counts, inert = admitted(nested(names, value), OWN)
        taken = {leaf for leaf, _ in leaves(counts)}
        assert taken <= HARMLESS.keys()
        assert counts == {} or names in HARMLESS
        assert counts or inert


def test_the_walk_sees_the_sections_that_matter():
    sections = {names[0] for names in EVERY_LEAF}
    assert {"limits", "policy", "sandbox", "mcp", "gateway", "tape", "otel", "providers"} <= sections
    assert len(EVERY_LEAF) > 150


def test_harmless_limits_start_from_the_defaults_of_a_run():
    defaults = Limits()
    for names, rule in HARMLESS.items():
        if names[0] == "limits" and (value := reduce(getattr, names[1:], defaults)) is not None:
            assert rule(value, {}) == ""
            assert rule(value + 1, {})


def test_the_packs_that_a_project_can_name_are_those_that_ship():
    assert sorted(SHIPPED_PACKS) == shipped_packs()


# --- values ---------------------------------------------------------------------------------------

ODD = [
    0,
    -1,
    10**30,
    1.5,
    0.0,
    -0.0,
    math.nan,
    math.inf,
    -math.inf,
    "1",
    "",
    True,
    False,
    [],
    [1],
    {},
    None,
]
COUNTS = ("steps", "parallel_tools", "tokens", "sent_back", "depth", "subagents")
CEILING = {
    "steps": 20,
    "parallel_tools": 8,
    "tokens": 1000,
    "sent_back": 3,
    "depth": 1,
    "subagents": 100,
}


@each_row("value", ODD, ids=repr)
@each_row("name", [*COUNTS, "tool_seconds"])
def test_an_odd_limit_never_loosens(name, value):
    counts, _ = admitted({"limits": {name: value}}, OWN)
    if counts:
        taken = counts["limits"][name]
        assert type(taken) is int or (name == "tool_seconds" and type(taken) is float)
        assert 0 <= taken <= (60 if name == "tool_seconds" else CEILING[name])
        assert taken > 0 or name in ("sent_back", "depth")


@pytest.mark.parametrize(("name", "most"), CEILING.items())
def test_a_limit_can_be_lowered_to_the_users_and_no_higher(name, most):
    assert admitted({"limits": {name: most}}, OWN)[0] == {"limits": {name: most}}
    assert admitted({"limits": {name: most + 1}}, OWN)[0] == {}


@each_row(
    ("own", "value", "counts"),
    [(0, 10_000, True), (0, 0, False), (60, 60, True), (60, 61, False), (None, 600, True), (None, 601, False),
     ("${T}", 5, False), (60, 1e-9, True)],
)  # fmt: skip
def test_no_limit_of_the_user_can_be_lowered_and_nothing_raised_to_none(own, value, counts):
    said = {} if own is None else {"limits": {"tool_seconds": own}}
    assert bool(admitted({"limits": {"tool_seconds": value}}, said)[0]) is counts


MODELS = [
    "scripted:evil.py", "scripted:/tmp/x.toml", "openai-compatible:http://evil/v1#m", "local:weights.gguf",
    "local:../x", "openai:gpt-5-pro", "anthropic:claude", "groq:other", "openai:http://evil", "local", "LOCAL",
    "openai:gpt ", " openai:gpt", "openai:gpt\n", "openai:${KEY}", "", 5, ["openai:gpt"], {"name": "x"}, True,
]  # fmt: skip


@each_row("model", MODELS, ids=repr)
def test_a_model_that_the_user_does_not_name_is_inert(model):
    assert admitted({"model": model}, OWN)[0] == {}


@each_row("model", [m for m in MODELS if isinstance(m, str) and "scripted" in m or "://" in str(m)])
@each_row("names", [("model",), ("agents", "x", "model")])
def test_a_trusted_project_cannot_bring_a_file_or_an_address_as_a_model_either(names, model):
    assert admitted(nested(names, model), OWN, trusted=True)[0] == {}


@pytest.mark.parametrize("model", ["openai:gpt", "groq:llama"])
def test_a_model_that_the_user_names_can_be_chosen(model):
    assert admitted({"model": model}, OWN)[0] == {"model": model}


@each_row("level", ["off", "low", "medium", "high", "max", "", 1, None, "${X}"])
def test_thinking_can_be_lowered(level):
    assert bool(admitted({"thinking": level}, OWN)[0]) is (level in ("off", "low", "medium"))


@each_row(
    ("names", "value", "counts"),
    [
        (("default",), "deny", True), (("default",), "ask", True), (("default",), "auto", False),
        (("default",), "allow", False), (("default",), "", False), (("default",), ["deny"], False),
        (("approvals", "seconds"), 30, True), (("approvals", "seconds"), 61, False),
        (("approvals", "seconds"), 0, False), (("approvals", "seconds"), math.nan, False),
        (("packs",), ["read-only"], True), (("packs",), ["./pack"], False), (("packs",), ["/etc"], False),
        (("packs",), ["~/x"], False), (("packs",), ["unknown"], False), (("packs",), "read-only", False),
        (("packs",), [5], False), (("packs",), ["read-only", "../x"], False),
        (("floor", "cedar"), "/etc/passwd", False), (("floor", "cedar"), "rules.cedar", False),
        (("floor", "deny", "tools"), ["shell"], True), (("floor", "deny", "tools"), "shell", False),
        (("floor", "ask", "commands"), ["git push *"], True), (("floor", "ask", "paths"), ["${HOME}"], False),
        (("floor", "deny", "paths"), ["x" * 201], False), (("floor", "deny", "paths"), ["a"] * 101, False),
        (("floor", "deny", "paths"), ["\x1b[2J"], False), (("floor", "deny", "effects"), ["write"], True),
        (("floor", "deny", "effects"), ["all"], False), (("floor", "allow", "tools"), ["shell"], False),
        (("budgets", "calls"), 4, True), (("budgets", "calls"), 6, False), (("budgets", "calls"), -1, False),
        (("budgets", "cost"), 0.5, True), (("budgets", "cost"), 2.0, False), (("budgets", "cost"), math.inf, False),
        (("network", "allow"), ["example.org"], True), (("anything",), True, False),
    ],
)  # fmt: skip
def test_policy_can_only_become_stricter(names, value, counts):
    assert bool(admitted(nested(("policy", *names), value), OWN)[0]) is counts


@each_row("trusted", [False, True])
@each_row("value", ["deny", "allow", "", True, ["deny"], {"deny": "deny"}])
def test_gates_can_only_become_stricter_even_if_the_project_is_trusted(value, trusted):
    written = {"hooks": {"on_gate_error": value}}
    assert bool(admitted(written, OWN, trusted=trusted)[0]) is (value == "deny")


@each_row(
    ("names", "value", "counts"),
    [
        (("profile",), "read-only", True), (("profile",), "nonsense", False), (("profile",), "off", False), (("mcp",), "open", False), (("outside",), "allow", False), (("outside",), "deny", True), (("enabled",), False, False),
        (("enabled",), True, True), (("required",), False, False), (("auto_approve",), True, False),
        (("auto_approve",), False, True), (("write",), ["/"], False), (("read",), ["~/.ssh"], False),
        (("network",), ["*"], False), (("environment",), ["AWS_*"], False), (("protect",), ["src"], True),
        (("limits", "memory"), 1 << 20, True), (("limits", "memory"), -1, False), (("limits", "memory"), 0, False),
    ],
)  # fmt: skip
@each_row("trusted", [False, True])
def test_the_sandbox_can_only_become_stricter(names, value, counts, trusted):
    assert bool(admitted(nested(("sandbox", *names), value), OWN, trusted=trusted)[0]) is counts


# --- names ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        '"limits.steps" = 5', '["limits.steps"]\nx = 5', '[limits]\n"steps.x" = 5', '[LIMITS]\nsteps = 5',
        '[limits.steps]\nx = 5', '["limits "]\nsteps = 5', '[Providers.openai]\nbase_url = "x"',
        '["\\u202emodel"]\nx = 1', '[""]\nx = 1', '"" = 1', 'model.x = "openai:gpt"', "limits = [1]",
        "limits = 5", "policy = true", '[[limits]]\nsteps = 5', "date = 2026-01-01", "providers = 5",
    ],
)  # fmt: skip
def test_a_name_that_only_looks_like_a_listed_one_is_inert_and_stops_nothing(text, tmp_path):
    config = of_project(tmp_path, text)
    assert config.own_values() == {}
    assert config.section("limits") == {}
    assert (config.get("model"), config.get("thinking")) == (None, None)
    assert config.inert


def of_project(tmp_path, text: str | bytes, user: str = "", **more) -> Config:
    folder = tmp_path / "project" / ".hookline"
    folder.mkdir(parents=True)
    (folder / "config.toml").write_bytes(text.encode() if isinstance(text, str) else text)
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "config.toml").write_text(user)
    environ = more.pop("environ", {})
    return Config.load(tmp_path / "home", workspace=folder.parent, environ=environ, **more)


EXPANDED = [
    "providers.x",
    "mcp.servers.x",
    "stores.x",
    "agents.x",
    "plugins.x",
    "hooks.x",
    "stt",
    "options",
]


@pytest.mark.parametrize("section", EXPANDED)
def test_no_variable_is_filled_in_for_a_project_also_in_a_table_of_the_user(section, tmp_path):
    table = f'[{section}]\nkey = "${{CANARY}}"\n'
    user = f'[{section}]\nmine = "${{MINE}}"\n'
    environ = {"CANARY": "canary", "MINE": "mine"}
    config = of_project(tmp_path, table, user, environ=environ)
    assert config.section(section) == {"mine": "${MINE}"}
    if "." in section:
        everything = {
            name: {**table} for name, table in config.expanded(section.partition(".")[0]).items()
        }
        assert "canary" not in repr(everything)
    assert not any("CANARY" in problem for problem in config.problems())


def test_what_is_inert_is_said_with_the_file_the_key_and_what_to_do(tmp_path):
    config = of_project(tmp_path, '[agents.x]\nmodel = "openai:gpt"\n[providers.y]\nkey = 1\n')
    path = tmp_path / "project" / ".hookline" / "config.toml"
    assert config.inert_lines() == [
        f"{path}: agents.x.model is inert: this project is not trusted",
        f"{path}: providers.y.key is inert: only your own settings say where requests and keys go",
    ]
    assert len(config.inert_lines(1)) == 1


def test_a_projects_name_does_not_redirect_a_variable_of_the_environment(tmp_path):
    environ = {"HOOKLINE_PROVIDERS__OPENAI__API_KEY": "k"}
    config = of_project(tmp_path, "[providers.OpenAI]\nx = 1\n", environ=environ)
    assert config.section("providers") == {"openai": {"api_key": "k"}}


@pytest.mark.parametrize("section", ["mcp.servers.mine", "plugins.mail", "stores.main"])
def test_a_trusted_project_cannot_change_what_the_user_configures(section):
    own = nested(section.split("."), {"key": "k"})
    assert admitted(nested(section.split("."), {"host": "evil"}), own, trusted=True)[0] == {}
    assert admitted(nested(section.split("."), {"host": "fine"}), {}, trusted=True)[0]


@each_row("section", sorted({*OPEN, *CHECKED, "tomorrow"} - set(TRUSTED) - {"sandbox"}))
def test_a_section_that_a_trusted_project_may_not_set_says_so(section):
    counts, (inert,) = admitted({section: {"x": 1}}, {}, trusted=True)
    assert (counts, inert.waits) == ({}, False)
    assert inert.reason


@pytest.mark.parametrize(
    "name", ["base_url", "api_key", "extra_headers", "api_base", "http_client", "user"]
)
def test_a_trusted_project_sends_no_address_or_key_with_a_request(name):
    assert admitted({"options": {name: "x"}}, {}, trusted=True)[0] == {}


@pytest.mark.parametrize("path", ["/etc/passwd", "~/x", "../x", "a/../../x", "link/x"])
@pytest.mark.parametrize("names", [("packs",), ("floor", "cedar")])
def test_a_trusted_policy_reads_no_file_outside_the_project(names, path, tmp_path):
    (tmp_path / "link").symlink_to("/")
    value = [f"./{path}" if path[0] not in "/~" else path] if names == ("packs",) else path
    assert admitted(nested(("policy", *names), value), {}, trusted=True, folder=tmp_path)[0] == {}


# --- files that are none --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "kind", ["fifo", "device", "folder", "huge", "link out", "link loop", "linked folder"]
)
def test_what_is_no_file_in_the_project_is_inert_and_said_to_be(kind, tmp_path):
    import os

    folder = tmp_path / "project" / ".hookline"
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "config.toml").write_text("[limits]\nsteps = 1\n")
    folder.parent.mkdir()
    if kind == "linked folder":
        folder.symlink_to(outside)
    else:
        folder.mkdir()
        path = folder / "config.toml"
        if kind == "fifo":
            os.mkfifo(path)
        elif kind == "folder":
            path.mkdir()
        elif kind == "huge":
            path.write_text("#" * 300_000)
        else:
            path.symlink_to(
                {"device": "/dev/zero", "link out": outside / "config.toml"}.get(kind, path)
            )
    config = Config.load(tmp_path / "home", workspace=folder.parent, environ={})
    assert config.section("limits") == {}
    (problem,) = config.problems() or [config.fault]
    assert problem.endswith("it is inert")


@pytest.mark.parametrize(
    "content",
    [
        b"\xff\xfe", b'model = "\xff"', b"a = " + b"[" * 50_000, b"a." * 100_000 + b"b = 1", b"[" + b"a." * 9000 + b"b]",
        b"a.b.c.d = 1\n" * 3, b"= 1", b"[a", b"\0", b"a = 1\na = 2", b"\n".join(b".".join([b"a"] * 400) + b"=1" for _ in range(2)),
        b'a = "' + b"." * 2000 + b'"', ("[" + ".".join("a" * 1 for _ in range(40)) + "]\nx = 1").encode(),
    ],
    ids=range(13),
)  # fmt: skip
def test_a_malformed_file_is_an_error_that_names_it_and_never_hangs(content, tmp_path):
    with pytest.raises(ConfigError, match=r"config\.toml.*`--no-project` leaves the project out"):
        of_project(tmp_path, content)


def test_a_trusted_file_that_becomes_malformed_is_dropped_by_a_reload(tmp_path):
    config = of_project(
        tmp_path, '[agents.x]\nmodel = "openai:gpt"\n', trusts=lambda path, content: True
    )
    assert config.get("agents.x.model") == "openai:gpt"
    (tmp_path / "project" / ".hookline" / "config.toml").write_text("[agents")
    config.reload()
    assert config.section("agents") == {}
    assert "this is not TOML" in config.problems()[0]
