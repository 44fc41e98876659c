"""From which partitions a waveform's chunks may come, where its stream says so.

Whoever publishes an id first must not lock its owner out: a chunk from elsewhere is held by itself
(`wrong_partition`), as if it were no chunk, before it can touch the waveform that it names. Never says who sent it:
Kafka does not tell. Pure; the same answer whenever, and by whomever, it is asked.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import lru_cache
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, model_validator

from wavestitch.contracts.chunk_header import MAX_ID_BYTES, Chunk, Rejection
from wavestitch.contracts.murmur2 import key_partition
from wavestitch.contracts.reasons import Reason

_MOST_PARTITIONS = 1 << 20
_MOST_PREFIXES = 1000
_SHOWN = 8
_KNOWN_IDS = 4096

Partition = Annotated[int, Field(ge=0, lt=_MOST_PARTITIONS)]
Prefix = Annotated[str, Field(max_length=MAX_ID_BYTES)]


class IdPartitions(BaseModel):
    """One of the two. `hashed_over`: an id belongs to the partition that Kafka's default partitioner (murmur2) gives
    it, of so many; of several numbers to each one's, for a topic that was given more partitions. `prefixes`: an id
    belongs to the partitions of the longest prefix that it begins with, and without one to none."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    hashed_over: tuple[Annotated[int, Field(ge=1, le=_MOST_PARTITIONS)], ...] = Field(default=(), max_length=16)
    prefixes: dict[Prefix, tuple[Partition, ...]] = Field(default_factory=dict, max_length=_MOST_PREFIXES)

    @model_validator(mode="after")
    def _one_of_the_two(self) -> IdPartitions:
        if bool(self.hashed_over) == bool(self.prefixes):
            raise ValueError(
                "write either hashed_over (numbers of partitions) or prefixes (of ids, each with its list)"
            )
        bare = next((prefix for prefix, where in self.prefixes.items() if not where), None)
        if bare is not None:
            raise ValueError(f"the prefix {ascii(bare)[:80]} has no partitions; name at least one")
        return self

    def problem(self, partitions: Collection[int]) -> str | None:
        """What does not fit a topic of these partitions: good chunks would be held for it."""
        if self.hashed_over and len(partitions) not in self.hashed_over:
            return (
                f"its ids are hashed over {_listed(self.hashed_over)} partitions and the topic has {len(partitions)}; "
                f"add {len(partitions)} to id_partitions.hashed_over, and keep the numbers that it had before"
            )
        unknown = {p for where in self.prefixes.values() for p in where} - set(partitions)
        if unknown:
            return (
                f"its ids are bound to partition {min(unknown)} and the topic has {len(partitions)}, counted from 0; "
                "correct id_partitions.prefixes"
            )
        return None


class IdBinding:
    """What a stream says, ready to be asked of every chunk. None declared: an id may come from everywhere."""

    __slots__ = ("_declared", "_of")

    def __init__(self, declared: IdPartitions | None) -> None:
        self._declared = declared
        # All chunks of a waveform ask the same.
        self._of = lru_cache(maxsize=_KNOWN_IDS)(self._find)

    @property
    def binds(self) -> bool:
        return self._declared is not None

    def of(self, waveform_id: str) -> frozenset[int] | None:
        """The partitions that the id is bound to; None: all."""
        return None if self._declared is None else self._of(waveform_id)

    def judge(self, found: Chunk | Rejection, partition: int) -> Chunk | Rejection:
        """What was read in this partition, or why it is held."""
        if self._declared is None or not isinstance(found, Chunk):
            return found
        where = self._of(found.waveform_id)
        if partition in where:
            return found
        bound = f"partition {_listed(sorted(where))}" if where else "no partition"
        evidence = f"it came in partition {partition}; the stream binds its id to {bound}"
        return Rejection(Reason.WRONG_PARTITION, evidence, found.waveform_id, found.seq)

    def _find(self, waveform_id: str) -> frozenset[int]:
        declared = self._declared
        if declared is None:
            raise AssertionError("asked where nothing is declared")
        if declared.hashed_over:
            return frozenset(key_partition(waveform_id.encode(), n) for n in declared.hashed_over)
        fitting = [prefix for prefix in declared.prefixes if waveform_id.startswith(prefix)]
        return frozenset(declared.prefixes[max(fitting, key=len)]) if fitting else frozenset()


ANYWHERE = IdBinding(None)


def _listed(numbers: Collection[int]) -> str:
    shown = [str(n) for n in list(numbers)[:_SHOWN]]
    return " or ".join(shown) + (" …" if len(numbers) > _SHOWN else "")
