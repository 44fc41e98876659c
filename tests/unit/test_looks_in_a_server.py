"""Pages that wait for a broker that never answers leave the server's threads to others."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.builders.heads import make_head


@pytest.fixture
def deaf_broker() -> Iterator[str]:
    """A broker that takes connections and never says a word."""
    with socket.create_server(("127.0.0.1", 0), backlog=200) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


def test_forty_requests_at_once_with_a_broker_that_is_away_leave_the_server_s_threads_free(
    deaf_broker: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tests.stack.airflow_home import make_database, prepare_airflow, write_settings  # noqa: PLC0415

    prepare_airflow()
    make_database()
    (tmp_path / "streams").mkdir()
    config = write_settings(tmp_path, streams=tmp_path / "streams", bootstrap=deaf_broker)
    monkeypatch.setenv("WAVESTITCH_CONFIG", str(config))
    import httpx  # noqa: PLC0415
    from airflow.api_fastapi.app import create_auth_manager  # noqa: PLC0415
    from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser  # noqa: PLC0415

    from wavestitch.batch.deployment import Deployment  # noqa: PLC0415
    from wavestitch.ui.app import make_app  # noqa: PLC0415

    (tmp_path / "streams" / "ecg.yaml").write_text("topic: t\ngroup: g\n")
    Deployment().tables("ecg").commit(None, make_head(note="x"), [])
    app = make_app()
    app.state.auth_manager = manager = create_auth_manager()
    token = manager.generate_jwt(SimpleAuthManagerUser(username="v", role="viewer"))

    @app.get("/heartbeat")
    def heartbeat() -> str:
        """As Airflow's own routes: in a thread of the pool that all share."""
        return "alive"

    async def story() -> None:
        transport = httpx.ASGITransport(app=app)
        sent = {"Authorization": f"Bearer {token}"}
        async with httpx.AsyncClient(transport=transport, base_url="http://x", headers=sent, timeout=60) as client:
            began = time.monotonic()
            pages = [asyncio.create_task(client.get("/")) for _ in range(40)]
            await asyncio.sleep(0)
            assert (await client.get("/heartbeat")).json() == "alive"
            alive = time.monotonic() - began
            answers = await asyncio.gather(*pages)
            took = time.monotonic() - began
        print(f"heartbeat after {alive:.2f} s, forty pages after {took:.2f} s")
        assert {a.status_code for a in answers} == {200}
        assert all("first, head 1" in a.text or "being looked at" in a.text for a in answers)
        assert alive < 5
        assert took < 8

    asyncio.run(asyncio.wait_for(story(), 60))
