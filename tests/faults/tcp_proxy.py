"""A TCP proxy on the loopback address whose line can be cut, cut one way, slowed down, narrowed or made to flap.

One thread with an event loop of its own; the line's state is changed from outside at any time. It looks at bytes where
somebody wants certain requests kept (`keep`): they then arrive when that one says so, also when their sender is gone.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Self

from wavestitch.local.loopback_port import LOOPBACK

_BLOCK = 1 << 16
_TICK = 0.02
_ANSWER_SECONDS = 60.0

Wanted = Callable[[bytes, bytes], bool]
"""Whether a block that a client sends is to be kept; told also what its connection has sent before it."""


@dataclass(frozen=True, slots=True)
class Line:
    """What the line does. `up`/`down`: whether bytes to the server and from it pass (where not, they wait: the peer
    sees silence, not an end). `refuse`: new connections are closed at once. `delay`: seconds a block is under way.
    `rate`: bytes a second and direction, 0 for no limit. `singly`: so many last bytes of each block go one by one.
    `cut`: of an answer this part passes, and then the connection is closed; 0 for all of it. `lost`: where the server
    has closed a connection its client is not told, and what that one sends goes nowhere."""

    up: bool = True
    down: bool = True
    refuse: bool = False
    delay: float = 0.0
    rate: int = 0
    singly: int = 0
    cut: float = 0.0
    lost: bool = False


CLEAR = Line()
SILENT = Line(up=False, down=False)


@dataclass(eq=False)
class Connection:
    """Of one client. `sent`: the end of what it sent. `frozen`: nothing passes. `kept`: what is kept, if anything."""

    server: asyncio.StreamWriter
    sent: bytes = b""
    frozen: bool = False
    kept: Kept | None = None


class Kept:
    """Requests that are on their way still: all that a connection has sent from a wanted one on."""

    def __init__(self, first: bytes, loop: asyncio.AbstractEventLoop, target: int) -> None:
        self.blocks = [first]
        self.fate: asyncio.Future[bool] = loop.create_future()
        self.answered = threading.Event()
        self.sender_gone = False
        self._loop = loop
        self._target = target

    def land(self, times: int = 1) -> None:
        """Let them arrive; returns once the server has answered. More than once: again on connections of their own."""
        self._decide(lands=True)
        assert self.answered.wait(_ANSWER_SECONDS), "the server did not answer what came late"
        for _ in range(times - 1):
            with socket.create_connection((LOOPBACK, self._target), _ANSWER_SECONDS) as again:
                again.sendall(b"".join(self.blocks))
                again.recv(_BLOCK)

    def lose(self) -> None:
        """They never arrive: the server sees their connection end."""
        self._decide(lands=False)
        assert self.answered.wait(_ANSWER_SECONDS), "the connection of what was lost was not closed"

    def _decide(self, *, lands: bool) -> None:
        def decide() -> None:
            if not self.fate.done():
                self.fate.set_result(lands)

        self._loop.call_soon_threadsafe(decide)


class TcpProxy:
    """Listens on `port` and passes to `target` (both on the loopback address). Use as a context manager."""

    def __init__(self, port: int, target: int) -> None:
        self.port = port
        self.target = target
        self.line = CLEAR
        self.kept: list[Kept] = []
        self._wanted: Wanted | None = None
        self._most = 0
        self._connections: set[Connection] = set()
        self._loop = asyncio.new_event_loop()
        self._tasks: set[asyncio.Task[None]] = set()
        self._thread = threading.Thread(target=self._serve, name=f"proxy {port}", daemon=True)
        self._listening = threading.Event()
        self._stop: asyncio.Event | None = None
        self._failed: BaseException | None = None

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._listening.wait(10), f"the proxy on port {self.port} does not listen"
        if self._failed is not None:
            raise self._failed
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._stop is not None:
            self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(10)

    def set(self, line: Line) -> None:
        self.line = line

    def cut(self) -> None:
        """Close every connection, and refuse new ones until the line is set otherwise."""
        self.line = replace(self.line, refuse=True)
        self.drop()

    def drop(self) -> None:
        """Close every connection; new ones are as the line says. Returns once they are closed."""
        asyncio.run_coroutine_threadsafe(self._drop(), self._loop).result(10)

    def keep(self, wanted: Wanted, *, most: int = 1) -> None:
        """Keep the next requests that are wanted, and what their connections send after them."""
        self._most = len(self.kept) + most
        self._wanted = wanted

    def pass_on(self) -> None:
        """Keep nothing more; what is kept stays so."""
        self._wanted = None

    def freeze(self) -> None:
        """Nothing passes any more on the connections that there are; new ones are as the line says."""
        for each in tuple(self._connections):
            each.frozen = True

    def thaw(self) -> None:
        """What waits on them arrives now."""
        for each in tuple(self._connections):
            each.frozen = False

    def forget(self) -> None:
        """The server's ends of all connections are closed, and their clients are not told."""
        self.line = replace(self.line, lost=True)
        asyncio.run_coroutine_threadsafe(self._forget(), self._loop).result(10)

    async def _forget(self) -> None:
        for each in tuple(self._connections):
            each.server.transport.abort()

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(self._listen())
        except BaseException as error:  # told to the thread that waits for it
            self._failed = error
        finally:
            self._listening.set()
            self._loop.close()

    async def _listen(self) -> None:
        self._stop = asyncio.Event()
        server = await asyncio.start_server(self._accept, LOOPBACK, self.port)
        self._listening.set()
        await self._stop.wait()
        server.close()
        await self._drop()

    async def _drop(self) -> None:
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        other: asyncio.StreamWriter | None = None
        # A connection that ends, however it ends, is the business of the two ends of it.
        with contextlib.suppress(OSError, asyncio.CancelledError):
            if not self.line.refuse:
                back, other = await asyncio.open_connection(LOOPBACK, self.target)
                for each in (writer, other):
                    each.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                await self._connect(reader, writer, back, Connection(other))
        self._tasks.discard(task)
        for each in (writer, other):
            if each is not None:
                each.transport.abort()

    async def _connect(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        back: asyncio.StreamReader,
        connection: Connection,
    ) -> None:
        """Until one of the two ends it."""
        self._connections.add(connection)
        pumps = [
            asyncio.ensure_future(self._send(reader, connection)),
            asyncio.ensure_future(self._answer(back, writer, connection)),
        ]
        try:
            await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._connections.discard(connection)
            for pump in pumps:
                pump.cancel()
            await asyncio.gather(*pumps, return_exceptions=True)
            if connection.kept is not None:
                connection.server.transport.abort()
                connection.kept.answered.set()
        if self.line.lost:
            while await reader.read(_BLOCK):
                pass

    async def _send(self, reader: asyncio.StreamReader, connection: Connection) -> None:
        while block := await reader.read(_BLOCK):
            if self._wanted is not None and len(self.kept) < self._most and self._wanted(connection.sent, block):
                await self._keep(block, reader, connection)
            else:
                await self._pass(block, connection.server, connection, up=True)
            connection.sent = (connection.sent + block)[-_BLOCK:]

    async def _answer(self, back: asyncio.StreamReader, writer: asyncio.StreamWriter, connection: Connection) -> None:
        while block := await back.read(_BLOCK):
            kept = connection.kept
            if kept is not None and kept.fate.done():
                kept.answered.set()
                if kept.sender_gone:
                    return
            if self.line.cut:
                writer.write(block[: max(1, int(len(block) * self.line.cut))])
                await writer.drain()
                return
            await self._pass(block, writer, connection, up=False)

    async def _keep(self, block: bytes, reader: asyncio.StreamReader, connection: Connection) -> None:
        """Until it is said what becomes of it. Its sender may go meanwhile, and does not take it along."""
        kept = connection.kept = Kept(block, self._loop, self.target)
        self.kept.append(kept)
        gathered = asyncio.ensure_future(self._gather(reader, kept))
        try:
            lands = await kept.fate
        finally:
            gathered.cancel()
            await asyncio.gather(gathered, return_exceptions=True)
        if not lands:
            raise ConnectionAbortedError
        for each in kept.blocks:
            connection.server.write(each)
        await connection.server.drain()
        if kept.sender_gone:
            await asyncio.Event().wait()  # for the answer, which ends the connection

    async def _gather(self, reader: asyncio.StreamReader, kept: Kept) -> None:
        with contextlib.suppress(OSError):
            while block := await reader.read(_BLOCK):
                kept.blocks.append(block)
        kept.sender_gone = True

    async def _pass(self, block: bytes, writer: asyncio.StreamWriter, connection: Connection, *, up: bool) -> None:
        while connection.frozen or not (self.line.up if up else self.line.down):
            await asyncio.sleep(_TICK)
        if self.line.delay:
            await asyncio.sleep(self.line.delay)
        if self.line.rate:
            await asyncio.sleep(len(block) / self.line.rate)
        whole = len(block) - min(self.line.singly, len(block))
        for piece in (block[:whole], *(block[i : i + 1] for i in range(whole, len(block)))):
            writer.write(piece)
            await writer.drain()
            if whole < len(block):
                await asyncio.sleep(0)  # each in a packet of its own
