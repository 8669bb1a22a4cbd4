"""Server-sent events are the same in whatever pieces they arrive, and bounded."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookline.errors import BadResponse
from hookline.models.http.sse import EventReader

STREAM = (
    b"\xef\xbb\xbf: a comment\n\nevent: x\nid: 1\ndata: one\n\ndata:two\r\n\r\n"
    b"data: three\ndata: four\n\n\n\nretry: 5\n\ndata: five"
)
EVENTS = [b"one", b"two", b"three\nfour", b"five"]


@given(st.lists(st.integers(0, len(STREAM)), max_size=30))
def test_events_do_not_depend_on_where_the_bytes_are_cut(cuts):
    reader = EventReader()
    found: list[bytes] = []
    places = [0, *sorted(cuts), len(STREAM)]
    for start, end in pairwise(places):
        found += reader.feed(STREAM[start:end])
    assert found + reader.end() == EVENTS


@pytest.mark.parametrize("piece", [b"x" * 10, b"data: x\n", b"data:\n", b"data: " + b"x" * 10])
def test_an_endless_event_is_refused(piece):
    reader = EventReader(limit=1000)

    def feed() -> None:
        for _ in range(1000):
            reader.feed(piece)

    with pytest.raises(BadResponse, match="more than 1000 bytes"):
        feed()


def test_many_short_events_are_no_long_one():
    reader = EventReader(limit=100)
    assert sum(len(reader.feed(b"data: 12345\n\ndata: 6")) for _ in range(1000)) == 1000


def test_a_long_line_in_single_bytes_takes_linear_time():
    reader = EventReader()
    for _ in range(300_000):
        assert not reader.feed(b"x")
