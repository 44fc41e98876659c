"""A fixed set of random histories keeps every promise, and every seeded bug of the product breaks exactly its own.

More of them: `python -m tests.histories.run --histories 10000`.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.domain.effort import FACTOR
from tests.histories import mutants
from tests.histories.anomaly import Kind
from tests.histories.history import load_history
from tests.histories.play import Play
from tests.histories.random_histories import LONGEST, SHORTEST, Summary, check_seed, judge, play_history, run_histories
from tests.histories.run import done_so_far, keep
from tests.histories.tracing import STEPS

FIRST, SEEDS = 0, 100  # a stretch in which all that is asked for below happens, rare ends too
ACTS = (
    *("ingest", "ingest again", "backfill", "backfill again", "manual", "rewind", "quiet ingest", "advice followed"),
    *("partial rewind", "run until a named offset"),
    *("kill before", "kill after", "fail before", "fail after", "conflict", "resent", "late", "never lands"),
    *("lands after its run", "lands beside another run", "lands while healing"),
    *("lands: tables.commit", "lands: log.commit_group", "lands: tables.stage_held", "lands: tables.append_batches"),
    *("lands: folder.begin", "lands: staging.files_for", "lands: staging.keep"),
    *("transaction committed", "transaction aborted", "markers", "late chunk", "repeated chunk", "bad record"),
    *(
        "conflicting chunk",
        "forged chunk",
        "count taught later",
        "chunks with a MAC",
        "stranger's repeat",
        "junk flood",
    ),
    *("reset", "expiry", "shared group", "retention", "partition", "member", "compacted", "recreated"),
    *("truncated", "offset lost", "what is good taken in", "disk backed up", "disk put back"),
    *("disk put back into its epoch", "a reader killed over a file", "a reader at work"),
    *("a stage of maintenance fails", "a catalog fails in its own words"),
    *("reader: empty", "reader: stale end", "reader: jump"),
    *("snapshots", "history rows gone", "property edited", "catalog lost", "catalog set back", "head expired"),
    *("gate: accept", "gate: park", "gate: abandon", "a month at a closed gate", "limit raised"),
    *("held: redrive", "held: accept", "held: pick", "held: discard", "held: restore", "held again"),
    *("everything decided", "sent again though held"),
    *("undo", "undo of positions", "undo of a decision", "half decided", "back behind a cut"),
    *("approved: before", "approved: while", "approved: definition", "approved: nothing"),
    *("diluted decision", "diluted backfill", "unsure gate", "small junk limit"),
    "proof asked for later",
    *("verified: same", "verified: differs", "verified: held", "verified: discarded", "verified: missing in the table"),
    *("verified: missing in Kafka", "verified: not found in Kafka", "verified: outside", "verified: skipped"),
    "verified: held, gone from Kafka",
    *("forked", "copy goes on", "set back beside", "dropped beside", "forked beside"),
    *("chain of batches", "backfill chain again", "half a chain", "read across cuts", "skipped and backfilled"),
    *("maintain", "contradicted and maintained"),
    *("promote: shown", "promote", "promote again", "promoted later", "undo of a promotion"),
    *("beside a promotion: an ingest", "beside a promotion: a decision", "beside a promotion: a rewind"),
    *("an index of ids", "index vanishes", "index is damaged", "index is copied", "index is put back"),
    *("small byte budget", "large records", "a broker lags"),
    *("given up while it publishes", "gate closes while another publishes", "second copies"),
)
ENDS = ("done", "nothing to do", "killed", "Fenced", "Refused", "DataLost", "Transient", "StateUnknown", "GateClosed")


@pytest.fixture(scope="module")
def played() -> Summary:
    return run_histories(first_seed=FIRST, count=SEEDS, deadline_seconds=1200)


def test_no_random_history_has_an_anomaly(played: Summary) -> None:
    assert played.anomalies == {}, played.claim()
    assert played.histories == SEEDS, "too slow: not all histories were played"


def test_the_histories_do_all_that_they_should(played: Summary) -> None:
    """A set of histories in which something never happens proves nothing about it."""
    missing = [act for act in (*ACTS, *(f"ended: {end}" for end in ENDS)) if not played.ops[act]]
    assert missing == []
    assert played.published > 2 * SEEDS


def test_the_histories_take_every_step_of_the_model(played: Summary) -> None:
    """Each of them, partition by partition, is a way through it: else there were anomalies."""
    assert [step for step in STEPS if not played.ops[f"model: {step}"]] == []


def test_a_seed_is_its_own_reproduction(tmp_path: Path) -> None:
    first, second = play_history(11)[0], play_history(11)[0]
    assert list(first) == list(second)
    first.save(tmp_path / "h.jsonl")
    assert list(load_history(tmp_path / "h.jsonl")) == list(first)


@pytest.mark.parametrize("seed", [5185, 5230, 23745, 23517, 28032, 82935])
def test_a_seed_that_once_had_an_anomaly_has_none(seed: int) -> None:
    """In the first two, what was sent again doubled every time, in one until no run could read the log by its deadline.
    Since it does not, they are other histories; what else 5185 showed is done on purpose below. In the third, a
    decision's commit lands after a copy of the catalog went on (`test_checker_excuses.py`); in the fourth, a repeat
    that says nothing of the whole is read while its row stands (`test_checker_of_promotions.py`); in the fifth, of
    two chunks of a row that somebody deleted one was held before, and the other one is skipped; in the sixth the group
    is set by hand while a rewind that has looked at it is under way."""
    assert [str(a) for a in check_seed(seed)] == []


def test_a_row_that_lacks_a_chunk_differs_also_where_the_next_one_is_told_as_skipped() -> None:
    """Who went over it by name is believed, where no head is left that proves that it was read (event 1044, w5)."""
    assert [str(a) for a in check_seed(3043)] == []


def test_what_is_sent_again_does_not_double_every_time() -> None:
    play = Play(5230)
    play.play(play.random.randint(SHORTEST, LONGEST))
    assert len(play.sent) < 2000


def test_what_is_whole_when_it_is_restored_too_late_is_redriven() -> None:
    ops = Counter[str]()
    for seed in range(6):
        history, done = play_history(seed, "whole_when_it_is_restored_too_late")
        assert [str(a) for a in judge(history)] == []
        ops += done
    assert ops["redriven after its restore"] > 0


def test_every_kind_of_anomaly_has_a_mutant() -> None:
    assert {m.kind for m in mutants.MUTANTS.values()} == set(Kind)


def test_records_that_are_no_chunks_expire_after_their_time_and_nothing_else_does() -> None:
    ops = Counter[str]()
    for seed in range(4):
        history, done = play_history(seed, "junk_expires")
        assert [str(a) for a in judge(history)] == []
        ops += done
    assert ops["junk expired"] > 0


@pytest.mark.parametrize("name", mutants.MUTANTS)
def test_a_seeded_bug_shows_as_exactly_its_kind(name: str) -> None:
    caught = mutants.hunt(name)
    assert caught.seed is not None, f"survived {mutants.MOST_SEEDS} histories; last seen: {caught.said}"


@pytest.mark.parametrize("act", sorted({m.act for m in mutants.MUTANTS.values()} - {""}))
def test_what_is_done_on_purpose_shows_nothing_where_the_product_is_sound(act: str) -> None:
    assert [str(a) for seed in range(4 * FACTOR) for a in check_seed(seed, act)] == []


def test_a_campaign_goes_on_where_it_stopped(tmp_path: Path) -> None:
    account = tmp_path / "account.json"
    kept = Summary(300, 5, 2, 9, 1.5, Counter(ingest=3), {7: ["lost"]})
    assert done_so_far("one", account) == ([], Summary())
    keep("one", [[0, 200], [300, 400]], kept, account)
    assert done_so_far("one", account) == ([[0, 200], [300, 400]], kept)
    assert done_so_far("other", account) == ([], Summary()), "what other code did is not counted"
