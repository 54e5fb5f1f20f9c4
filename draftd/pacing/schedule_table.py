"""The file of an adaptive schedule, as SGLang's `--speculative-adaptive-config` has it.

A JSON object. A key of digits is a *slot*, for batches of that many requests and more; its value is an object with
the options below. Beside the slots the same options, but for `candidate_steps`, hold for all slots that say nothing
of their own:

    {"ema_alpha": 0.2, "1": {"candidate_steps": [1, 3, 5, 7]}, "32": {"candidate_steps": [0, 1], "up_hysteresis": 0.1}}
"""

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from importlib.resources import files
from pathlib import Path
from typing import Any

from draftd.config import nearest


@dataclass(frozen=True)
class Slot:
    """How many nodes requests get in batches of one range of sizes, and when that changes."""

    candidate_steps: tuple[int, ...]
    """Lengths of a draft to choose from, rising, each once; 0 is off."""

    ema_alpha: float = 0.2
    """Weight of the newest batch in the average of accepted nodes, above 0 and at most 1."""

    update_interval: int = 5
    """Batches from one decision to the next."""

    warmup_batches: int = 10
    """Batches before the first interval begins."""

    up_hysteresis: float = 0.0
    """Accepted nodes above the threshold for going up."""

    down_hysteresis: float = -0.25
    """Accepted nodes above the threshold for going down; a negative one makes it stay longer."""

    ceiling_coeff: float = 0.0
    """Above 0: a draft that did not just grow is at most this many times the average, rounded up."""


MOST_STEPS = 2**16 - 1  # a step asks for nodes in 16 bits

ScheduleTable = Mapping[int, Slot]
"""Slots by the batch size they begin at."""

_OPTIONS = tuple(field.name for field in fields(Slot))
_WHOLE_NUMBERS = {"update_interval": 1, "warmup_batches": 0}  # with the least they may be


def shipped_table() -> ScheduleTable:
    """The table that SGLang has by default."""
    source = files(__package__) / "adaptive_schedule.json"
    return _table(json.loads(source.read_bytes()), str(source))


def read_table(path: Path) -> ScheduleTable:
    """The slots of a file. Raises ValueError, which names file, slot and key, for one that can't be used."""
    where = f"schedule {path}"
    try:
        content = json.loads(path.read_bytes())
    except OSError as error:
        raise ValueError(f"{where}: {error.strerror}") from None
    except ValueError as error:  # not UTF-8, or not JSON
        raise ValueError(f"{where}: not JSON: {error}") from None
    return _table(content, where)


def _table(content: Any, where: str) -> ScheduleTable:
    if not isinstance(content, dict) or not any(map(_is_batch_size, content)):
        raise ValueError(f'{where}: should be an object with a slot, such as {{"1": {{"candidate_steps": [1, 3]}}}}')
    of_slots: dict[int, Any] = {}
    for key in filter(_is_batch_size, content):
        if int(key) in of_slots:
            raise ValueError(f'{where}: slot "{key}" is there twice, as {int(key)}; keep one')
        of_slots[int(key)] = content[key]
    for_all = {key: value for key, value in content.items() if not _is_batch_size(key)}
    strategy = for_all.pop("strategy", "ema")
    if strategy != "ema":
        raise ValueError(f'{where}: strategy is {json.dumps(strategy)}; only "ema" is known here')
    defaults = _checked(for_all, [*_OPTIONS[1:], "strategy"], where)
    return {size: _slot(of_slots[size], defaults, f'{where}: slot "{size}"') for size in sorted(of_slots)}


def _is_batch_size(key: str) -> bool:
    return key.isascii() and key.isdigit()


def _slot(options: Any, defaults: dict[str, Any], where: str) -> Slot:
    if not isinstance(options, dict) or "candidate_steps" not in options:
        raise ValueError(f"{where}: should be an object with candidate_steps, not {json.dumps(options)}")
    return Slot(**{**defaults, **_checked(options, _OPTIONS, where)})


def _checked(options: dict[str, Any], known: Iterable[str], where: str) -> dict[str, Any]:
    return {key: _value(key, value, known, where) for key, value in options.items()}


def _value(key: str, value: Any, known: Iterable[str], where: str) -> Any:
    """The value of an option, if it may be one. Raises ValueError."""
    said = f"{where}: {key} is {json.dumps(value)}"
    if key not in known:
        raise ValueError(f"{where}: {key} is unknown; the nearest is {nearest(key, known)}")
    if key == "candidate_steps":
        if not isinstance(value, list) or not value or not all(map(_is_length, value)):
            raise ValueError(f"{said}, not a list of whole numbers from 0 to {MOST_STEPS}")
        return tuple(sorted(set(value)))
    if key in _WHOLE_NUMBERS:
        if not _is_whole(value) or value < _WHOLE_NUMBERS[key]:
            raise ValueError(f"{said}, not a whole number from {_WHOLE_NUMBERS[key]} on")
        return value
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise ValueError(f"{said}, not a number")
    if key == "ema_alpha" and not 0 < value <= 1:
        raise ValueError(f"{said}, not above 0 and at most 1")
    if key == "ceiling_coeff" and value < 0:
        raise ValueError(f"{said}, not at least 0")
    return float(value)


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_length(value: Any) -> bool:
    return _is_whole(value) and 0 <= value <= MOST_STEPS
