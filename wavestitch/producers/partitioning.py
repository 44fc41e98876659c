"""Which partition a chunk goes to, by one of four strategies. Pure: the same chunks always get the same partitions.

`waveform-sticky` is the one to use: a partition is chosen once per waveform, so that the waveform is one run of
offsets and the reader can stitch it without copying. The other three are how other people's producers behave; they
exist so that demos, tests and benchmarks can show that their streams come out the same, only slower.

Why `waveform-sticky` balances bytes instead of hashing ids: a batch has few and large waveforms, and hashing a dozen
ids onto four partitions leaves some idle and some doubled. Nothing downstream needs an id to have a home partition,
for waveforms are gathered by id over all partitions. So each waveform goes where the fewest bytes have gone so far.
Ties begin at the id's own hash: a thousand sensors that each send one waveform must not all choose partition 0.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from enum import StrEnum
from typing import assert_never

from wavestitch.contracts.errors import BadInput
from wavestitch.contracts.id_partitions import ANYWHERE, IdBinding
from wavestitch.contracts.murmur2 import key_partition
from wavestitch.producers.chunking import ChunkRecord


class Strategy(StrEnum):
    """How partitions are chosen."""

    WAVEFORM_STICKY = "waveform-sticky"
    KEY_HASH = "key-hash"
    ROUND_ROBIN = "round-robin"
    NULL_KEY_STICKY = "null-key-sticky"

    @property
    def keyed(self) -> bool:
        """Whether its records have a key; Kafka's own sticky partitioner works only on records without one."""
        return self is not Strategy.NULL_KEY_STICKY


def choose_partitions(
    strategy: Strategy, chunks: Iterable[ChunkRecord], *, partitions: int, ids: IdBinding = ANYWHERE
) -> Iterator[tuple[ChunkRecord, int | None]]:
    """Each chunk with its partition, in the given order; None leaves the choice to the Kafka client. `ids`: where an id
    may go; one that may go nowhere ends in `BadInput`, as does another strategy than the sticky one.

    Raises `BadInput` where there is no partition, and where a chunk's key does not fit the strategy: without one
    nothing can be hashed, and with one the client would hash instead of stick.
    """
    if partitions < 1:
        raise BadInput(f"{partitions} partitions; a topic has at least one")
    if ids.binds and strategy is not Strategy.WAVEFORM_STICKY:
        raise BadInput(
            f"strategy {strategy} does not look where the stream's id_partitions let an id go; use "
            f"{Strategy.WAVEFORM_STICKY}"
        )
    match strategy:
        case Strategy.WAVEFORM_STICKY:
            return _least_bytes(chunks, partitions, ids)
        case Strategy.KEY_HASH:
            return ((c, key_partition(_key(c), partitions)) for c in chunks)
        case Strategy.ROUND_ROBIN:
            return ((c, i % partitions) for i, c in enumerate(chunks))
        case Strategy.NULL_KEY_STICKY:
            return ((_keyless(c), None) for c in chunks)
        case _ as never:
            assert_never(never)


def _least_bytes(
    chunks: Iterable[ChunkRecord], partitions: int, ids: IdBinding
) -> Iterator[tuple[ChunkRecord, int | None]]:
    sent = [0] * partitions
    chosen: dict[str, int] = {}
    for chunk in chunks:
        partition = chosen.get(chunk.waveform_id)
        if partition is None:
            first = key_partition(chunk.waveform_id.encode(), partitions)
            allowed = _allowed(chunk.waveform_id, partitions, ids)
            partition = min(allowed, key=lambda p: (sent[p], (p - first) % partitions))
            chosen[chunk.waveform_id] = partition
        sent[partition] += len(chunk.value)
        yield chunk, partition


def _allowed(waveform_id: str, partitions: int, ids: IdBinding) -> Collection[int]:
    bound = ids.of(waveform_id)
    allowed = range(partitions) if bound is None else sorted(p for p in bound if p < partitions)
    if not allowed:
        raise BadInput(
            f"the stream's id_partitions let {waveform_id!a} go to no partition of the topic, which has "
            f"{partitions}; give it another id, or correct the stream"
        )
    return allowed


def _key(chunk: ChunkRecord) -> bytes:
    if chunk.key is None:
        raise BadInput(
            f"a chunk of {chunk.waveform_id} has no key to hash; cut it with keys, or choose another strategy"
        )
    return chunk.key


def _keyless(chunk: ChunkRecord) -> ChunkRecord:
    if chunk.key is not None:
        raise BadInput(
            f"a chunk of {chunk.waveform_id} has a key, so the client would hash it; cut it without keys "
            f"for {Strategy.NULL_KEY_STICKY}"
        )
    return chunk
