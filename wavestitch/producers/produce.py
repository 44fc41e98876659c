"""Files to records: reads recordings, cuts them as the stream allows, and sends them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from wavestitch.contracts.chunk_proof import ChunkProof
from wavestitch.contracts.errors import BadInput
from wavestitch.contracts.id_partitions import IdBinding
from wavestitch.contracts.stream import Stream
from wavestitch.kafka.client_settings import KafkaSettings
from wavestitch.producers.chunking import cut_recording
from wavestitch.producers.partitioning import Strategy
from wavestitch.producers.readers import format_of, read_recordings
from wavestitch.producers.send_report import SendReport
from wavestitch.producers.sender import send_chunks


def produce_files(
    stream: Stream,
    files: Sequence[Path],
    *,
    settings: KafkaSettings,
    proof: ChunkProof,
    chunk_bytes: int,
    seconds: float,
    strategy: str,
    start_time_ns: int,
    say: Callable[[str], None],
) -> SendReport:
    """Send every recording in `files`, each `seconds` long, in chunks of `chunk_bytes`.

    `proof`: what each chunk carries. `start_time_ns`: for files that have no time of their own.
    """
    try:
        chosen = Strategy(strategy)
    except ValueError:
        raise BadInput(f"strategy {strategy!r} is not known; allowed are {', '.join(Strategy)}") from None
    recordings = []
    for path in files:
        found = read_recordings(
            path,
            seconds_per_recording=seconds,
            start_time_ns=None if format_of(path).says_when else start_time_ns,
        )
        say(f"{path}: {len(found)} recordings")
        recordings += found
    chunks = [
        chunk
        for recording in recordings
        for chunk in cut_recording(recording, chunk_bytes, keyed=chosen.keyed, limits=stream.limits, proof=proof)
    ]
    say(f"sending {len(chunks)} chunks to {stream.topic}")
    return send_chunks(
        chunks, topic=stream.topic, settings=settings, strategy=chosen, ids=IdBinding(stream.id_partitions)
    )
