"""Long results: cut for the model, kept whole in a file, and read on by page."""

import re
from dataclasses import replace
from types import SimpleNamespace

import pytest

from hookline.ext.tools import builtin_tools
from hookline.tools import Registry, ToolError, spool
from hookline.tools.spool import fit
from hookline.types import ImagePart, TextPart

tools = Registry(builtin_tools())
read_output, shell = map(tools.get, ["read_output", "shell"])
NOTE = re.compile(r'\n\[the whole is kept: read_output\(id="([^"]+)", page=1\), up to page ([\d,]+)\]')


@pytest.fixture
def at_home(context, tmp_path):
    return replace(context, app=SimpleNamespace(home=tmp_path / "home"))


async def pages(context, output: str, count: int) -> str:
    text = ""
    for page in range(1, count + 1):
        shown = await read_output._invoke(
            read_output.validate({"id": output, "page": page}), context, print
        )
        body, note = shown.rsplit("\n", 1)
        assert note == f"[page {page:,} of {count:,}]"
        text += body
    return text


def test_what_fits_stays_as_it_is(at_home):
    assert fit("short", at_home, 100) == "short"
    assert fit("x" * 100, at_home, 100) == "x" * 100
    assert not (at_home.app.home / "outputs").exists()


@pytest.mark.parametrize("limit", [1_000, 50_000])
async def test_a_long_text_is_cut_and_every_page_of_it_can_be_read(at_home, limit):
    text = "".join(f"{n}: grün 漢字 🙂\n" for n in range(20_000))
    shown = fit(text, at_home, limit)
    assert len(shown) <= limit
    assert shown.startswith("0: grün")
    output, count = NOTE.search(shown).groups()
    assert await pages(at_home, output, int(count.replace(",", ""))) == text
    for page in await pages_of(at_home, output):
        assert fit(page, at_home, limit) == page  # a page is never cut again


async def pages_of(context, output):
    call = read_output.validate({"id": output, "page": 2})
    return [await read_output._invoke(call, context, print)]


async def test_the_file_is_in_the_home_and_for_its_owner_alone(at_home):
    fit("x" * 2000, at_home, 1000)
    (file,) = (at_home.app.home / "outputs").iterdir()
    assert file.read_text() == "x" * 2000
    assert file.stat().st_mode & 0o077 == 0


async def test_without_an_app_a_folder_of_the_process_is_used(context):
    output, count = NOTE.search(fit("y" * 3000, context, 1000)).groups()
    assert await pages(context, output, int(count)) == "y" * 3000


def test_parts_are_cut_each_for_itself_and_pictures_stay(at_home):
    picture = ImagePart(b"x" * 5000)
    short, long, same = fit([TextPart("a"), TextPart("b" * 5000), picture], at_home, 1000)
    assert short == TextPart("a")
    assert same is picture
    assert len(long.text) <= 1000
    assert NOTE.search(long.text)


@pytest.mark.parametrize("output", ["", "../../etc/passwd", "00000000-1000", "0" * 5000, "a\0b"])
async def test_an_output_that_is_none_is_told(call, output):
    with pytest.raises(ToolError, match="this session has no kept output"):
        await call(read_output, id=output)


async def test_a_page_past_the_end_is_told(at_home):
    output, _ = NOTE.search(fit("z" * 3000, at_home, 1000)).groups()
    arguments = read_output.validate({"id": output, "page": 9})
    with pytest.raises(ToolError, match="has 4 pages; page is 9"):
        await read_output._invoke(arguments, at_home, print)


def test_where_nothing_can_be_kept_the_text_is_cut_all_the_same(at_home):
    at_home.app.home.write_text("a file")
    shown = fit("x" * 2000, at_home, 1000)
    assert len(shown) <= 1000
    assert "the whole could not be kept" in shown


def test_the_oldest_outputs_make_room(at_home, monkeypatch):
    monkeypatch.setattr(spool, "KEPT_FILES", 3)
    for _ in range(5):
        fit("x" * 2000, at_home, 1000)
    assert len([*(at_home.app.home / "outputs").iterdir()]) == 3


def test_only_the_beginning_of_an_endless_output_is_kept(at_home, monkeypatch):
    monkeypatch.setattr(spool, "KEPT_BYTES", 5000)
    assert "[the first 5,000 bytes are kept: " in fit("x" * 20_000, at_home, 1000)
    (file,) = (at_home.app.home / "outputs").iterdir()
    assert file.stat().st_size == 5000


async def test_a_long_output_of_the_shell_can_be_read_whole(at_home):
    arguments = shell.validate({"command": "seq 100000"})
    shown = await shell._invoke(arguments, at_home, lambda value: None)
    assert fit(shown, at_home) == shown
    output, count = NOTE.search(shown).groups()
    whole = "".join(f"{n}\n" for n in range(1, 100_001))
    assert await pages(at_home, output, int(count)) == whole


@pytest.mark.parametrize("session", ["", "other", "s/sub", "S", "s ", "../s", "s\0"])
async def test_only_the_session_that_an_output_belongs_to_can_read_it(at_home, session):
    mine = replace(at_home, session_id="s")
    (output, _) = NOTE.search(fit("x" * 5000, mine, 1000)).groups()
    assert await pages(mine, output, 7) == "x" * 5000
    with pytest.raises(ToolError, match="this session has no kept output"):
        await pages(replace(at_home, session_id=session), output, 7)
