"""What happens on the way to the brokers: cut, one way, in an answer, lost, flapping, slow, in drips (rows 26, 27)."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable

from tests.faults.broker_faults_case import Case, play
from tests.faults.broker_faults_nodes import DURABLE, on, spread, strike
from tests.faults.fault_class import Bench, Counts, FaultClass, Need
from tests.faults.tcp_proxy import CLEAR, SILENT, Line, TcpProxy

Proxies = dict[int, TcpProxy]


def played(bench: Bench, seed: int, act: Callable[[Case, Proxies], None]) -> Counts:
    """A case whose clients know the brokers by their proxies alone."""
    with on(bench).proxied() as (address, proxies):
        return play(
            bench,
            seed,
            lambda case: act(case, proxies),
            assignment=spread(seed, 1 + seed % 3, 3),
            configs=DURABLE,
            client_bootstrap=address,
            idle_deadline=3,
        )


def _some(case: Case, proxies: Proxies) -> list[TcpProxy]:
    """One, a majority, or all of them."""
    return case.rng.sample(list(proxies.values()), case.rng.choice((1, 2, 3)))


def _struck_once(bench: Bench, seed: int, strikes: Callable[[TcpProxy], None]) -> Counts:
    """Something happens to lines at a seeded moment, and all are whole again after the run has ended."""

    def act(case: Case, proxies: Proxies) -> None:
        sent = len(case.produce())
        chosen = _some(case, proxies)

        def all_at_once() -> None:
            for proxy in chosen:
                strikes(proxy)

        ended = strike(case, sent, all_at_once)
        assert ended.word in ("done", "Transient"), ended
        for proxy in proxies.values():
            proxy.set(CLEAR)
            proxy.drop()
        if ended.error is not None:
            assert case.again(ended).word in ("done", "nothing")

    return played(bench, seed, act)


def _bad_from_the_start(bench: Bench, seed: int, line: Callable[[random.Random], Line]) -> Counts:
    """All lines are bad, each in its own way, before the run begins, and as long as it takes."""

    def act(case: Case, proxies: Proxies) -> None:
        case.produce()
        for proxy in proxies.values():
            proxy.set(line(case.rng))
        ended = case.run()
        assert ended.word in ("done", "Transient"), ended
        for proxy in proxies.values():
            proxy.set(CLEAR)

    return played(bench, seed, act)


def network_cut(bench: Bench, seed: int) -> Counts:
    """Connections are closed and refused, or nothing comes through any more."""

    def refuse(proxy: TcpProxy) -> None:
        proxy.set(Line(refuse=True))
        proxy.drop()

    return _struck_once(bench, seed, refuse if seed % 2 else lambda proxy: proxy.set(SILENT))


def network_cut_one_way(bench: Bench, seed: int) -> Counts:
    """Requests arrive and no answer comes back, or the other way round."""
    return _struck_once(bench, seed, lambda proxy: proxy.set(Line(up=bool(seed % 2), down=not seed % 2)))


def answers_cut(bench: Bench, seed: int) -> Counts:
    """Of each answer a part comes, and its connection ends."""
    return _struck_once(bench, seed, lambda proxy: proxy.set(Line(cut=(1 + seed % 9) / 10)))


def connections_lost(bench: Bench, seed: int) -> Counts:
    """The brokers have closed the connections, and their clients are not told; new ones are as good as any."""
    return _struck_once(bench, seed, TcpProxy.forget)


def network_in_drips(bench: Bench, seed: int) -> Counts:
    """The last bytes of what is sent, either way, come one by one."""
    return _bad_from_the_start(bench, seed, lambda rng: Line(singly=rng.randint(1, 60)))


def network_slow(bench: Bench, seed: int) -> Counts:
    """Every block is late; the run takes longer, and ends well."""
    return _bad_from_the_start(bench, seed, lambda rng: Line(delay=rng.uniform(0.005, 0.1)))


def network_narrow(bench: Bench, seed: int) -> Counts:
    """A line of some KiB a second."""
    return _bad_from_the_start(bench, seed, lambda rng: Line(rate=rng.randint(8, 64) << 10))


def network_flapping(bench: Bench, seed: int) -> Counts:
    """All connections are closed again and again, as long as the run takes."""

    def act(case: Case, proxies: Proxies) -> None:
        case.produce()
        over = threading.Event()
        pause = case.rng.uniform(0.02, 0.4)

        def flap() -> None:
            while not over.wait(pause):
                for proxy in proxies.values():
                    proxy.drop()

        flapping = threading.Thread(target=flap)
        flapping.start()
        try:
            ended = case.run()
        finally:
            over.set()
            flapping.join()
        assert ended.word in ("done", "Transient"), ended
        if ended.error is not None:
            case.again(ended)

    return played(bench, seed, act)


CLASSES = (
    FaultClass("network cut", (26,), Need.CLUSTER, 6, (0,), network_cut),
    FaultClass("network cut one way", (26,), Need.CLUSTER, 6, (0,), network_cut_one_way),
    FaultClass("network flapping", (26,), Need.CLUSTER, 6, (0,), network_flapping),
    FaultClass("network answers cut", (26,), Need.CLUSTER, 9, (), answers_cut),
    FaultClass("network connections lost", (26,), Need.CLUSTER, 9, (), connections_lost),
    FaultClass("network in drips", (27,), Need.CLUSTER, 6, (), network_in_drips),
    FaultClass("network slow", (27,), Need.CLUSTER, 5, (0,), network_slow),
    FaultClass("network narrow", (27,), Need.CLUSTER, 5, (0,), network_narrow),
)
