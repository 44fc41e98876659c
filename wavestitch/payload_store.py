"""Landed payload in an object store: put, fetched, listed, removed. The one place that speaks to that store.

Objects are below `PLACE/STREAM/PLAN/`. None is written in parts, and nothing is found by listing but what may go: who
reads an object has its name from a landing file, and compares its bytes with that (I3). A request that the store
refuses for now is made again by Amazon's own library, as often as the settings say; then the step ends with a sentence.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from wavestitch.contracts.errors import Altered, BadInput, Transient
from wavestitch.contracts.payload_apart import PayloadPlace, is_payload_name, name_payload
from wavestitch.contracts.plan_id import is_plan_id
from wavestitch.contracts.quantities import EpochMs, epoch_ms

_AWS = re.compile(r"AWS Error ([A-Z_]+) during ([A-Za-z]+)")
_NOT_LET_IN = (
    *("ACCESS_DENIED", "INVALID_ACCESS_KEY_ID", "INVALID_CLIENT_TOKEN_ID", "SIGNATURE_DOES_NOT_MATCH"),
    *("MISSING_AUTHENTICATION_TOKEN", "UNRECOGNIZED_CLIENT", "NO_SUCH_BUCKET"),
)
_AT_ONCE = 4
_WAITING = 6
"""So many objects of a reader are on their way at most: they are in memory."""


@dataclass(frozen=True, slots=True)
class StoredBatch:
    """What the store has of a batch. `newest_ms`: when the last of it was written."""

    plan_id: str
    objects: int
    bytes: int
    newest_ms: EpochMs


def open_payload_store(place: PayloadPlace) -> PayloadStore:
    """The store, with the login that its properties refer to. Raises `BadInput` where that is not to be had."""
    from wavestitch.secret_reference import resolve_secrets  # noqa: PLC0415 - loads pydantic, and a Spark worker this

    return PayloadStore(replace(place, properties=resolve_secrets(place.properties)))


class PayloadStore:
    """`place`: with the login itself, see `open_payload_store`. Nobody is asked before something is put or fetched."""

    def __init__(self, place: PayloadPlace) -> None:
        self.place = place

    def of(self, folder: Path) -> BatchPayload:
        """The payload of the batch that has this folder, `LANDING/STREAM/PLAN`."""
        return BatchPayload(self, f"{folder.parent.name}/{folder.name}")

    def batches(self, stream: str) -> list[StoredBatch]:
        """What there is of a stream's batches, in order of their plans' ids, as far as the store lists it. What has
        another kind of name is not ours."""
        from pyarrow.fs import FileSelector, FileType  # noqa: PLC0415 - a batch that lands all in a folder needs none

        root = self.key(stream)
        with self.asking(stream):
            listed = self.files.get_file_info(FileSelector(root, recursive=True, allow_not_found=True))
        found: dict[str, list[Any]] = {}
        for each in listed:
            plan_id, _, name = each.path.removeprefix(f"{root}/").partition("/")
            if each.type == FileType.File and is_plan_id(plan_id) and is_payload_name(name):
                found.setdefault(plan_id, []).append(each)
        return [
            StoredBatch(i, len(some), sum(f.size for f in some), max(epoch_ms(f.mtime_ns) for f in some))
            for i, some in sorted(found.items())
        ]

    def key(self, name: str) -> str:
        return f"{self.place.place.removeprefix('s3://')}/{name}"

    @cached_property
    def files(self) -> Any:
        from pyarrow.fs import AwsStandardS3RetryStrategy, S3FileSystem  # noqa: PLC0415

        said = self.place.properties
        return S3FileSystem(
            access_key=said.get("s3.access-key-id"),
            secret_key=said.get("s3.secret-access-key"),
            session_token=said.get("s3.session-token"),
            region=said["s3.region"],
            endpoint_override=said.get("s3.endpoint"),
            force_virtual_addressing=said.get("s3.force-virtual-addressing") == "true",
            connect_timeout=self.place.connect_timeout,
            request_timeout=self.place.answer_timeout,
            retry_strategy=AwsStandardS3RetryStrategy(max_attempts=self.place.attempts),
            # An object that is sent when it is closed goes by one request; else it would be begun as one of parts.
            allow_delayed_open=True,
            background_writes=False,
        )

    @contextmanager
    def asking(self, name: str) -> Iterator[None]:
        """Around requests about `PLACE/NAME`: what the store says becomes an error of the tree, without its words, in
        which there may be a login. That nothing is there stays `FileNotFoundError`."""
        try:
            yield
        except FileNotFoundError:
            raise
        except OSError as error:
            said = _AWS.search(str(error))
            where = f"{self.place.place}/{name}"
            if said is not None and said[1] in _NOT_LET_IN:
                raise BadInput(
                    f"the object store refuses {said[2]} at {where} ({said[1]}); give [payload.properties] a login "
                    "that may read, write, list and delete there, and make the bucket"
                ) from None
            what = f"{said[2]}: {said[1]}" if said is not None else "it cannot be reached"
            raise Transient(
                f"the object store at {where} did not do what was asked, {self.place.attempts} times ({what}); look "
                "after it and the way there, then run the step again"
            ) from None


@dataclass(frozen=True, slots=True)
class BatchPayload:
    """The objects of one batch. `path`: `STREAM/PLAN`."""

    store: PayloadStore
    path: str

    def put(self, name: str, piece: bytes | memoryview) -> None:
        """Write the object of this name (`name_payload`). One that is there already gets the same bytes once more."""
        with self.store.asking(self.path), self.store.files.open_output_stream(self._key(name)) as sink:
            sink.write(piece)

    def fetch(self, name: str, size: int) -> bytes:
        """All of an object. Raises `Altered` where it is gone, or its bytes are not those of its name."""
        try:
            with self.store.asking(self.path), self.store.files.open_input_stream(self._key(name)) as source:
                content = bytes(source.read(size + 1))
        except FileNotFoundError:
            raise self._altered(name, "is gone") from None
        if len(content) != size or name_payload(content) != name:
            raise self._altered(name, f"has other bytes than the {size} that were landed")
        return content

    def fetch_all(self, wanted: Sequence[tuple[str, int]]) -> Iterator[bytes]:
        """These objects, names and sizes, in order; some of them are on their way meanwhile."""
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            coming: deque[Future[bytes]] = deque()
            for name, size in wanted:
                coming.append(pool.submit(self.fetch, name, size))
                if len(coming) > _AT_ONCE:
                    yield coming.popleft().result()
            while coming:
                yield coming.popleft().result()

    def remove(self) -> None:
        """Let all of it go, as far as the store lists it; none of it is no error."""
        with self.store.asking(self.path):
            try:
                self.store.files.delete_dir(self.store.key(self.path))
            except FileNotFoundError:
                return

    def _key(self, name: str) -> str:
        return self.store.key(f"{self.path}/{name}")

    def _altered(self, name: str, what: str) -> Altered:
        where = f"{self.store.place.place}/{self.path}/{name}"
        return Altered(f"{where} {what}; run the batch's read step again", file=where)


class PayloadSender:
    """Sends a slice's payload while it is read. Use as a context manager."""

    def __init__(self, payload: BatchPayload) -> None:
        self._payload = payload
        self._pool = ThreadPoolExecutor(_AT_ONCE)
        self._coming: deque[Future[None]] = deque()

    def send(self, piece: memoryview) -> str:
        """Begin to send what does not change any more; returns its name. Raises what became of an earlier one."""
        name = name_payload(piece)
        self._coming.append(self._pool.submit(self._payload.put, name, piece))
        if len(self._coming) > _WAITING:
            self._coming.popleft().result()
        return name

    def finish(self) -> None:
        """Wait until all of it is there."""
        while self._coming:
            self._coming.popleft().result()

    def close(self) -> None:
        """Send no more."""
        self._pool.shutdown(cancel_futures=True)


def not_named(landing: str | Path) -> BadInput:
    """The error for a landing file whose payload is apart, where no store is named."""
    return BadInput(
        f"the payload of {landing} is in an object store, and the settings name none; set `place` of [payload] to the "
        "one that it was read to, or run the batch's read step again"
    )
