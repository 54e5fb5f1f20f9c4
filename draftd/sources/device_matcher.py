"""Drafts of a batch whose texts are on the engine's device, and the way of windows to their tapes.

Needs the `gpu` extra. On a CUDA device one graph of Triton kernels is a step; elsewhere their twin in torch does the
same.
"""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.distributed import ProcessGroup

from draftd.kernels import ngram_torch, ngram_triton
from draftd.kernels.delivery import NOBODY, Arrival, Mailbox, empty_delivery, put_into_slots
from draftd.kernels.texts import DeviceTexts, Drafts, Rule


class DeviceMatcher:
    """Matches texts that somebody else writes: `texts.tokens` and `texts.lengths`.

    All work is queued on the device's current stream, which has to be the same for all calls. Calls return before it is
    done, and read nothing back."""

    def __init__(
        self,
        texts: DeviceTexts,
        rule: Rule,
        *,
        dtype: torch.dtype = torch.int32,
        group: ProcessGroup | None = None,
    ) -> None:
        """`dtype`: of the drafts; `group`: ranks that have to draft the same, as of a model that is split over devices.
        They make the same calls, and get what was posted at the first of them."""
        rows, device = len(texts.lengths), texts.tokens.device
        self.texts = texts
        self.rows = torch.arange(rows, device=device)  # int64: the row of each place of the batch; -1: nobody's
        self._rule = rule
        self._drafts = Drafts.empty(rows, rule, device, dtype)
        self._mailbox = Mailbox(rows, device)
        self._group = group
        self._shared = empty_delivery(rows, device)
        self._opened = 0
        self._graph = self._captured() if device.type == "cuda" else None

    def open(self, row: int) -> int:
        """A request takes the row, and begins with empty tapes. Returns the number of this opening, which arrivals
        name."""
        self._opened += 1
        self.texts.arrivals[row].zero_()
        self.texts.openings[row].fill_(self._opened)
        return self._opened

    def post(self, arrivals: Sequence[Arrival]) -> bool:
        """Sends windows of text for the tapes of open rows, each row once; another thread may call this. Each `propose`
        takes what one call posted.

        False, and nothing is done, while four are on their way. Raises ValueError for rows that are not there, and what
        NumPy raises for windows that are no row of int32; then nothing is done, either."""
        return self._mailbox.post(arrivals)

    def propose(self) -> Drafts:
        """Drafts for what `rows` holds, in buffers that the next call writes anew."""
        self._receive()
        if self._graph is None:
            ngram_torch.draft(self.texts, self.rows, self._rule, self._drafts)
        else:
            self._graph.replay()
        return self._drafts

    def _receive(self) -> None:
        with self._mailbox.taken() as delivery:
            if self._group is not None:
                delivery = self._of_first_rank(delivery, self._group)
            if delivery is not None:
                put_into_slots(self.texts, delivery)

    def _of_first_rank(self, delivery: Tensor | None, group: ProcessGroup) -> Tensor:
        """The broadcast has a fixed size, and every rank takes part in every step, whatever came."""
        if delivery is None:
            self._shared.fill_(NOBODY)
        else:
            self._shared.copy_(delivery)
        torch.distributed.broadcast(self._shared, group=group, group_src=0)
        return self._shared

    def _captured(self) -> torch.cuda.CUDAGraph:
        """One step's launches. They are run before, which compiles them: that can't be captured."""
        launch = ngram_triton.Launch.on(self.rows.device)

        def step() -> None:
            ngram_triton.draft(self.texts, self.rows, self._rule, self._drafts, launch)

        step()
        graph = torch.cuda.CUDAGraph()
        # Of this thread alone: by default a call of any other, as an engine's allocation, ends it in an error.
        with torch.cuda.graph(graph, capture_error_mode="thread_local"):
            step()
        return graph
