"""What the load test computes from the times of requests, and its tables."""

import json

from benchmarks import serving, serving_clients

# Requests of 100 ms every 0.1 s from 10 s on; the one that begins at 10.5 s takes 700 ms.
SAMPLES = [(10 + i / 10, 700.0 if i == 5 else 100.0) for i in range(10)]


def test_a_summary_has_the_rate_and_the_longest_waits():
    found = serving.summary(SAMPLES)
    assert found["requests"] == 10 and round(found["requests_per_second"], 3) == round(10 / 1.2, 3)
    assert (found["p50_ms"], found["p99_ms"], found["most_ms"]) == (100, 100, 700)


def test_requests_at_a_change_of_versions_are_apart():
    found = serving.summary(SAMPLES, [(10.45, 10.55), (11.15, 11.3)])
    # The first change has the requests that begin at 10.4 and 10.5; the slow one is of both.
    assert found["at_change"]["requests"] == 2 and found["at_change"]["most_ms"] == 700
    assert found["else"]["requests"] == 8 and found["else"]["most_ms"] == 100
    assert [round(s, 2) for s in found["seconds_of_change"]] == [0.1, 0.15]


def test_the_tables():
    values = {"requests_per_second": 40.0, "p50_ms": 20.0, "p99_ms": 31.0}
    loads = {str(count): values for count in serving.CLIENTS}
    cases = [case for case in serving.plan(1000) if case.what == serving.LOAD]
    rows = {case: case._asdict() | {"loads": loads} for case in cases}
    slow = loads | {"1": values | {"requests_per_second": 20.0}}
    rows[cases[0]] = rows[cases[0]] | {"loads": slow}
    head, _, *lines = serving.serving_load(rows)
    assert head == "| batches | signature | 1 client | 8 clients | 32 clients |"
    assert lines[0] == "| none | tasks | 30/s, 20, 31 ms | 40/s, 20, 31 ms | 40/s, 20, 31 ms |"
    assert len(lines) == len(serving.BATCHES) + 1
    memory = {"what": serving.MEMORY, "turn": 1000, "memory_mb": [900.0] + [950.0] * 20}
    assert serving.serving_memory({0: memory})[2:4] == ["| 0 | 900 |", "| 50 | 950 |"]
    waits = {"requests": 2000, "p50_ms": 20.0, "p99_ms": 31.0, "most_ms": 99.6}
    reload = {"what": serving.RELOAD, "else": waits, "at_change": waits}
    assert serving.serving_reload({0: reload})[2] == "| at other times | 2,000 | 20 | 31 | 100 |"


def test_requests_are_of_all_tasks_by_both_kinds_of_signatures():
    mixed, own = (
        [json.loads(body) for body in serving_clients.Asked(["a", "b"], own, 20).bodies()[:4]]
        for own in ([], ["a", "b"])
    )
    assert [body["inputs"]["task"] for body in mixed] == [["a"], ["b"], ["a"], ["b"]]
    assert [body["signature_name"] for body in own] == ["a", "b", "a", "b"]
    assert all(list(body["inputs"]) == ["text_a"] for body in own)
    lengths = sorted(len(text.split()) for text in serving_clients.texts(2000, 20))
    assert lengths[0] == 3 and lengths[-1] == 120 and 18 <= lengths[1000] <= 21
