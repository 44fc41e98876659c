"""Ports for servers: free, different, and not among those that connections are given."""

from __future__ import annotations

import socket
from pathlib import Path

from wavestitch.local.loopback_port import LOOPBACK, free_ports, is_free


def test_a_server_gets_no_port_that_an_outgoing_connection_could_be_given() -> None:
    low, high = (int(n) for n in Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split())
    ports = free_ports(40)
    assert len(set(ports)) == 40
    assert all(is_free(p) for p in ports)
    # Where connections may have nearly all ports there are no others to take.
    assert low <= 10_000 or not [p for p in ports if low <= p <= high]


def test_a_port_that_is_listened_on_is_not_free() -> None:
    with socket.socket() as server:
        server.bind((LOOPBACK, 0))
        server.listen()
        assert not is_free(server.getsockname()[1])
