"""The simulation of `benchmarks/simulate.py`: what it says of loads whose outcome is known."""

import json
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


@pytest.fixture
def simulate(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import simulate

    return simulate


def quick(simulate, **changed):
    """Costs that can be added up by hand: 1 ms of a worker for each of ten transactions."""
    given = {"worker_cpu": 0.010, "database_cpu": 0.001, "transactions": 10, "flushes": 4}
    given |= {"wake": 0.0, "deliver_cpu": 0.0, "flush": 0.001, "notice": 0.002}
    return simulate.Costs(**{**given, **changed})


def test_the_same_seed_gives_the_same_outcome_and_another_seed_another(simulate):
    cluster, load = simulate.Cluster(workers=3), simulate.Load(200, 20, rate=100.0)
    first, again, other = (
        simulate.Simulation(quick(simulate), cluster, load, seed).run() for seed in (7, 7, 8)
    )
    assert first == again
    assert first.seconds != other.seconds


@pytest.mark.parametrize("rate", [None, 50.0, 5000.0])
@pytest.mark.parametrize("databases", [1, 2])
def test_nothing_is_lost_or_done_twice(simulate, rate, databases):
    cluster = simulate.Cluster(workers=4, databases=databases, polling=0.2)
    outcome = simulate.Simulation(quick(simulate), cluster, simulate.Load(300, 15, rate)).run()
    assert outcome.accepted == 300
    assert sorted(job.number for job in outcome.done) == list(range(300))


def test_a_session_keeps_its_order_and_has_one_turn_at_a_time(simulate):
    cluster = simulate.Cluster(workers=4, polling=0.05)
    outcome = simulate.Simulation(quick(simulate), cluster, simulate.Load(120, 3)).run()
    for session in range(3):
        lane = [job for job in outcome.done if job.session == session]
        assert [job.number for job in lane] == sorted(job.number for job in lane)
        starts = [job.started for job in lane]
        # A turn has nine slices of 1 ms after its fetching: no two can begin within that time.
        assert min(b - a for a, b in pairwise(starts)) > 0.009


def test_a_saturated_worker_makes_as_many_turns_as_its_core_allows(simulate):
    outcome = simulate.Simulation(quick(simulate), simulate.Cluster(), simulate.Load(500, 500)).run()
    assert outcome.per_second == pytest.approx(100, rel=0.05)  # 10 ms of CPU each
    assert outcome.cpu_ms == pytest.approx(11, rel=0.01)
    assert outcome.wait_ms(0.5) == pytest.approx(2500, rel=0.1)  # half of the five seconds it takes


def test_an_idle_worker_answers_after_the_notice_one_fetch_and_the_turn(simulate):
    load = simulate.Load(100, 10_000, rate=0.5)
    outcome = simulate.Simulation(quick(simulate), simulate.Cluster(polling=1e6), load).run()
    # 2 ms of notice; ten slices of 1 ms, 0.1 ms of the database for each, and three flushes of 1 ms.
    assert outcome.wait_ms(0.5) == pytest.approx(16, rel=0.01)


def test_whoever_has_a_session_goes_on_with_its_next_message_at_once(simulate):
    outcome = simulate.Simulation(
        quick(simulate), simulate.Cluster(workers=2, polling=5.0), simulate.Load(2, 1)
    ).run()
    first, second = outcome.done
    assert first.started < 0.01
    assert second.started == pytest.approx(first.finished)


def test_of_each_message_one_worker_hears(simulate):
    cluster = simulate.Cluster(workers=8, polling=1e6)
    outcome = simulate.Simulation(quick(simulate), cluster, simulate.Load(200, 10_000, 20.0)).run()
    assert outcome.empty_fetches < 40  # were all eight told, it would be 1,400


def test_a_worker_that_was_asleep_costs_more_than_one_that_is_busy(simulate):
    costs = quick(simulate, wake=0.0005)

    def spent(rate):
        load = simulate.Load(300, 10_000, rate)
        return simulate.Simulation(costs, simulate.Cluster(polling=1e6), load).run().worker_ms

    assert spent(None) == pytest.approx(10, rel=0.02)
    assert spent(1.0) == pytest.approx(15, rel=0.02)  # ten slices, each of which wakes it
    assert 10 < spent(60.0) < 15


def test_shared_flushes_let_more_turns_through_than_the_disk_has_flushes(simulate):
    slow = quick(simulate, worker_cpu=0.0001, flush=0.010)
    outcome = simulate.Simulation(slow, simulate.Cluster(workers=8), simulate.Load(2000, 500)).run()
    flushes_per_second = 1 / slow.flush
    assert outcome.per_second * slow.flushes > 10 * flushes_per_second


def test_the_database_limits_what_workers_can_add_and_a_second_one_lifts_that(simulate):
    costs = quick(simulate, database_cpu=0.010)
    load = simulate.Load(1500, 3000)

    def throughput(workers, databases):
        cluster = simulate.Cluster(workers, databases=databases, database_cores=2)
        return simulate.Simulation(costs, cluster, load).run().per_second

    assert throughput(2, 1) == pytest.approx(200, rel=0.1)
    assert throughput(8, 1) == pytest.approx(200, rel=0.1)  # 2 cores, 10 ms each
    assert throughput(8, 2) > 1.7 * throughput(8, 1)


def test_the_command_fits_one_worker_compares_the_others_and_writes_it(tmp_path):
    def row(workers, pace, per_second, worker_ms):
        waits = {"wait_p50_ms": 30.0, "wait_p90_ms": 50.0} if pace else {}
        sizes = {"workers": workers, "turns": 300, "sessions": 300, "pace": pace, "cores": 2.0}
        spent = {"worker_ms": worker_ms, "database_ms": 2.0, "gateway_ms": 0.5, "accept_ms": 0.5}
        return {"per_second": per_second, **sizes, **spent, **waits}

    measured = {
        "machine_cores": 2,
        "concurrency": 32,
        "paced": [row(1, 10.0, 10.0, 6.0), row(2, 20.0, 20.0, 6.0)],
        "fast": [row(1, 0.0, 200.0, 4.0), row(2, 0.0, 220.0, 5.0)],
        "postgres": {
            "transactions": 15.2,
            "flushes": 8.1,
            "commit_ms": 0.5,
            "commit_unflushed_ms": 0.1,
            "notice_ms": 0.1,
        },
    }
    (tmp_path / "measured.json").write_text(json.dumps(measured))
    files = ["--measured", "measured.json", "--json", "curve.json"]
    sizes = ["--workers", "1", "2", "--turns", "20"]
    done = subprocess.run(
        [sys.executable, BENCHMARKS / "simulate.py", *files, *sizes],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads((tmp_path / "curve.json").read_text())
    assert [(row["workers"], row["pace"]) for row in found["compared"]] == [
        (1, 10.0),
        (2, 20.0),
        (1, 0.0),
        (2, 0.0),
    ]
    for row in found["compared"]:
        if row["workers"] == 1:  # given
            assert row["simulated"]["worker_ms"] == pytest.approx(
                row["measured"]["worker_ms"], rel=0.02
            )
        off = row["simulated"]["per_second"] / row["measured"]["per_second"] - 1
        assert row["error"]["per_second"] == pytest.approx(off)
    assert found["curve"][1]["per_second"] > found["curve"][0]["per_second"]
