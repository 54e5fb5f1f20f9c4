"""How a request wants its trees made: what its DraftSync says, and the server's defaults where it says nothing."""

from draftd import native
from draftd.config import DraftingSettings
from draftd.wire import MOST_SPEC_FACTOR, DraftSync, Preset

_COUNTS = ("max_depth", "max_breadth")
_PROBABILITIES = ("min_survival", "min_token_prob")
_OF_SUFFIX_DECODING = ("max_spec_factor", "min_token_prob")


def policy_of(sync: DraftSync, usual: DraftingSettings) -> native.DraftPolicy:
    """Raises ValueError naming the field."""
    numbers = ("max_depth", "max_breadth", "min_survival", "max_spec_factor", "min_token_prob")
    said = {name: getattr(sync, name) for name in numbers if sync.HasField(name)}
    _check(said)
    preset = sync.preset if sync.HasField("preset") else Preset[usual.preset.upper()]
    if preset not in list(Preset):
        raise ValueError(f"preset: {preset} is no Preset")
    by_default = "" if sync.HasField("preset") else ", the server's default: state one"
    for name in _OF_SUFFIX_DECODING:
        if name in said and preset != Preset.SUFFIX_DECODING:
            raise ValueError(f"{name}: is for SUFFIX_DECODING; the preset is {Preset(preset).name}{by_default}")
    defaults = {
        "max_depth": usual.max_depth,
        "max_breadth": usual.max_breadth,
        "min_survival": usual.min_survival,
    }
    return native.DraftPolicy(preset=preset, **(defaults | said))


def _check(said: dict[str, float]) -> None:
    """Raises ValueError naming the field."""
    for name, value in said.items():
        if name in _COUNTS and value < 1:
            raise ValueError(f"{name}: {value} is not at least 1")
        if name in _PROBABILITIES and not 0.0 <= value <= 1.0:
            raise ValueError(f"{name}: {value} is not in [0, 1]")
        if name == "max_spec_factor" and not 0.0 <= value <= MOST_SPEC_FACTOR:
            raise ValueError(f"{name}: {value} is not in [0, {MOST_SPEC_FACTOR:g}]")
