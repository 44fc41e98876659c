"""Peak private memory of a reader, by the size of the range it reads: fresh processes, two side by side."""

from __future__ import annotations

import shutil

from benchmarks.children import Json, race, start
from benchmarks.figures import GIB, summarise
from benchmarks.options import Options
from benchmarks.reading import landing_jobs
from benchmarks.test_bed import Say, TestBed, Topic

_TOPIC_AND_LANDING = 2.2


def big_topic(bed: TestBed, options: Options, say: Say) -> Topic:
    """The topic of the largest size; smaller batches read its first part."""
    largest = max(options.sizes)
    key_size = int(largest * 1024)
    bed.need(int(largest * GIB * _TOPIC_AND_LANDING), f"a range of {largest:g} GiB")
    return bed.topic(mib=key_size, layout="sticky", say=say)


def measure(bed: TestBed, options: Options, say: Say) -> Json:
    topic = big_topic(bed, options, say)
    found: Json = {
        "reader_private_mib": {},
        "table": [["range GiB, two readers", "private MiB a reader", "MB/s", "CPU s"]],
    }
    for size in sorted(options.sizes):
        part = first_part(topic, size)
        folder = bed.folder / f"memory-{size:g}"
        children = [start("benchmarks.contenders.landing", folder=bed.folder) for _ in range(2)]
        try:
            run = race(children, landing_jobs(bed, part, 2, folder), size=part.bytes)
        finally:
            for child in children:
                child.close()
            shutil.rmtree(folder, ignore_errors=True)
        row = summarise([run])
        peak = row["peak_private_mib"]["main"]
        say(f"{size:g} GiB: {peak:.0f} MiB private, {row['mb_s']:.0f} MB/s")
        found["reader_private_mib"][f"{size:g}"] = peak
        found["table"].append([f"{size:g}", round(peak), round(row["mb_s"]), row["cpu_s"]])
    return found


def first_part(topic: Topic, gib: float) -> Topic:
    """The first `gib` GiB of a sticky topic, as a topic: equal parts of all partitions, whole waveforms."""
    share = gib * GIB / topic.bytes
    waveforms = round(topic.waveforms * share / len(topic.ends)) * len(topic.ends)
    per_waveform = topic.records // topic.waveforms
    step = waveforms // len(topic.ends) * per_waveform
    ends = [a + step for a in topic.starts]
    if any(end > last for end, last in zip(ends, topic.ends, strict=True)):
        raise RuntimeError(f"{topic.name} does not have {gib:g} GiB in equal parts")
    size = topic.bytes // topic.waveforms * waveforms
    return Topic(topic.name, topic.starts, ends, topic.prelude, size, waveforms, topic.digests)
