"""Whoever approves sees all of what runs: nothing is cut, and nothing is invisible."""

import html
import json
import re

import pytest

pytest.importorskip("telegram")

from hookline.channel import exact
from hookline.ext.telegram.questions import MOST_PIECES, ROOM, shown_call
from hookline.text.printable import visible

from ..tables import each_row

INVISIBLE = [
    0x00,
    0x07,
    0x08,
    0x0B,
    0x0D,
    0x1B,
    0x7F,
    0x85,
    0x9B,
    0xA0,
    0xAD,
    0x034F,
    0x061C,
    0x115F,
    0x1160,
    0x1680,
    0x17B4,
    0x180E,
    0x2000,
    0x2003,
    0x200B,
    0x200C,
    0x200D,
    0x200E,
    0x200F,
    0x2028,
    0x2029,
    0x202A,
    0x202D,
    0x202E,
    0x202F,
    0x205F,
    0x2060,
    0x2061,
    0x2066,
    0x2067,
    0x2069,
    0x206F,
    0x2800,
    0x3000,
    0x3164,
    0xD800,
    0xDFFF,
    0xE000,
    0xFE00,
    0xFE0F,
    0xFEFF,
    0xFFA0,
    0xFFF9,
    0xFFFE,
    0x1D173,
    0xE0001,
    0xE0041,
    0xE0100,
    0xF0000,
    0x10FFFF,
]


@each_row("number", INVISIBLE, ids=hex)
def test_what_cannot_be_seen_is_written_out(number):
    sign = chr(number)
    assert sign not in visible(f"rm{sign}-rf")
    assert json.loads(f'"{visible(f"rm{sign}-rf")}"') == f"rm{sign}-rf"
    assert sign not in exact("shell", {"command": f"rm{sign}-rf"})
    call = {"tool": "shell", "arguments": {"command": f"a{sign}b"}, "question": f"run{sign}?"}
    shown = shown_call({**call, "diff": f"+{sign}"})
    assert sign not in shown.last
    assert "\\u" in shown.last


def test_what_can_be_seen_stays_as_it_is():
    text = "Grüße, 世界, שלום, emoji 🎈 and a\ttab\nin two lines: <>&\"'"
    assert visible(text) == text


def text_of(markup):
    return html.unescape(re.sub(r"</?(pre|b|code)>", "", markup))


def whole(shown):
    """Everything that a person is shown before the buttons, and with them."""
    file = (shown.file or b"").decode()
    pieces = "".join(re.sub(r"\n\d+ of \d+$", "", text_of(piece)) for piece in shown.pieces)
    return pieces + file + text_of(shown.last)


SIZES = [10, 1_000, 1_199, 1_200, 1_201, 3_400, 3_500, 3_600, 4_096, 10_000, 14_000, 20_000, 500_000]
KINDS = {
    "letters": "a",
    "markup": "<&>",
    "quotes": "\"'\\",
    "lines": "x\n",
    "wide": "世",
    "pairs": "🎈",
}


@each_row("place", ["arguments", "diff", "question"])
@each_row("kind", KINDS)
@each_row("size", SIZES)
def test_telegram_shows_all_of_a_call_before_its_buttons(size, kind, place):
    text = (KINDS[kind] * size)[:size] + "THE END"
    request = {"tool": "shell", "question": "run it?", "arguments": {"command": "true"}, "diff": None}
    if place == "arguments":
        request["arguments"] = {"command": text}
        text = json.dumps(text, ensure_ascii=False)[1:-1]
    else:
        request[place] = text
    shown = shown_call(request)
    assert text in whole(shown)
    assert "…" not in whole(shown)
    messages = [*shown.pieces, shown.last]
    assert all(len(text_of(each)) <= 4096 and len(each) <= 4096 + ROOM for each in messages)
    assert len(shown.pieces) <= MOST_PIECES
    if shown.pieces or shown.file:
        assert "above" in shown.last


@pytest.mark.parametrize("size", [1, 1_000, 100_000])
def test_the_terminal_shows_all_of_a_call(size):
    command = "x" * size + "THE END"
    assert command in exact("shell", {"command": command})
