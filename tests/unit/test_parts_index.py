"""What the batches of a backfill hand on of what they kept: the same, however often and by whom it is said."""

from __future__ import annotations

import hashlib

from wavestitch.contracts.parts_index import Keeper, PartsIndex, index_of, merged
from wavestitch.contracts.seams import Part, Parts


def keeps(plan_id: str, *ids: str) -> Parts:
    return Parts(plan_id, tuple(Part(i, (), ()) for i in ids))


def digits(waveform_id: str) -> str:
    return hashlib.sha256(waveform_id.encode()).hexdigest()[:16]


def test_what_a_batch_kept_is_said_once_for_each_waveform_and_in_an_order_that_is_always_the_same() -> None:
    ids = [f"w-{n}" for n in range(40)]
    ordered = "".join(sorted(map(digits, ids)))
    assert index_of(keeps("p", *ids, *ids[:3]), ()) == PartsIndex((Keeper("p", ordered),))
    assert index_of(keeps("p", *reversed(ids)), ()) == PartsIndex((Keeper("p", ordered),))


def test_who_may_have_kept_something_of_a_waveform_is_found_among_all_before() -> None:
    first = index_of(keeps("p", "a", "b"), ())
    second = index_of(keeps("q", "b", "c"), [first, first])
    assert second.kept[:1] == first.kept
    assert [second.keepers([i]) for i in "abcd"] == [("p",), ("p", "q"), ("q",), ()]
    assert second.keepers("ca") == ("p", "q")
    assert second.keepers([]) == ()


def test_a_batch_that_kept_nothing_hands_on_what_those_before_it_did() -> None:
    first, other = (index_of(keeps(plan_id, "a"), ()) for plan_id in "pq")
    assert index_of(keeps("r"), [first, other]) == merged([first, other, first]) == PartsIndex(first.kept + other.kept)
    assert index_of(keeps("r"), ()) == PartsIndex(())


def test_a_waveform_is_found_where_its_own_digits_stand_and_not_across_those_of_two_others() -> None:
    ids = f"{digits('a')}{digits('b')}"
    assert Keeper("p", ids).may_have({digits("b")})
    assert not Keeper("p", ids).may_have({ids[8:24]})
