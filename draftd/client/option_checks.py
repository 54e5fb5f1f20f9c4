"""What each option of an opening may be, and the words for what it is not."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from numbers import Real
from operator import index
from reprlib import repr as shortened
from typing import Any

import numpy as np

from draftd.wire import MOST_SPEC_FACTOR, Preset, Shape, Share

SHAPES = {"tree": Shape.SHAPE_TREE, "chain": Shape.SHAPE_CHAIN}
PRESETS = {preset.name.lower(): preset for preset in Preset}
SHARES = {"outputs": Share.OUTPUTS, "group": Share.GROUP, "all": Share.ALL, "none": Share.NOTHING}

MOST = 2**32 - 1  # of a count on the wire
MOST_TOKEN_ID = 2**31 - 2


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of value; `what` goes on after "give"."""

    what: str
    holds: Callable[[Any], bool]

    def or_none(self) -> "Kind":
        return Kind(f"{self.what}, or None", lambda value: value is None or self.holds(value))


def _whole(least: int, most: int) -> Kind:
    return Kind(f"a whole number from {least} to {most}", lambda value: _is_whole(value) and least <= value <= most)


def _number(least: float, most: float) -> Kind:
    return Kind(f"a number from {least:g} to {most:g}", lambda value: _is_number(value) and least <= value <= most)


def _one_of(words: Collection[str]) -> Kind:
    return Kind(f"one of {', '.join(words)}", lambda value: isinstance(value, str) and value in words)


def _is_whole(value: Any) -> bool:
    """Of Python's kind or numpy's. True is no number."""
    try:
        index(value)
    except TypeError:
        return False
    return not isinstance(value, (bool, np.bool_))


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, (bool, np.bool_))


def _is_text(value: Any) -> bool:
    """Halves of surrogate pairs are none: they can't be sent."""
    return isinstance(value, str) and not any("\ud800" <= character <= "\udfff" for character in value)


def _are_token_ids(value: Any) -> bool:
    listed = isinstance(value, (Collection, np.ndarray)) and not isinstance(value, (str, bytes, Mapping))
    return listed and all(_is_whole(token) and 0 <= token <= MOST_TOKEN_ID for token in value)


def _are_corpora(value: Any) -> bool:
    listed = isinstance(value, Collection) and not isinstance(value, (str, bytes, Mapping))
    return value == "all" if isinstance(value, str) else listed and all(map(_is_text, value))


_TEXT = Kind("text", _is_text)
_PROBABILITY = _number(0, 1).or_none()
_AT_LEAST_ONE = _whole(1, MOST).or_none()

KINDS: Mapping[str, Kind] = {
    "tenant": _TEXT,
    "adapter": _TEXT,
    "group": _TEXT,
    "stop_ids": Kind(f"a list of token ids, whole numbers from 0 to {MOST_TOKEN_ID}", _are_token_ids),
    "max_new_tokens": _whole(0, MOST).or_none(),
    "shape": _one_of(SHAPES),
    "max_nodes": _AT_LEAST_ONE,
    "share": _one_of(SHARES),
    "history": Kind("True or False", lambda value: isinstance(value, (bool, np.bool_))),
    "corpora": Kind("'all' or a list of corpus ids", _are_corpora),
    "temperature": Kind("a number", _is_number).or_none(),  # the engine's user chose it: the drafter judges it
    "preset": _one_of(PRESETS).or_none(),
    "max_depth": _AT_LEAST_ONE,
    "max_breadth": _AT_LEAST_ONE,
    "min_survival": _PROBABILITY,
    "max_spec_factor": _number(0, MOST_SPEC_FACTOR).or_none(),
    "min_token_prob": _PROBABILITY,
}
_OF_SUFFIX_DECODING = ("max_spec_factor", "min_token_prob")


def check_options(request_id: str, options: Mapping[str, Any]) -> None:
    """Raises ValueError, naming request and option, for one that can't be meant; TypeError for one that is unknown,
    and for an id that is no string."""
    if not _is_text(request_id):
        raise TypeError(f"open({request_id!r}): the request's id should be a string")
    where = f"open({request_id!r})"
    if unknown := options.keys() - KINDS.keys():
        raise TypeError(f"{where}: unknown option {', '.join(sorted(unknown))}")
    for name, value in options.items():
        if not KINDS[name].holds(value):
            raise ValueError(f"{where}: {name} is {' '.join(shortened(value).split())}; give {KINDS[name].what}")
    if options.get("share") == "group" and not options.get("group"):
        raise ValueError(f"{where}: share='group' without a group; name it with group=")
    for name in _OF_SUFFIX_DECODING:
        if options.get(name) is not None and options.get("preset") not in (None, "suffix_decoding"):
            raise ValueError(f"{where}: {name} is for preset='suffix_decoding' alone")
