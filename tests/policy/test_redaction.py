"""Redaction: what is found, where it is taken out, and that a redactor which fails leaks nothing."""

import json
import subprocess
import sys
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookline.cli.tape import exported
from hookline.models import Call, Turn
from hookline.policy import PolicyError
from hookline.policy.redaction import STRUCTURE, RedactionSettings, Redactor, redacted_entry
from hookline.system.log_redaction import LONGEST, redact_logs, without_secrets
from hookline.tape import Entry, MemoryTapeStore, import_
from hookline.tools import tool
from hookline.tools.registry import Registry
from hookline.types import ImagePart, TextPart

from ..tables import each_row
from .test_audit import app_with, hookline

KEY = "AKIA" + "IOSFODNN7EXAMPLE"
GITHUB = "ghp_" + "a1B2" * 9
JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N"
PEM = "-----BEGIN RSA PRIVATE KEY-----\nMIIEow\nIBAAKC\n-----END RSA PRIVATE KEY-----"
CARD = "4111 1111 1111 1111"
ON = '[redaction]\nenabled = true\n[policy]\ndefault = "allow"\n'


@pytest.fixture(scope="module")
def redactor():
    return Redactor()


@each_row(
    ("text", "kept"),
    [
        (f"key={KEY}.", "key=[redacted aws access key]."),
        (f"push with {GITHUB}", "push with [redacted github token]"),
        (f"{JWT}!", "[redacted json web token]!"),
        (f"a\n{PEM}\nb", "a\n[redacted private key]\nb"),
        (PEM[:50], "[redacted private key]"),  # cut off before its end
        ("sk-ant-api03-" + "x" * 40, "[redacted key]"),
        ("Authorization: Bearer " + "a1" * 12, "Authorization: [redacted authorization]"),
        ("postgres://me:hunter2@db/x", "postgres://me:[redacted password in an address]@db/x"),
        ("write to ada@lovelace.org.", "write to [redacted email]."),
        (f"card {CARD}, thanks", "card [redacted card], thanks"),
        ("4111-1111-1111-1111", "[redacted card]"),
        ("5555555555554444", "[redacted card]"),
    ],
)
def test_what_is_found(redactor, text, kept):
    assert redactor.text(text) == kept


@each_row(
    "text",
    [
        "4111 1111 1111 1112",  # the check digit is wrong
        "1731600000000",  # a time
        "0000 0000 0000 0000",
        "def f(password: str) -> str: ...",
        "user@localhost and @decorator",
        "https://example.org/a?b=c#d",
        "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "input_tokens: 1200",
    ],
)
def test_what_is_left_alone(redactor, text):
    assert redactor.text(text) == text


def test_nested_data_is_copied_with_names_and_fields(redactor):
    data = {
        "to": ["ada@lovelace.org", {"card": CARD, "n": 1, "none": None}],
        "ada@lovelace.org": 1,
        "bob@lovelace.org": 2,
        "api_key": "short",
        "input_tokens": "12",
        "parts": (TextPart(f"see {KEY}"), ImagePart(b"x")),
    }
    before = json.dumps(data, default=repr)
    found = redactor.redact(data)
    assert json.dumps(data, default=repr) == before
    assert found["to"] == ["[redacted email]", {"card": "[redacted card]", "n": 1, "none": None}]
    assert [found["[redacted email]"], found["[redacted email] "]] == [1, 2]
    assert found["api_key"] == "[redacted secret]"
    assert found["input_tokens"] == "12"
    assert found["parts"] == (TextPart("see [redacted aws access key]"), ImagePart(b"x"))


def test_redacting_twice_is_redacting_once(redactor):
    text = f"{KEY} {GITHUB} {JWT} {PEM} {CARD} ada@lovelace.org"
    once = redactor.text(text)
    assert redactor.text(once) == once


@given(st.text(max_size=200), st.text(max_size=200))
def test_a_secret_is_found_whatever_stands_around_it(redactor, before, after):
    assert KEY not in redactor.text(f"{before} {KEY} {after}")


def test_a_long_text_is_searched_as_a_whole(redactor):
    line = "x" * 78 + "\n"
    text = line * 3000 + f"{KEY}\n" + line * 3000 + PEM.replace("\n", "\n" + line * 2000) + "\nend"
    found = redactor.text(text)
    assert KEY not in found
    assert "MIIEow" not in found
    assert found.endswith("[redacted private key]\nend")


def test_settings_say_what_is_looked_for_and_what_is_allowed():
    redactor = Redactor.of(
        RedactionSettings(
            detectors=["emails"],
            patterns={"ticket": r"T-\d+"},
            allow=[r".*@example\.com"],
            replace="<{kind}>",
        )
    )
    text = f"{KEY} ada@lovelace.org bot@example.com T-12"
    assert redactor.text(text) == f"{KEY} <email> bot@example.com <ticket>"


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"detectors": ["emial"]}, "no detector 'emial'; did you mean 'emails'"),
        ({"allow": ["("]}, "is not a regular expression"),
        ({"patterns": {"x": "["}}, "is not a regular expression"),
        ({"replace": "{what}"}, "may have {kind} in it"),
    ],
)
def test_settings_that_mean_nothing_are_refused(wrong, told):
    with pytest.raises(ValueError, match=told.replace("{", r"\{")):
        RedactionSettings(**wrong)


# --- before the tape ------------------------------------------------------------------------------


def telling(app, text):
    @tool(side_effects="read", registry=Registry(), name="tell")
    def tell() -> str:
        return text

    app.tools.add(tell)


async def go(app, text="go"):
    async with app.running():
        await app.process({"content": text, "session_id": "s"})
        return await app.store().entries("s")


def turns():
    return [Turn(tool_calls=[Call("tell", {})]), f"It is {GITHUB}."]


async def test_results_are_kept_redacted_and_the_turn_sees_them_live(tmp_path):
    app = app_with(tmp_path, ON, turns())
    telling(app, f"the key is {KEY}")
    entries = await go(app)
    [result] = [entry for entry in entries if entry.kind == "tool_result"]
    assert result.payload["content"] == "the key is [redacted aws access key]"
    seen = app.models.get("scripted").requests[-1].messages[-1]["content"]
    assert seen == f"the key is {KEY}"
    assert KEY.encode() not in b"".join(f.read_bytes() for f in app.home.iterdir() if f.is_file())


async def test_nothing_is_redacted_unless_it_is_on(tmp_path):
    app = app_with(tmp_path, '[policy]\ndefault = "allow"\n', turns())
    telling(app, KEY)
    entries = await go(app)
    assert [e.payload["content"] for e in entries if e.kind == "tool_result"] == [KEY]


async def test_messages_and_arguments_are_kept_redacted(tmp_path):
    said = Turn(f"Using {GITHUB}.", tool_calls=[Call("tell", {"x": KEY})])
    app = app_with(tmp_path, ON, [said, "Done."])
    telling(app, "ok")
    entries = await go(app, f"my key is {KEY}")
    messages = [entry.payload["message"] for entry in entries if entry.kind == "message"]
    assert messages[0]["content"] == "my key is [redacted aws access key]"
    assert messages[1]["content"] == "Using [redacted github token]."
    [call] = messages[1]["tool_calls"]
    assert call["redacted"]
    assert json.dumps(messages + [e.payload for e in entries]).count(KEY) == 0


async def test_a_redactor_that_fails_leaks_nothing(tmp_path):
    app = app_with(tmp_path, ON, turns())
    telling(app, f"the key is {KEY}")

    def broken(text):
        raise RuntimeError("broken")

    app.safeguards.redactor._find.append(broken)
    with pytest.raises(PolicyError, match="withheld"):
        await go(app, f"use {KEY}")
    assert KEY.encode() not in b"".join(f.read_bytes() for f in app.home.rglob("*") if f.is_file())


async def test_it_comes_after_every_plugin_that_rewrites(tmp_path):
    app = app_with(tmp_path, ON, turns())
    telling(app, "x")
    app.hooks.register("tool_result_persist", lambda result: f"{result} {KEY}", trylast=True)
    entries = await go(app)
    [result] = [entry for entry in entries if entry.kind == "tool_result"]
    assert result.payload["content"] == "x [redacted aws access key]"


async def test_long_outputs_that_are_kept_in_files_are_redacted(tmp_path):
    app = app_with(tmp_path, ON, turns())
    telling(app, "line of text\n" * 10_000 + f"{KEY}\n" + "more\n" * 10_000)
    await go(app)
    [kept] = (app.home / "outputs").glob("*")
    assert KEY not in kept.read_text()
    assert "[redacted aws access key]" in kept.read_text()


# --- exports --------------------------------------------------------------------------------------


async def test_exports_are_redacted_and_can_be_read_again(tmp_path):
    app = app_with(tmp_path, ON.replace("true", "false"), turns())
    telling(app, "nothing")
    async with app.running():
        await app.process({"content": f"mail ada@lovelace.org {KEY}", "session_id": "s"})
        redactor, store = app.safeguards.exporting, app.store()
        lines = await exported(store, ["s"], html=False, redactor=redactor)
        page = await exported(store, None, html=True, redactor=redactor)
        whole = await exported(store, ["s"], html=False)
    for secret in (KEY, GITHUB, "ada@lovelace.org"):
        assert secret in whole
        assert secret not in lines
        assert secret not in page
    assert "[redacted email]" in page
    copy = MemoryTapeStore()
    done = await import_(copy, lines.splitlines())
    assert done.added == whole.count("\n") - 1


async def test_the_command_exports_redacted_unless_told_otherwise(tmp_path):
    app = app_with(tmp_path, ON.replace("true", "false"), ["Hello."])
    async with app.running():
        await app.process({"content": "I am ada@lovelace.org", "session_id": "s"})
    done = hookline(app.home, "tape", "export", "-")
    assert done.returncode == 0, done.stderr
    assert "ada@lovelace.org" not in done.stdout
    assert "[redacted email]" in done.stdout
    done = hookline(app.home, "tape", "export", "-", HOOKLINE_REDACTION__EXPORTED="false")
    assert "ada@lovelace.org" in done.stdout


async def test_exports_hide_secrets_where_nothing_is_configured(tmp_path):
    app = app_with(tmp_path, '[policy]\ndefault = "allow"\n', ["Hello."])
    async with app.running():
        await app.process({"content": f"{KEY} ada@lovelace.org", "session_id": "s"})
    done = hookline(app.home, "tape", "export", "-")
    assert KEY not in done.stdout
    assert "[redacted aws access key] ada@lovelace.org" in done.stdout


# --- start ----------------------------------------------------------------------------------------


def test_the_engine_is_loaded_when_something_is_redacted_and_not_before(tmp_path):
    (tmp_path / "config.toml").write_text(ON)
    code = (
        "import asyncio, sys; from pathlib import Path; from hookline.runtime.app import Hookline\n"
        "app = Hookline(home=Path(sys.argv[1]), workspace=Path(sys.argv[1])); app.load_hooks()\n"
        "async def main():\n"
        "    async with app.running(): pass\n"
        "asyncio.run(main()); print('re2' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True
    )
    assert done.stdout == "False\n"


SECRET = "AWS_SECRET_ACCESS_KEY=a1B2c3D4e5F6g7H8i9J0"


@each_row("value", [SECRET, [SECRET], {"text": SECRET}, {"data": [{"id": SECRET}]}])
@each_row("name", sorted(STRUCTURE))
@each_row("place", ["payload", "meta", "message", "envelope", "part", "call"])
def test_a_name_that_links_entries_hides_no_secret(redactor, place, name, value):
    fields = {name: value}
    payload = {
        "message": {"message": {"role": "user", "content": "hi", **fields}},
        "envelope": {"envelope": {"content": "hi", **fields}},
        "part": {"message": {"role": "user", "content": [{"type": "image", **fields}]}},
        "call": {"message": {"role": "assistant", "content": "", "tool_calls": [fields]}},
    }.get(place, fields)
    entry = Entry.new("s", None, "note", payload)
    entry = replace(entry, payload={}, meta=fields) if place == "meta" else entry
    kept = redacted_entry(redactor, entry)
    assert "a1B2c3D4e5F6g7H8i9J0" not in repr([kept.payload, kept.meta])


@each_row("name", sorted(STRUCTURE - {"data"}))
def test_a_link_stays_as_it_is(redactor, name):
    for value in ("ada@lovelace.org", 4111111111111111, None):
        payload = {name: value}
        entry = Entry.new("s", None, "note", payload)
        assert redacted_entry(redactor, entry).payload == payload


@each_row("around", ["{} rest", '"{}" rest', "password={} rest", "https://u:{}@host/ rest"])
@each_row("shown", [1, 8, 15, 19])
def test_the_end_of_a_log_line_that_is_cut_has_no_part_of_a_secret(redactor, around, shown):
    secret = "AKIA" + "IOSFODNN7EXAMPLE"
    before, after = around.format(secret).split(secret)
    text = "x " * LONGEST
    text = text[: LONGEST - shown - len(before)] + before + secret + after
    end = redact_logs(redactor.text)
    try:
        assert f"{before}{secret[:shown]}" not in without_secrets(text)
    finally:
        end()
