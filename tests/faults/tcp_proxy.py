"""A TCP proxy on the loopback address whose line can be cut, cut one way, slowed down, narrowed or made to flap.

One thread with an event loop of its own; the line's state is changed from outside at any time. Never looks at bytes.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Self

from wavestitch.local.loopback_port import LOOPBACK

_BLOCK = 1 << 16
_TICK = 0.02


@dataclass(frozen=True, slots=True)
class Line:
    """What the line does. `up`/`down`: whether bytes to the server and from it pass (where not, they wait: the peer
    sees silence, not an end). `refuse`: new connections are closed at once. `delay`: seconds a block is under way.
    `rate`: bytes a second and direction, 0 for no limit."""

    up: bool = True
    down: bool = True
    refuse: bool = False
    delay: float = 0.0
    rate: int = 0


CLEAR = Line()
SILENT = Line(up=False, down=False)


class TcpProxy:
    """Listens on `port` and passes to `target` (both on the loopback address). Use as a context manager."""

    def __init__(self, port: int, target: int) -> None:
        self.port = port
        self.target = target
        self.line = CLEAR
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
                pumps = [
                    asyncio.ensure_future(self._pump(reader, other, up=True)),
                    asyncio.ensure_future(self._pump(back, writer, up=False)),
                ]
                try:
                    await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    for pump in pumps:
                        pump.cancel()
                    await asyncio.gather(*pumps, return_exceptions=True)
        self._tasks.discard(task)
        for each in (writer, other):
            if each is not None:
                each.transport.abort()

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, up: bool) -> None:
        while block := await reader.read(_BLOCK):
            while not (self.line.up if up else self.line.down):
                await asyncio.sleep(_TICK)
            if self.line.delay:
                await asyncio.sleep(self.line.delay)
            if self.line.rate:
                await asyncio.sleep(len(block) / self.line.rate)
            writer.write(block)
            await writer.drain()
