"""llama-cpp-python: `Llama(path, draft_model=DraftdDraftModel(n_vocab, model="..."))`.

A `Llama` only calls its draft model, so this one needs no base class of llama-cpp-python. It is told the whole text, of
one request at a time, and neither when a request begins nor when it ends.
"""

import logging
import time
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from draftd.adapters.health_log import HealthLog
from draftd.adapters.settings import GREETING_SECONDS, adapter_settings, checked_max_nodes
from draftd.client.closing import Closing
from draftd.client.prefixes import PrefixRequests

logger = logging.getLogger("llama_cpp.draftd")


class DraftdDraftModel(Closing):
    """A draft model for one `Llama`, with drafts of at most `max_nodes` tokens.

    `vocabulary_size` is the model file's (`Llama(path, vocab_only=True).n_vocab()`): no id beyond it is drafted.
    `settings` are those of draftd.adapters.settings; `model` among them has to be given. Whatever becomes of draftd,
    `Llama` goes on: without a draft it decodes as ever.
    """

    def __init__(self, vocabulary_size: int, max_nodes: int = 8, **settings: Any) -> None:
        """Raises ConfigError for settings that can't be used, ValueError for a `max_nodes` that can't be meant."""
        self._max_nodes = checked_max_nodes(max_nodes)
        self._settings = adapter_settings(**settings)
        self.client = self._settings.connect("", verifier="llama-cpp", vocabulary_size=vocabulary_size)
        self._requests = PrefixRequests(self.client)
        self.client.check(GREETING_SECONDS)
        self._health_log = HealthLog(self.client, logger)  # after the greeting, which is no step
        self._names = map("request-{}".format, count(1))
        self._request_id = next(self._names)
        self._drafted = 0  # tokens of the last draft

    def __call__(self, input_ids: NDArray[np.intc], /, **_: Any) -> NDArray[np.intc]:
        """int32[k]: what may follow the text, int32[n], all of which the model said or was given."""
        growth = self._requests.extends(self._request_id, input_ids)
        if growth is None or not 1 <= growth <= self._drafted + 1:  # no pass over the last draft can have yielded this
            self._requests.close(self._request_id)
            self._request_id = next(self._names)
        options = self._settings.options()
        options["shape"] = "chain"
        drafts = self._requests.drafts(
            {self._request_id: input_ids}, self._max_nodes, options={self._request_id: options}
        )
        tokens = drafts[self._request_id].tokens[: self._max_nodes]
        self._drafted = len(tokens)
        self._health_log.look(time.monotonic())
        return tokens.astype(np.intc)

    def close(self) -> None:
        """Closes the last request and the connection to draftd."""
        self._requests.close(self._request_id)
        self.client.commit({})  # takes the close along
        self.client.close()

    def __repr__(self) -> str:
        return f"DraftdDraftModel({self.client.namespace.model!r} at {self._settings.endpoint})"
