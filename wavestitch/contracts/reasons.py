"""The closed lists: why something is not published, and what became of a chunk."""

from __future__ import annotations

from enum import StrEnum


class Reason(StrEnum):
    """Why a record is not a chunk, or a waveform is not published. A reason is never free text."""

    # of one record, found by `parse_chunk`
    NULL_VALUE = "null_value"
    NOT_A_CHUNK = "not_a_chunk"
    UNKNOWN_VERSION = "unknown_version"
    BAD_ID = "bad_id"
    BAD_HEADER = "bad_header"
    BAD_SEQUENCE = "bad_sequence"
    BAD_METADATA = "bad_metadata"
    BAD_LENGTH = "bad_length"
    CORRUPT = "corrupt"
    UNPROVEN = "unproven"
    FORGED = "forged"
    WRONG_PARTITION = "wrong_partition"
    """Of a chunk whose id the stream binds to others."""
    UNREADABLE = "unreadable"
    """Found by the reader: a record that inflates beyond all measure, or cannot be inflated."""
    # of a waveform, found by `assemble` and `decide`
    OPEN = "open"
    INCOMPLETE = "incomplete"
    CONFLICT = "conflict"
    TOO_LARGE = "too_large"
    IMPLAUSIBLE_TIME = "implausible_time"
    WRONG_SAMPLE_COUNT = "wrong_sample_count"
    DIGEST_MISMATCH = "digest_mismatch"
    MISFIT = "misfit"
    """Whole and sealed, but not exactly of the type that the stream declares its samples to be."""
    FAILED_EXPECTATION = "failed_expectation"
    PARKED = "parked"
    # of a waveform, decided by an operator
    DISCARDED = "discarded"


OF_RECORDS = frozenset(
    {
        Reason.NULL_VALUE,
        Reason.NOT_A_CHUNK,
        Reason.UNKNOWN_VERSION,
        Reason.BAD_ID,
        Reason.BAD_HEADER,
        Reason.BAD_SEQUENCE,
        Reason.BAD_METADATA,
        Reason.BAD_LENGTH,
        Reason.CORRUPT,
        Reason.UNPROVEN,
        Reason.FORGED,
        Reason.WRONG_PARTITION,
        Reason.UNREADABLE,
    }
)
"""Of records that are no chunks: no waveform ever needs what is held for one of these."""
MAY_BE_CHUNKS = OF_RECORDS - {Reason.NULL_VALUE, Reason.NOT_A_CHUNK, Reason.CORRUPT}
"""Why a record was refused that another definition, key or version may take for a chunk. Of the others none does: they
carry nothing, do not say that they are chunks, or are not what was sealed."""


class Fate(StrEnum):
    """What became of a chunk; each chunk of a batch has exactly one."""

    PUBLISHED = "published"
    DUPLICATE = "duplicate"
    REPLAY = "replay"
    QUARANTINED = "quarantined"
    CARRIED_OUT = "carried_out"
    REPORTED = "reported"
    OUT_OF_SCOPE = "out_of_scope"
