"""Waveforms that contradict themselves, lack something, or come too often, too late or in any order."""

from __future__ import annotations

from tests.hostile.kind import DUPLICATE, META, PUBLISHED, VALUE, Kind, Record, fine, held, meta, mixed, sealed
from wavestitch.contracts.reasons import Reason

LEVEL = "waveform"
MAX_CHUNKS = 32
"""`max_chunks` of the stream that the corpus is sent to."""
HOUR = 3600
OTHER = VALUE[::-1]


def chunk(waveform_id: str, seq: int, count: int | None, *, value: bytes = VALUE, **more: object) -> Record:
    said = None if count is None else b"%d" % count
    return sealed(waveform_id, seq=b"%d" % seq, count=said, value=value, **more)  # type: ignore[arg-type]


def waveform_kinds() -> list[Kind]:
    return [*_conflicts(), *_repeats(), *_incomplete(), *_too_large(), *_broken_copies(), *_orders(), *_times()]


def _conflicts() -> list[Kind]:
    def clash(name: str, wrong: str, *records: Record) -> Kind:
        return held(LEVEL, name, wrong, Reason.CONFLICT, *records)

    a = chunk("other-bytes", 0, 1)
    b = chunk("other-bytes", 0, 1, value=OTHER)
    again = chunk("third", 0, 1)
    return [
        clash("other bytes at the same place", "two truths", a, b),
        clash("a longer value at the same place", "two truths", chunk("cl", 0, 1), chunk("cl", 0, 1, value=VALUE * 2)),
        clash("two counts", "all that carry it agree", chunk("two-counts", 0, 2), chunk("two-counts", 1, 3)),
        clash("a count that shrinks", "a chunk lies beyond it", chunk("shrinks", 0, 1), chunk("shrinks", 1, None)),
        clash("a count that appears too low", "beyond", chunk("low", 5, None), chunk("low", 0, 2)),
        clash("another source", "byte-identical metadata", chunk("src", 0, 2), _chunk_of("src", source="other")),
        clash("another rate", "byte-identical metadata", chunk("rate", 0, 2), _chunk_of("rate", sampling_rate_hz=1)),
        clash("another start", "byte-identical metadata", chunk("start", 0, 2), _chunk_of("start", start_time_ns=1)),
        clash(
            "another sample format",
            "the same bytes would mean two things",
            chunk("fmt", 0, 2),
            _chunk_of("fmt", sample_format="i32le"),
        ),
        clash(
            "metadata with a space more",
            "byte-identical metadata",
            chunk("space", 0, 2),
            chunk("space", 1, 2, meta=META[:-1] + b" }"),
        ),
        clash(
            "two waveforms under one id",
            "two sources chose the same id",
            *(chunk("one-id", n, 2) for n in range(2)),
            *(chunk("one-id", n, 2, value=OTHER, meta=meta(source="second")) for n in range(2)),
        ),
        mixed(
            LEVEL,
            "a conflict and a repeat of one side",
            "a majority decides nothing",
            [
                (again, Reason.CONFLICT),
                (chunk("third", 0, 1, value=OTHER), Reason.CONFLICT),
                (again, DUPLICATE),
            ],
        ),
    ]


def _chunk_of(waveform_id: str, **changes: object) -> Record:
    return chunk(waveform_id, 1, 2, meta=meta(**changes))


def _repeats() -> list[Kind]:
    one, flood, keyless = chunk("five-times", 0, 1), chunk("flood", 0, 1), sealed("both-ways", keyed=False)
    return [
        mixed(
            LEVEL, "five times the same", "repeats", [(one, PUBLISHED)] + [(one, DUPLICATE)] * 4, **_as("five-times")
        ),
        mixed(
            LEVEL, "300 times the same", "a flood", [(flood, PUBLISHED)] + [(flood, DUPLICATE)] * 299, **_as("flood")
        ),
        mixed(
            LEVEL,
            "once by key and once by ws-id",
            "the same chunk",
            [(keyless, PUBLISHED), (sealed("both-ways"), DUPLICATE)],
            **_as("both-ways"),
        ),
        mixed(
            LEVEL,
            "each chunk twice, interleaved",
            "repeats",
            [(chunk("pairs", n // 2, 2), (PUBLISHED, DUPLICATE)[n % 2]) for n in range(4)],
            **{"pairs": VALUE * 2},
        ),
        mixed(
            LEVEL,
            "a count only on the repeat",
            "the contract is broken, and one truth is left",
            [(chunk("late-count", 0, None), PUBLISHED), (chunk("late-count", 0, 1), DUPLICATE)],
            **_as("late-count"),
        ),
        mixed(
            LEVEL,
            "an incomplete waveform, repeated",
            "chunk 1 is missing",
            [(chunk("again-open", 0, 2), Reason.OPEN), (chunk("again-open", 0, 2), DUPLICATE)],
        ),
    ]


def _as(waveform_id: str) -> dict[str, bytes]:
    return {waveform_id: VALUE}


def _incomplete() -> list[Kind]:
    def lacks(name: str, wrong: str, *records: Record) -> Kind:
        return held(LEVEL, name, wrong, Reason.OPEN, *records)

    return [
        lacks("no first chunk", "chunk 0 is missing", chunk("no-first", 1, 2)),
        lacks("no last chunk", "chunk 1 is missing", chunk("no-last", 0, 2)),
        lacks("no chunk in the middle", "chunk 1 is missing", chunk("no-middle", 0, 3), chunk("no-middle", 2, 3)),
        lacks("no count", "none says how many there are", chunk("no-count", 0, None), chunk("no-count", 1, None)),
        lacks("only the last chunk that can be", "all others are missing", chunk("far", 1_048_575, None)),
        lacks(
            "every other chunk",
            "half of them are missing",
            *(chunk("every-other", n, MAX_CHUNKS) for n in range(0, MAX_CHUNKS, 2)),
        ),
        held(
            LEVEL,
            "no last chunk, three hours ago",
            "its allowed lateness is over",
            Reason.INCOMPLETE,
            chunk("gone", 0, 2, age_s=3 * HOUR),
        ),
        held(
            LEVEL,
            "a live recording without end, a day ago",
            "its allowed lateness is over",
            Reason.INCOMPLETE,
            *(chunk("endless-live", n, None, age_s=24 * HOUR) for n in range(3)),
        ),
    ]


def _too_large() -> list[Kind]:
    def large(name: str, wrong: str, *records: Record) -> Kind:
        return held(LEVEL, name, wrong, Reason.TOO_LARGE, *records)

    half = bytes(33 * 1024)
    return [
        large("a promise of a million chunks", "one is there", chunk("million", 0, 1 << 20)),
        large("a promise of one chunk too many", "max_chunks", chunk("promise", 0, MAX_CHUNKS + 1)),
        large("chunks without end", "max_chunks", *(chunk("many", n, None) for n in range(MAX_CHUNKS + 1))),
        large("two halves above the limit", "max_waveform_bytes", *(chunk("sum", n, 2, value=half) for n in range(2))),
        large(
            "above the limit and not whole", "max_waveform_bytes", *(chunk("su", n, 3, value=half) for n in range(2))
        ),
    ]


def _broken_copies() -> list[Kind]:
    whole = chunk("beside", 0, 1)
    bad = Record(whole.key, whole.headers, OTHER)
    return [
        mixed(
            LEVEL,
            "a corrupt copy before the whole one",
            "one copy is damaged",
            [(bad, Reason.CORRUPT), (whole, PUBLISHED)],
            **_as("beside"),
        ),
        mixed(
            LEVEL,
            "a corrupt copy after the whole one",
            "one copy is damaged",
            [(chunk("after", 0, 1), PUBLISHED), (_damaged(chunk("after", 0, 1)), Reason.CORRUPT)],
            **_as("after"),
        ),
        mixed(
            LEVEL,
            "a corrupt chunk in the middle",
            "its waveform waits for a whole copy",
            [
                (chunk("middle", 0, 3), Reason.OPEN),
                (_damaged(chunk("middle", 1, 3)), Reason.CORRUPT),
                (chunk("middle", 2, 3), Reason.OPEN),
            ],
        ),
        mixed(
            LEVEL,
            "a tombstone for a published waveform",
            "nothing can be deleted this way",
            [(chunk("kept", 0, 1), PUBLISHED), (Record(b"kept", (), None), Reason.NULL_VALUE)],
            **_as("kept"),
        ),
        mixed(
            LEVEL,
            "a forged chunk of version 2",
            "unknown versions take no part",
            [(chunk("forged", 0, 1), PUBLISHED), (sealed("forged", ws_version=b"1"), Reason.UNKNOWN_VERSION)],
            **_as("forged"),
        ),
    ]


def _damaged(record: Record) -> Record:
    assert record.value
    return Record(record.key, record.headers, bytes([record.value[0] ^ 0xFF]) + record.value[1:], record.age_s)


def _orders() -> list[Kind]:
    values = [bytes([n]) * 4 for n in range(8)]
    backwards = [chunk("backwards order", n, 8, value=values[n]) for n in reversed(range(8))]
    live = [chunk("live", n, 8 if n == 7 else None, value=values[n]) for n in (7, 0, 6, 1, 5, 2, 4, 3)]
    uneven = [chunk("uneven", 0, 3, value=VALUE), chunk("uneven", 1, 3, value=b"\1\0"), chunk("uneven", 2, 3)]
    whole = b"".join(values)
    return [
        fine(LEVEL, "chunks backwards", "nothing: any order", *backwards, samples={"backwards order": whole}),
        fine(LEVEL, "a live recording, scrambled", "nothing: any order", *live, samples={"live": whole}),
        fine(LEVEL, "chunks of any size", "nothing", *uneven, samples={"uneven": VALUE + b"\1\0" + VALUE}),
        fine(
            LEVEL,
            "as many chunks as are allowed",
            "nothing",
            *(chunk("all-of-them", n, MAX_CHUNKS) for n in range(MAX_CHUNKS)),
            samples={"all-of-them": VALUE * MAX_CHUNKS},
        ),
    ]


def _times() -> list[Kind]:
    """Record times are the producer's, too: they decide where a waveform is plausible, never whether it is whole."""
    years = 365 * 24 * HOUR
    return [
        fine(
            LEVEL,
            "a record time 20 years ahead",
            "nothing: it is kept as it came",
            chunk("ahead", 0, 1, age_s=-20 * years),
            samples=_as("ahead"),
        ),
        fine(
            LEVEL,
            "a record time 20 years ago",
            "nothing: it is kept as it came",
            chunk("ago", 0, 1, age_s=20 * years),
            samples=_as("ago"),
        ),
        held(
            LEVEL,
            "a record time in 1970",
            "too far from its start time",
            Reason.IMPLAUSIBLE_TIME,
            chunk("epoch", 0, 1, age_s=1000 * years),
        ),
        held(
            LEVEL,
            "a record time in the year 12,000",
            "beyond every calendar",
            Reason.IMPLAUSIBLE_TIME,
            chunk("calendar", 0, 1, age_s=-10_000 * years),
        ),
        held(
            LEVEL,
            "an incomplete waveform from 20 years ahead",
            "chunk 1 is missing, and nobody else may expire for it",
            Reason.OPEN,
            chunk("open-ahead", 0, 2, age_s=-20 * years),
        ),
    ]
