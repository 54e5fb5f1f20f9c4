"""Which request has which row of vLLM's states: a speculator is told of neither coming nor going."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from draftd.adapters.sightings import SeenRow

WARM_UP = ("_warmup_", "_v2_mixed_warmup_")  # how ids of the requests begin by which vLLM warms itself up


@dataclass(slots=True)
class _Held:
    """A row in the hands of a request."""

    stated: tuple[str, int, int, int]  # id, row, tokens of the prompt, and of what was known when it came (back)
    seen: SeenRow
    is_told: bool = False


class StateRows:
    """All ranks see the same batches, so that they number openings alike."""

    def __init__(self, req_states: Any, open_row: Callable[[int], int]) -> None:
        """`open_row` is called for a row that another request has now, and gives the number of that opening."""
        self._states = req_states
        self._open_row = open_row
        self._held: dict[str, _Held] = {}
        self._last_batch: list[tuple[str, int, int, int]] = []

    @property
    def open_ids(self) -> frozenset[str]:
        return frozenset(self._held)

    def see(self, request_ids: Sequence[str], rows: NDArray[np.intp]) -> None:
        """A step of these requests is drafted for."""
        states = self._states
        if not self._held.keys() <= states.req_id_to_index.keys():
            self._held = {name: held for name, held in self._held.items() if name in states.req_id_to_index}
        prompts, known = states.prompt_len.np[rows].tolist(), states.prefill_len.np[rows].tolist()
        batch = list(zip(request_ids, rows.tolist(), prompts, known, strict=True))
        if batch == self._last_batch:  # as it mostly is
            return
        self._last_batch = batch
        for stated in batch:
            held = self._held.get(stated[0])
            if held is None or held.stated != stated:
                self._held[stated[0]] = self._opened(stated)

    def tell(self, request_ids: Sequence[str]) -> list[SeenRow]:
        """What the host knows of these, which were seen; whole texts are asked for with the first call for each."""
        return [self._told(self._held[request_id]) for request_id in request_ids]

    def _opened(self, stated: tuple[str, int, int, int]) -> _Held:
        request_id, row, prompt, known = stated
        most_new = int(self._states.max_seq_len[row]) - prompt
        return _Held(stated, SeenRow(request_id, row, self._open_row(row), prompt, most_new, known))

    def _told(self, held: _Held) -> SeenRow:
        seen = held.seen
        if not held.is_told:
            held.is_told, held.seen = True, replace(seen, known_length=None)
        return seen
