"""The thread that keeps an engine's requests at draftd, and their tapes on the device fed, while the engine goes on."""

import logging
import queue
import threading
import time
from collections.abc import Callable, Sequence

import torch

from draftd.adapters.fed_requests import FedRequests
from draftd.adapters.health_log import HealthLog
from draftd.adapters.settings import GREETING_SECONDS
from draftd.adapters.sightings import Sighting
from draftd.client.client import ChannelClient
from draftd.client.opening import OpenOptions
from draftd.kernels.delivery import Arrival

MOST_WAITING = 8  # sightings: later ones are left out until there is room, as each has the end of the text
CLOSING_SECONDS = 5.0


class TapeFeeder:
    """Takes sightings, in order. `post`, `most_tokens` and `options` are those of FedRequests."""

    def __init__(
        self,
        client: ChannelClient,
        post: Callable[[Sequence[Arrival]], bool],
        most_tokens: int,
        options: OpenOptions,
        device: torch.device,
        logger: logging.Logger,
    ) -> None:
        """The feeder owns the client from now on. `device`: that of the texts."""
        self._client = client
        self._device = device
        self._requests = FedRequests(client, post, most_tokens, options)
        self._logger = logger
        self._sightings: queue.Queue[Sighting | None] = queue.Queue()
        self._has_ended = False
        self._thread = threading.Thread(target=self._run, name="draftd-tapes", daemon=True)
        self._thread.start()

    @property
    def has_room(self) -> bool:
        """For another sighting. A step without one is made up for by the next."""
        return not self._has_ended and self._sightings.qsize() < MOST_WAITING

    def tell(self, sighting: Sighting) -> None:
        self._sightings.put(sighting)

    def close(self) -> None:
        """Ends the thread, and with it the connection. What was told before is still taken."""
        self._sightings.put(None)
        self._thread.join(CLOSING_SECONDS)

    def _run(self) -> None:
        if self._device.type == "cuda":
            torch.cuda.set_device(self._device)  # a thread begins with the first one, whichever its process uses
        health = self._client.check(GREETING_SECONDS)
        if health.state == "serving":
            self._logger.info("draftd %s sends windows of text for tapes", health.drafter_version)
        else:
            self._logger.warning(
                "draftd is not there yet: drafts are matched in each request's own text alone; %s", health.last_error
            )
        log = HealthLog(self._client, self._logger)
        log.look(time.monotonic())  # of the greeting enough is said
        try:
            while (sighting := self._sightings.get()) is not None:
                sighting.wait()
                self._requests.take(sighting)
                log.look(time.monotonic())
        except Exception:
            self._logger.exception("draftd sends no more windows: drafts are matched in each request's own text alone")
        finally:
            self._has_ended = True
            self._client.close()
