"""Filters mean the same in SQLite as in Python."""

import json
import sqlite3

from hypothesis import given
from hypothesis import strategies as st

from hookline.ext.stores import filters

SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.sampled_from([-0.5, 1.0, 2.5]),
    st.sampled_from(["", "a", "b", "1", "true", "ä"]),
)
VALUES = st.one_of(SCALARS, st.lists(SCALARS, max_size=3), st.dictionaries(st.just("x"), SCALARS))
DATA = st.dictionaries(st.sampled_from("ab"), VALUES)
ORDERED = st.one_of(st.integers(-3, 3), st.sampled_from([-0.5, 2.5, "", "a", "ä"]))
WANTED = st.one_of(
    SCALARS,
    st.fixed_dictionaries({"ne": SCALARS}),
    st.fixed_dictionaries({"contains": SCALARS}),
    st.fixed_dictionaries({"in": st.lists(SCALARS, max_size=3)}),
    st.dictionaries(st.sampled_from(["gt", "gte", "lt", "lte"]), ORDERED, min_size=1),
)


@given(DATA, st.dictionaries(st.sampled_from(["a", "b", "a.x"]), WANTED, max_size=2))
def test_sqlite_and_python_agree(data, where):
    wanted = filters.conditions(where)
    clause, values = filters.sql(wanted, "data")
    db = sqlite3.connect(":memory:")
    statement = f"SELECT count(*) FROM (SELECT ? AS data) WHERE 1{clause}"
    (found,) = db.execute(statement, [json.dumps(data, ensure_ascii=False), *values]).fetchone()
    db.close()
    assert bool(found) is filters.met(wanted, data)
