"""Which secrets the detectors find, and which texts they leave alone."""

import re

import pytest

from hookline.policy.redaction import RedactionSettings, Redactor

from ..tables import each_row
from .secret_corpus import HARMLESS, SECRETS, TOKENS

REDACTOR = Redactor(["secrets", "cards"])
MARKED = re.compile("«(.*?)»", re.DOTALL)


def parts(marked: str) -> tuple[str, list[str]]:
    return marked.replace("«", "").replace("»", ""), MARKED.findall(marked)


@each_row("marked", SECRETS)
def test_a_secret_in_a_text_is_found(marked: str):
    text, secrets = parts(marked)
    found = REDACTOR.text(text)
    assert secrets
    for secret in secrets:
        before, after = text.split(secret, 1)
        assert secret not in found.removeprefix(before).removesuffix(after), found
    assert "[redacted" in found
    assert REDACTOR.text(found) == found


@each_row("text", HARMLESS)
def test_a_harmless_text_is_left_alone(text: str):
    assert REDACTOR.text(text) == text


@each_row("token", TOKENS)
@each_row("around", ['"{}"', "ü{}ü", "\n{}\n", "({})", "x={};", "ßß: {}, and"])
def test_a_token_is_found_whatever_stands_around_it(token: str, around: str):
    assert token not in REDACTOR.text(around.format(token))


@each_row(
    ("data", "found"),
    [
        ({"api_keys": ["a", "b"]}, {"api_keys": ["[redacted secret]", "[redacted secret]"]}),
        ({"secrets": {"a": {"b": ["c"]}}}, {"secrets": {"a": {"b": ["[redacted secret]"]}}}),
        ({"password": 12345678}, {"password": "[redacted secret]"}),
        ({"token": 5, "max_tokens": "9"}, {"token": 5, "max_tokens": "9"}),
        ({"password": None, "secret": True}, {"password": None, "secret": True}),
        ({"name": "API_KEY", "value": "x1"}, {"name": "API_KEY", "value": "[redacted secret]"}),
        ({"key": "token", "value": "x1"}, {"key": "token", "value": "[redacted secret]"}),
        ({"x": "password=hunter2"}, {"x": "password=[redacted secret]"}),
        ({"tokens": ["the", "cat"]}, {"tokens": ["the", "cat"]}),
        ({"access_tokens": ("a1",)}, {"access_tokens": ("[redacted secret]",)}),
        ({"dbPassword": "x"}, {"dbPassword": "[redacted secret]"}),
        (
            {"password": {"type": "string", "description": "The password to use"}},
            {"password": {"type": "string", "description": "The password to use"}},
        ),
        ({"password": "${PASSWORD}"}, {"password": "${PASSWORD}"}),
        ({"cookie": "sid=38afes7a8"}, {"cookie": "[redacted secret]"}),
        ([{"passphrase": "a b c"}], [{"passphrase": "[redacted secret]"}]),
    ],
)
def test_data_under_a_secret_name_goes_as_a_whole(data, found):
    assert REDACTOR.redact(data) == found


def test_a_pattern_of_the_user_with_lookaround_is_refused_with_the_reason():
    with pytest.raises(ValueError, match="lookaround and backreferences are not supported"):
        RedactionSettings(patterns={"x": r"(?<=a)b"})
