"""The HTTP endpoint: uvicorn inside the event loop of the process."""

import asyncio
import math
import socket
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn
from starlette.applications import Starlette


class HttpServer:
    """Serves one application at HOST:PORT; port 0 takes a free one."""

    def __init__(self, app: Starlette, address: str, shutdown_seconds: float) -> None:
        config = uvicorn.Config(
            app,
            http="h11",
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=math.ceil(shutdown_seconds),
        )
        self._address = address
        self._server = _Server(config)
        self._serving: asyncio.Task[None] | None = None

    async def start(self) -> str:
        """Returns the URL once connections are taken. Raises OSError, for example when the port is taken."""
        host, _, port = self._address.rpartition(":")
        host = host.strip("[]")
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listener = socket.create_server((host, int(port)), family=family, backlog=128)
        self._serving = asyncio.create_task(self._server.serve([listener]))
        await self._server.up.wait()
        return f"http://{self._address.rpartition(':')[0]}:{listener.getsockname()[1]}"

    async def stop(self) -> None:
        """Takes no more connections, lets answers under way end within the time given, and closes."""
        if self._serving is not None:
            self._server.should_exit = True
            await self._serving


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.up = asyncio.Event()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Signals belong to the composition root: captures none."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.up.set()
