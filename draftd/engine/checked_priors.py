"""Priors that the core can start with."""

from pathlib import Path
from typing import Literal

from draftd import native
from draftd.priors import read_priors


def checked_priors(which: Literal["shipped", "none"] | Path) -> bytes:
    """As `read_priors`. Raises ValueError, which names the file, for what is no model of this version too."""
    model = read_priors(which)
    if model:
        try:
            native.Model.load(model)
        except ValueError as error:
            raise ValueError(f"priors {which}: {error}") from None
    return model
