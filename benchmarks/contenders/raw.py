"""The bare consume loop: the client's own defaults, all partitions at once, key, headers and value touched, no more."""

from __future__ import annotations

from typing import Any

from confluent_kafka import Consumer, TopicPartition

from benchmarks.children import serve


def consume(job: dict[str, Any]) -> dict[str, Any]:
    """`ranges`: [partition, start, end]."""
    consumer = Consumer(
        {
            "bootstrap.servers": job["bootstrap"],
            "group.id": "raw",
            "enable.auto.commit": False,
            "auto.offset.reset": "error",
        }
    )
    ends = {partition: end for partition, _, end in job["ranges"]}
    consumer.assign([TopicPartition(job["topic"], p, start) for p, start, _ in job["ranges"]])
    left = sum(end - start for _, start, end in job["ranges"])
    size = records = 0
    while left:
        # More than is left would only be waited for.
        for message in consumer.consume(min(500, left), 0.1):
            if message.error() is not None:
                raise RuntimeError(str(message.error()))
            if message.offset() >= ends[message.partition()]:
                continue
            left -= 1
            records += 1
            size += len(message.value())
            message.key()
            message.headers()
    consumer.close()
    return {"bytes": size, "records": records}


if __name__ == "__main__":
    serve(consume)
