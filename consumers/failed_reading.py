"""Why a reading failed, found by asking the broker: recreated, overtaken by retention, truncated, or just away.

Asked in this order because each explains what comes after it. The answer is an error that names offsets (I8).
"""

from __future__ import annotations

from confluent_kafka import KafkaError

from consumers.range_scan import ScanFailed, Source
from wavestitch.contracts.errors import DataLost, Refused, Terminal, Transient, WavestitchError
from wavestitch.contracts.holes import lost_to_retention
from wavestitch.contracts.offset_range import OffsetRange
from wavestitch.contracts.ports import Log
from wavestitch.contracts.stop_rule import Why
from wavestitch.contracts.way_past import past_cut_end, past_exchanged_log, past_new_topic
from wavestitch.kafka.kafka_errors import translate


def check_topic(log: Log, source: Source) -> None:
    """Raises `Refused` where the topic is not the planned one, or loses records by design."""
    view = log.topic(source.topic)
    if view.topic_id != source.topic_id:
        raise Refused(
            f"topic {source.topic} was deleted and made again: planned was id {source.topic_id}, now it is "
            f"{view.topic_id}. Nothing of it was published. {past_new_topic(source.kind, source.stream)}",
            topic=source.topic,
            planned=source.topic_id,
            seen=view.topic_id,
        )
    if view.compacted:
        raise Refused(
            f"topic {source.topic} is compacted: Kafka keeps only the last chunk of every waveform; set its "
            "cleanup.policy to delete, or name another topic in the stream's file",
            topic=source.topic,
        )


def explain_failure(log: Log, source: Source, slice_: OffsetRange, failed: ScanFailed) -> WavestitchError:
    """The error that this failed scan is. May itself raise what `Log` raises (the topic is gone, nobody answers)."""
    check_topic(log, source)
    ends = log.ends(source.topic, [slice_.partition])[slice_.partition]
    where = f"reading topic {source.topic} {slice_}"
    if ends.log_start > failed.position:
        return lost_to_retention(
            stream=source.stream,
            topic=source.topic,
            slice_=slice_,
            position=failed.position,
            log_start=ends.log_start,
            kind=source.kind,
            begins=source.begins.get(slice_.partition),
        )
    if ends.high_watermark < slice_.end:
        return DataLost(
            f"{where}: the log now ends at {ends.high_watermark}, before the planned end; offsets "
            f"[{ends.high_watermark}, {slice_.end}) were cut off (an unclean leader election?). Look at the brokers. "
            f"{past_cut_end(source.kind, source.stream, slice_, ends.high_watermark)}",
            topic=source.topic,
            partition=slice_.partition,
            offsets=[[ends.high_watermark, slice_.end]],
        )
    if failed.error is not None and _is_truncation(failed.error) and failed.position > slice_.start:
        return Transient(
            f"{where}: the log was cut off before offset {failed.position} after it had been read up to there, while "
            "it was read, and written anew (an unclean leader election?). Nothing was kept; try again, or plan again, "
            "which looks whether it is the log that was read",
            topic=source.topic,
            partition=slice_.partition,
            position=failed.position,
        )
    if failed.error is not None and _is_truncation(failed.error):
        return DataLost(
            f"{where}: the log was cut off before {slice_.start} after it had been read up to there, and written anew "
            f"(an unclean leader election? the client says: {failed.error.str()}). "
            f"{past_exchanged_log(source.kind, source.stream, slice_)}",
            topic=source.topic,
            partition=slice_.partition,
            offsets=[[slice_.start, slice_.end]],
        )
    if failed.why in (Why.NOT_RISING, Why.BEFORE_START):
        return Terminal(f"{where}: the client delivered offsets out of order ({failed.why.value} at {failed.position})")
    if failed.error is not None and failed.error.code() in _OUT_OF_RANGE:
        return Transient(
            f"{where}: offset {failed.position} was not in the log when it was asked for, and is now (stable end "
            f"{ends.stable_end}): the log was cut off while it was read, and written anew (an unclean leader "
            "election?). Nothing was kept; try again, or plan again, which looks whether it is the log that was read",
            topic=source.topic,
            partition=slice_.partition,
            position=failed.position,
        )
    if failed.why is Why.LOG_ERROR and failed.error is not None:
        return translate(failed.error, f"{where} at offset {failed.position}", found=True)
    if failed.throttled:
        return Transient(
            f"{where}: nothing came for {source.idle_seconds:.0f} s at offset {failed.position}, and the brokers said "
            f"that they keep an answer back for up to {failed.throttled:.1f} s: this client is above its quota "
            "(consumer_byte_rate or request_percentage). Raise the quota, read with fewer workers (reading.workers), "
            "give reading.idle_deadline more, or try again",
            topic=source.topic,
            partition=slice_.partition,
            position=failed.position,
            throttled_seconds=failed.throttled,
        )
    heard = f"; the client last said: {failed.error.str()}" if failed.error is not None else ""
    return Transient(
        f"{where}: nothing came for {source.idle_seconds:.0f} s at offset {failed.position} (stable end "
        f"{ends.stable_end}){heard}. Is the partition's leader up? Try again",
        topic=source.topic,
        partition=slice_.partition,
        position=failed.position,
        why=failed.why.value,
    )


_OUT_OF_RANGE = frozenset({KafkaError.OFFSET_OUT_OF_RANGE, KafkaError._AUTO_OFFSET_RESET})


def _is_truncation(error: KafkaError) -> bool:
    """Whether the client found the log cut off. With the reset policy `error` it says so as a failed reset (2.16)."""
    return error.code() == KafkaError._LOG_TRUNCATION or (
        error.code() == KafkaError._AUTO_OFFSET_RESET and "log truncation" in error.str()
    )
