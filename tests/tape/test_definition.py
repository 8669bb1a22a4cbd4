"""An entry's fields and kinds are stated once: stores, exports and copies follow that definition."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import hookline
from hookline.tape import entry as definition
from hookline.tape.entry import KINDS, Entry, EntryRow

from .. import postgres

SOURCE = Path(hookline.__file__).parent

EDITS = [
    ("    time: float = 0.0\n", '    time: float = 0.0\n    origin: str = ""\n'),
    ('    payload: str\n    """JSON."""\n', '    payload: str\n    """JSON."""\n    origin: str\n'),
    ("float(entry.time), meta, payload\n", "float(entry.time), meta, payload, entry.origin\n"),
    ("time, meta, payload = row[:WIDTH]", "time, meta, payload, origin = row[:WIDTH]"),
    ("content, about, time)\n", "content, about, time, origin)\n"),
]
"""Everything that a new column takes, in `tape/entry.py`."""

USE = """
import asyncio, sys
from dataclasses import replace
import psycopg
from hookline.tape import Entry, MemoryTapeStore, SQLiteStore
from hookline.tape.copy import copy
from hookline.tape.jsonl import export, import_
from hookline.tape.postgres.status import broken_entry
from hookline.tape.postgres.store import PostgresStore

CHANGE = "UPDATE {}.entries SET origin = 'forged' WHERE origin = 'here'"

async def main(path, url, schema):
    first = replace(Entry.new("s", None, "note", {}), origin="here")
    made = [first]
    for number in range(20):
        named = Entry.new("s", made[-1].id, "name", {"name": str(number)})
        made.append(replace(named, origin=str(number)))
    stores = [MemoryTapeStore(), SQLiteStore(path), await PostgresStore.open(url, schema=schema)]
    await stores[0].append(made[:1])
    await stores[0].append(made[1:])
    await copy(stores[0], stores[1])
    await copy(stores[1], stores[2])
    lines = [line async for line in export(stores[2])]
    stores.append(SQLiteStore(path + "2"))
    await import_(stores[-1], lines, mark=False)
    for store in stores:
        assert await store.entries("s") == made, store
        assert await store.branch(made[-1].id) == made
        assert (await store.leaf("s")).origin == "19"
        assert (await store.get(first.id)).origin == "here"
        (info,) = await store.sessions()
        assert info.name == "19"
        await store.close()
    assert await broken_entry(url, schema) is None
    connection = await psycopg.AsyncConnection.connect(url, autocommit=True)
    for statement in ("SET session_replication_role = replica", CHANGE.format(schema)):
        await connection.execute(statement)
    await connection.close()
    assert (await broken_entry(url, schema))[1] == first.id

asyncio.run(main(*sys.argv[1:]))
"""


def test_a_new_column_is_added_in_the_definition_alone(tmp_path: Path) -> None:
    copied = tmp_path / "src" / "hookline"
    shutil.copytree(SOURCE, copied, ignore=shutil.ignore_patterns("__pycache__", "static"))
    text = (copied / "tape/entry.py").read_text()
    for old, new in EDITS:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    (copied / "tape/entry.py").write_text(text)
    schema = postgres.new_schema()
    used = subprocess.run(
        [sys.executable, "-c", USE, str(tmp_path / "tape.db"), postgres.url(), schema],
        env={**os.environ, "PYTHONPATH": str(copied.parent)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert used.returncode == 0, used.stderr


def test_a_row_has_the_fields_of_an_entry() -> None:
    assert set(EntryRow._fields) == {field.name for field in fields(Entry)}


def test_every_kind_has_a_constant_and_every_constant_is_a_kind() -> None:
    constants = {v for k, v in vars(definition).items() if isinstance(v, str) and k.lower() == v}
    assert constants == KINDS


def test_no_other_module_states_a_kind() -> None:
    elsewhere = {
        (path.relative_to(SOURCE).as_posix(), node.value.value)
        for path in SOURCE.rglob("*.py")
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.Assign)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
        and [ast.unparse(target).lower() for target in node.targets] == [node.value.value]
        and node.value.value in KINDS
    }
    assert elsewhere == set()


def test_core_appends_only_entries_of_known_kinds() -> None:
    written = {
        node.args[0].value
        for path in SOURCE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call)
        and ast.unparse(node.func).endswith("tape.append")
        and isinstance(node.args[0], ast.Constant)
    }
    assert written <= KINDS
