"""What happens on the way to the brokers: cut, one way, in an answer, lost, flapping, slow, in drips (rows 26, 27)."""

from __future__ import annotations

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


def _broken_for_one_run(bench: Bench, seed: int, line: Line, *, dropping: bool) -> Counts:
    """The lines break at a seeded moment and are whole again after the run has ended."""

    def act(case: Case, proxies: Proxies) -> None:
        sent = len(case.produce())
        chosen = _some(case, proxies)

        def breaks() -> None:
            for proxy in chosen:
                proxy.set(line)
                if dropping:
                    proxy.drop()

        ended = strike(case, sent, breaks)
        assert ended.word in ("done", "Transient"), ended
        for proxy in proxies.values():
            proxy.set(CLEAR)
            proxy.drop()
        if ended.error is not None:
            assert case.again(ended).word in ("done", "nothing")

    return played(bench, seed, act)


def network_cut(bench: Bench, seed: int) -> Counts:
    """Connections are closed and refused, or nothing comes through any more."""
    if seed % 2:
        return _broken_for_one_run(bench, seed, Line(refuse=True), dropping=True)
    return _broken_for_one_run(bench, seed, SILENT, dropping=False)


def network_cut_one_way(bench: Bench, seed: int) -> Counts:
    """Requests arrive and no answer comes back, or the other way round."""
    return _broken_for_one_run(bench, seed, Line(up=bool(seed % 2), down=not seed % 2), dropping=False)


def answers_cut(bench: Bench, seed: int) -> Counts:
    """Of each answer a part comes, and its connection ends."""
    return _broken_for_one_run(bench, seed, Line(cut=(1 + seed % 9) / 10), dropping=False)


def connections_lost(bench: Bench, seed: int) -> Counts:
    """The brokers have closed the connections, and their clients are not told; new ones are as good as any."""

    def act(case: Case, proxies: Proxies) -> None:
        sent = len(case.produce())
        chosen = _some(case, proxies)

        def forget() -> None:
            for proxy in chosen:
                proxy.forget()

        ended = strike(case, sent, forget)
        assert ended.word in ("done", "Transient"), ended
        for proxy in proxies.values():
            proxy.set(CLEAR)
            proxy.drop()
        if ended.error is not None:
            assert case.again(ended).word in ("done", "nothing")

    return played(bench, seed, act)


def network_in_drips(bench: Bench, seed: int) -> Counts:
    """The last bytes of what is sent, either way, come one by one."""

    def act(case: Case, proxies: Proxies) -> None:
        case.produce()
        for proxy in proxies.values():
            proxy.set(Line(singly=case.rng.randint(1, 60)))
        ended = case.run()
        assert ended.word in ("done", "Transient"), ended
        for proxy in proxies.values():
            proxy.set(CLEAR)

    return played(bench, seed, act)


def network_slow(bench: Bench, seed: int) -> Counts:
    """Every block is late; the run takes longer, and ends well."""

    def act(case: Case, proxies: Proxies) -> None:
        case.produce()
        for proxy in proxies.values():
            proxy.set(Line(delay=case.rng.uniform(0.005, 0.1)))
        ended = case.run()
        assert ended.word in ("done", "Transient"), ended
        for proxy in proxies.values():
            proxy.set(CLEAR)

    return played(bench, seed, act)


def network_narrow(bench: Bench, seed: int) -> Counts:
    """A line of some KiB a second."""

    def act(case: Case, proxies: Proxies) -> None:
        case.produce()
        rate = case.rng.randint(8, 64) << 10
        for proxy in proxies.values():
            proxy.set(Line(rate=rate))
        ended = case.run()
        assert ended.word in ("done", "Transient"), ended
        for proxy in proxies.values():
            proxy.set(CLEAR)

    return played(bench, seed, act)


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
