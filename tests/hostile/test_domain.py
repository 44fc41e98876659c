"""The corpus through a whole batch: the product's own steps, landing, stitching, gate and tables; no broker, no Spark.

Proves I1 (what is not published is held, with its bytes), I2 (sent again, nothing is published again) and I3.
"""

from __future__ import annotations

import time
from collections import Counter

import pytest

from tests.deployment_rig import STREAM
from tests.hostile.corpus import record_kinds
from tests.hostile.kind import DUPLICATE, PUBLISHED, Kind
from tests.hostile.landed_deployment import reader_of, run_landed_batch
from tests.hostile.outcome import count_fates, held_records, problems
from tests.hostile.sending import ALLOWED_LATENESS_S, Carried, carry_corpus, record_time, said
from wavestitch.batch.carry import Silent
from wavestitch.batch.comparing_edges import VerifyingEdges
from wavestitch.batch.verify import verify_range
from wavestitch.batch.verify_request import VerifyRequest
from wavestitch.contracts.quantities import Partition
from wavestitch.contracts.verification import Agreement


@pytest.fixture(scope="module")
def carried(tmp_path_factory: pytest.TempPathFactory) -> Carried:
    return carry_corpus(tmp_path_factory.mktemp("hostile") / "deployment")


@pytest.mark.parametrize("kind", record_kinds(), ids=lambda k: k.name)
def test_every_record_of_a_kind_ends_as_it_must(kind: Kind, carried: Carried) -> None:
    assert problems(carried.sent, carried.held).get(kind.name, []) == []


def test_nothing_else_is_held_and_no_probe_is(carried: Carried) -> None:
    assert problems(carried.sent, carried.held) == {}


def test_published_is_what_was_sent_whole_and_nothing_else(carried: Carried) -> None:
    assert carried.whole.published() == carried.samples


def test_the_audit_identity_counts_every_record_once(carried: Carried) -> None:
    counts = carried.done["counts"]
    assert carried.done["identity_balances"]
    assert counts["read"] == len(carried.sent)
    expected = count_fates(carried.sent.values())
    assert {fate: counts[fate] for fate in expected} == dict(expected)
    assert sum(expected.values()) == len(carried.sent)


def test_no_file_is_named_after_anything_that_was_sent(carried: Carried) -> None:
    ours = ("slice-p", "receipt-", "assignment-", "stitched-", "job-", "report-", "verdict-", "decision-", "plan.json")
    landing = carried.deployment.settings.landing
    (folder,) = [p.parent for p in landing.glob("*/*/plan.json")]
    assert [p.name for p in folder.iterdir() if not p.name.startswith(ours)] == []
    ids = [i for i in carried.samples if len(i) > 3 and not i.startswith("probe")]
    everything = [str(p.relative_to(carried.whole.folder)) for p in carried.whole.folder.rglob("*")]
    assert [(i, name) for i in ids for name in everything if i in name.rpartition("/")[2]] == []


def test_a_verification_says_of_every_record_that_it_is_published_or_held_and_why(carried: Carried) -> None:
    edges = VerifyingEdges(carried.deployment, STREAM, read=reader_of(carried.deployment))
    done = verify_range(edges, VerifyRequest(), watcher=Silent())
    expected = Counter(one.becomes for one in carried.sent.values())
    published = expected.pop(PUBLISHED) + expected.pop(DUPLICATE)
    found = {what: n for what, n in done.records.items() if n}
    assert sum(found.values()) == len(carried.sent)
    # A duplicate is of what is published or of what is held.
    assert set(found) == {"published", "held"}
    assert found["published"] <= published
    assert {reason: n for reason, n in done.held.items() if reason not in expected} == {}
    assert all(done.held[reason] >= n for reason, n in expected.items())
    assert (done.exit_code, done.misplaced) == (0, ())
    assert {one.found for one in done.waveforms} == {Agreement.SAME, Agreement.HELD}


def test_sent_again_all_that_was_published_is_a_replay(carried: Carried) -> None:
    """Each id is found again in the table, whatever it looks like: statistics, filters and caches included (I2)."""
    now_ms = time.time_ns() // 1_000_000
    whole = {one.kind for one in carried.sent.values() if one.becomes == PUBLISHED}
    mixed = {one.kind for one in carried.sent.values() if one.becomes != PUBLISHED}
    again = [one for one in carried.sent.values() if one.kind in whole - mixed]
    for one in again:
        carried.deployment.memory.append(Partition(one.partition), record_time(one.record, now_ms), *said(one.record))
    before, held_before = carried.whole.published(), held_records(carried.whole, allowed_lateness_s=ALLOWED_LATENESS_S)
    done = run_landed_batch(carried.deployment)
    assert done["counts"]["replay"] == done["counts"]["read"] == len(again)
    assert (done["counts"]["published"], done["counts"]["quarantined"]) == (0, 0)
    assert carried.whole.published() == before
    assert held_records(carried.whole, allowed_lateness_s=ALLOWED_LATENESS_S) == held_before
