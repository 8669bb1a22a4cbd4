"""Ids and kinds."""

import os
import threading
import time

import pytest

import hookline.tape as tape_package
from hookline.tape import KINDS, Entry, new_id


def test_ids_of_one_process_are_unique_and_sort_by_when_they_were_made():
    ids = [new_id() for _ in range(100_000)]
    assert sorted(ids) == ids
    assert len(set(ids)) == len(ids)
    assert {len(each) for each in ids} == {20}


def test_ids_stay_unique_and_sorted_when_the_clock_is_set_back():
    first = new_id(time.time() + 5)
    assert new_id(1.0) > first


def test_more_ids_than_fit_a_millisecond_go_on_in_the_next():
    ids = [new_id(1.0) for _ in range(2**15 + 10)]
    assert sorted(set(ids)) == ids


def test_ids_made_by_threads_are_unique():
    made: list[str] = []
    threads = [
        threading.Thread(target=lambda: made.extend([new_id() for _ in range(5_000)])) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(made)) == 40_000


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_process_makes_other_ids():
    read, write = os.pipe()
    if (child := os.fork()) == 0:
        os.write(write, new_id()[-8:].encode())
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(read, 8).decode() != new_id()[-8:]


def test_an_entry_cannot_be_changed():
    entry = Entry.new("s", None, "note", {})
    with pytest.raises(AttributeError):
        entry.kind = "other"


def test_every_kind_has_a_constant():
    assert {getattr(tape_package, kind.upper()) for kind in KINDS} == KINDS
