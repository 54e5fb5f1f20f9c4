"""The longest match of each request's text in itself and in its tapes, and what follows it: three launches for a batch.

The grid is fixed: as many programs as keep the device busy walk over tiles of positions, of which there are as many as
the real lengths have. The programs work that out from the lengths on the device, so a launch neither knows nor asks on
the host how long a text is, and can be captured in a CUDA graph.
"""

from dataclasses import dataclass
from typing import Self

import torch
import triton
import triton.language as tl
from torch import Tensor

from draftd.kernels.keys import LENGTH_SHIFT, MOST_TOKENS, OWN_SHIFT, SEPARATOR
from draftd.kernels.texts import DeviceTexts, Drafts, Rule, check_emitted

_LENGTH_SHIFT = tl.constexpr(LENGTH_SHIFT)
_OWN_SHIFT = tl.constexpr(OWN_SHIFT)
_MOST_TOKENS = tl.constexpr(MOST_TOKENS)
_SEPARATOR = tl.constexpr(SEPARATOR)


@dataclass(frozen=True, slots=True)
class Launch:
    """How the work is cut: results do not depend on it."""

    programs: int  # that share all tiles
    tile: int  # positions that a program looks at together, a power of two

    @classmethod
    def on(cls, device: torch.device) -> Self:
        """Eight programs of four warps for each multiprocessor: enough loads under way to fill the memory's pipe."""
        return cls(programs=8 * torch.cuda.get_device_properties(device).multi_processor_count, tile=1024)


def append(texts: DeviceTexts, emitted: Tensor, counts: Tensor) -> None:
    """Puts the first `counts[row]` tokens of `emitted[row]` behind each row's text, as far as its width goes. Rows that
    nobody has take none.

    `emitted`: int[rows, most], `counts`: int[rows]. Raises ValueError for those that are transposed or have gaps."""
    check_emitted(emitted, counts)
    _append_to_row[(len(counts),)](
        texts.tokens,
        texts.tokens.stride(0),
        texts.lengths,
        texts.openings,
        emitted,
        emitted.stride(0),
        counts,
        texts.tokens.shape[1],
        emitted.shape[1],
        MOST=triton.next_power_of_2(emitted.shape[1]),
    )


def draft(texts: DeviceTexts, rows: Tensor, rule: Rule, drafts: Drafts, launch: Launch) -> None:
    """Fills `drafts` for a batch. `rows`: int[batch], the row of `texts` that each is of; -1: nobody's."""
    batch = len(rows)
    _, ring, arrival_tokens = texts.tapes.shape
    of_texts = (texts.tokens, texts.tokens.stride(0), texts.lengths, texts.tapes, texts.arrivals)
    shapes = {"RING": ring, "ARRIVAL": arrival_tokens, "LATEST": rule.prefer == "latest"}
    drafts.keys.zero_()
    _match[(launch.programs,)](
        drafts.keys,
        *of_texts,
        rows,
        batch,
        rule.min_n,
        rule.max_n,
        **shapes,
        BATCH=triton.next_power_of_2(batch),
        TILE=launch.tile,
    )
    _follow[(batch,)](
        drafts.keys,
        drafts.tokens,
        drafts.counts,
        *of_texts,
        rows,
        rule.most_tokens,
        **shapes,
        PAD_WITH_LAST=rule.pad_with_last,
        MOST=triton.next_power_of_2(rule.most_tokens),
    )


@triton.jit
def _append_to_row(
    tokens: tl.tensor,
    stride: tl.tensor,
    lengths: tl.tensor,
    openings: tl.tensor,
    emitted: tl.tensor,
    emitted_stride: tl.tensor,
    counts: tl.tensor,
    width: tl.tensor,
    most: tl.tensor,
    MOST: tl.constexpr,  # noqa: N803  (Triton's constants are upper case)
) -> None:
    row = tl.program_id(0).to(tl.int64)
    length = tl.load(lengths + row)
    is_open = tl.load(openings + row) != 0
    count = tl.load(counts + row, mask=is_open, other=0).to(tl.int32)
    offsets = tl.arange(0, MOST)
    is_new = (offsets < most) & (offsets < count) & (length + offsets < width)
    new = tl.load(emitted + row * emitted_stride + offsets, mask=is_new)
    tl.store(tokens + row * stride + length + offsets, new, mask=is_new)
    tl.debug_barrier()  # else a warp may read the length that another has already written
    tl.store(lengths + row, tl.minimum(length + count, width))


@triton.jit
def _match(
    keys: tl.tensor,
    tokens: tl.tensor,
    stride: tl.tensor,
    lengths: tl.tensor,
    tapes: tl.tensor,
    arrivals: tl.tensor,
    rows: tl.tensor,
    batch: tl.tensor,
    min_n: tl.tensor,
    max_n: tl.tensor,
    RING: tl.constexpr,  # noqa: N803
    ARRIVAL: tl.constexpr,  # noqa: N803
    LATEST: tl.constexpr,  # noqa: N803
    BATCH: tl.constexpr,  # noqa: N803
    TILE: tl.constexpr,  # noqa: N803
) -> None:
    places = tl.arange(0, BATCH)
    row_of = tl.load(rows + places, mask=places < batch, other=-1).to(tl.int64)
    length_of = tl.load(lengths + row_of, mask=row_of >= 0, other=0)
    on_tape_of = tl.minimum(tl.load(arrivals + row_of, mask=length_of > 0, other=0), RING) * ARRIVAL
    tiles_of = tl.cdiv(tl.maximum(length_of - 1, 0), TILE) + tl.cdiv(on_tape_of, TILE)
    ends = tl.cumsum(tiles_of, 0)
    for tile in range(tl.program_id(0), tl.max(ends, 0), tl.num_programs(0)):
        place = tl.sum((ends <= tile).to(tl.int32), 0)
        row = tl.load(rows + place).to(tl.int64)
        length = tl.load(lengths + row)
        number = tile - tl.max(tl.where(ends <= tile, ends, 0), 0)  # of the tile in its row
        own_tiles = tl.cdiv(length - 1, TILE)
        text = tokens + row * stride
        if number < own_tiles:
            ends_at = number * TILE + 1 + tl.arange(0, TILE)
            agreeing = _agreeing(text, ends_at, length, text + length, length, min_n, max_n)
            places_of = ends_at
            source = 1
        else:
            arrived = tl.load(arrivals + row)
            ends_at = (number - own_tiles) * TILE + 1 + tl.arange(0, TILE)
            on_tape = tl.minimum(arrived, RING) * ARRIVAL
            tape = tapes + row * RING * ARRIVAL
            agreeing = _agreeing(tape, ends_at, on_tape, text + length, length, min_n, max_n)
            # Numbered from the oldest slot on, which is the next to be written.
            places_of = (ends_at // ARRIVAL + RING - arrived % RING) % RING * ARRIVAL + ends_at % ARRIVAL
            source = 0
        if not LATEST:
            places_of = _MOST_TOKENS - places_of
        key = agreeing.to(tl.int64) << _LENGTH_SHIFT | tl.cast(source, tl.int64) << _OWN_SHIFT | places_of.to(tl.int64)
        best = tl.max(tl.where(agreeing > 0, key, 0), 0)
        if best > 0:
            tl.atomic_max(keys + place, best)


@triton.jit
def _agreeing(
    source: tl.tensor,
    ends: tl.tensor,
    width: tl.tensor,
    text_end: tl.tensor,
    length: tl.tensor,
    min_n: tl.tensor,
    max_n: tl.tensor,
) -> tl.tensor:
    """int32[TILE]: at each end position, how many tokens before it are those at the text's end; 0 where that is less
    than `min_n`, or where no token of the same text or window follows."""
    agrees = ends < width
    agreeing = tl.zeros_like(ends)
    most = tl.minimum(max_n, length)
    back = 1
    still = 1  # positions that agree so far: mostly there are none behind the first few tokens
    while (back <= most) & (still > 0):
        token = tl.load(source + ends - back, mask=agrees & (ends >= back), other=_SEPARATOR)
        agrees = agrees & (token == tl.load(text_end - back))
        agreeing += agrees.to(tl.int32)
        still = tl.sum(agrees.to(tl.int32), 0)
        back += 1
    is_long = (agreeing >= min_n) & (ends < width)
    following = tl.load(source + ends, mask=is_long, other=_SEPARATOR)
    return tl.where(following != _SEPARATOR, agreeing, 0)


@triton.jit
def _follow(
    keys: tl.tensor,
    drafted: tl.tensor,
    counts: tl.tensor,
    tokens: tl.tensor,
    stride: tl.tensor,
    lengths: tl.tensor,
    tapes: tl.tensor,
    arrivals: tl.tensor,
    rows: tl.tensor,
    most: tl.tensor,
    RING: tl.constexpr,  # noqa: N803
    ARRIVAL: tl.constexpr,  # noqa: N803
    LATEST: tl.constexpr,  # noqa: N803
    PAD_WITH_LAST: tl.constexpr,  # noqa: N803
    MOST: tl.constexpr,  # noqa: N803
) -> None:
    place = tl.program_id(0)
    row = tl.load(rows + place).to(tl.int64)
    length = tl.load(lengths + row, mask=row >= 0, other=0)
    text = tokens + row * stride
    key = tl.load(keys + place)
    end = (key & _MOST_TOKENS).to(tl.int32)
    if not LATEST:
        end = _MOST_TOKENS - end
    offsets = tl.arange(0, MOST)
    asked = tl.where(key > 0, most, 0)
    asked_of_own = tl.where(((key >> _OWN_SHIFT) & 1) == 1, asked, 0)

    repeating = end + offsets % tl.maximum(length - end, 1)  # the own text goes on in the draft itself
    of_own = tl.load(text + repeating, mask=offsets < asked_of_own, other=_SEPARATOR)
    slot = (end // ARRIVAL + tl.load(arrivals + row, mask=row >= 0, other=0)) % RING
    behind = end % ARRIVAL + offsets
    is_in_slot = (offsets < asked - asked_of_own) & (behind < ARRIVAL)
    of_tape = tl.load(tapes + (row * RING + slot) * ARRIVAL + behind, mask=is_in_slot, other=_SEPARATOR)

    following = tl.maximum(of_own, of_tape)  # one of them is all separators
    is_draft = tl.cumsum((following == _SEPARATOR).to(tl.int32), 0) == 0
    padding = tl.full((), -1, tl.int32)
    if PAD_WITH_LAST:
        padding = tl.load(text + length - 1, mask=length > 0, other=0)
    tl.store(drafted + place * most + offsets, tl.where(is_draft, following, padding), mask=offsets < most)
    tl.store(counts + place, tl.sum(is_draft.to(tl.int32), 0))
