"""The soak's verdict can fail: it finds a leak, and what is lost, doubled or altered; and it lets a steady run pass."""

from __future__ import annotations

import random

import pytest

from tests.soak.producing import Production, digest_of
from tests.soak.report import markdown, trends_json, write_report
from tests.soak.verdict import ALLOWED, MIB, judge_data, judge_growth, slope


def steady(leak: str = "", per_sample: float = 0.0) -> list[dict[str, float]]:
    """An hour of samples, a minute apart, with a little noise."""
    rng = random.Random(7)
    samples = []
    for n in range(61):
        found = {figure: 1000 * MIB * (1 + rng.uniform(-0.02, 0.02)) for figure in ALLOWED}
        found |= {"seconds": n * 60.0, "sent_bytes": n * MIB, "batches_run": n * 10}
        if leak:
            found[leak] += n * per_sample
        samples.append(found)
    return samples


def test_a_steady_run_passes():
    assert [t.figure for t in judge_growth(steady()) if not t.bounded] == []


@pytest.mark.parametrize("figure", sorted(ALLOWED))
def test_a_leak_in_any_figure_is_found_and_named(figure):
    found = judge_growth(steady(figure, per_sample=40 * MIB))
    assert [t.figure for t in found if not t.bounded] == [figure]
    assert next(t for t in found if t.figure == figure).per_hour == pytest.approx(2400 * MIB, rel=0.2)


def test_too_few_samples_give_no_verdict():
    with pytest.raises(ValueError, match="at least 8"):
        judge_growth(steady()[:10])


def test_the_slope_is_that_of_the_line():
    assert slope([0, 1, 2, 3], [5, 7, 9, 11]) == pytest.approx(2)
    assert slope([1, 1], [5, 7]) == 0


def test_what_is_lost_twice_altered_or_invented_is_counted():
    truth = {"a": b"1", "b": b"2", "c": b"3"}
    assert judge_data(truth, [("a", b"1"), ("b", b"2"), ("c", b"3")], 0) == {
        "lost": 0,
        "twice": 0,
        "altered": 0,
        "invented": 0,
        "unbalanced": 0,
    }
    found = judge_data(truth, [("a", b"1"), ("a", b"1"), ("b", b"x"), ("z", b"9")], 2)
    assert found == {"lost": 1, "twice": 1, "altered": 1, "invented": 1, "unbalanced": 2}


def test_what_is_produced_is_whole_in_the_end_whatever_was_disturbed():
    production = Production(random.Random(3))
    sent = [c for _ in range(30) for c in production.round(6)] + production.rest()
    assert production.corrupt
    assert production.duplicates
    pieces: dict[str, dict[int, bytes]] = {}
    for chunk in sent:
        headers = dict(chunk.headers)
        pieces.setdefault(chunk.waveform_id, {}).setdefault(int(headers["ws-seq"]), bytes(chunk.value))
    good = sum(digest_of(b"".join(p[n] for n in sorted(p))) == production.truth[i] for i, p in pieces.items())
    assert good >= len(production.truth) - production.corrupt
    assert pieces.keys() == production.truth.keys()


def test_the_report_says_what_was_found(tmp_path):
    samples = steady("rss_soak", per_sample=40 * MIB)
    report = {
        "passed": False,
        "hours": 1.0,
        "seed": 7,
        "waveforms": 3,
        "sent_bytes": MIB,
        "events": {"batches": 600},
        "data": judge_data({"a": b"1"}, [], 0),
        "trends": trends_json(judge_growth(samples)),
        "problems": ["rss_soak grows beyond its limit"],
    }
    path = write_report(tmp_path, report, samples)
    assert path.exists()
    assert path.with_suffix(".png").stat().st_size > 10_000
    text = markdown(report)
    assert "FAILED" in text
    assert "1 lost" in text
    assert "| rss_soak |" in text
    assert text.count("**NO**") == 1
