"""What namespaces start with: models learned from recordings, packed with zlib. bench/train_priors.py makes them."""

import zlib
from importlib.resources import files
from pathlib import Path
from typing import Literal

MOST_BYTES = 1 << 22  # unpacked: a model has half a mebibyte


def read_priors(which: Literal["shipped", "none"] | Path) -> bytes:
    """A saved model, to be checked by who loads it; empty for "none". Raises OSError, or ValueError for what is packed
    otherwise."""
    if which == "none":
        return b""
    source = files(__name__) / "shipped" if which == "shipped" else Path(which)
    unpacking = zlib.decompressobj()
    try:
        model = unpacking.decompress(source.read_bytes(), MOST_BYTES)
    except zlib.error as error:
        raise ValueError(f"{source}: not packed as priors are: {error}") from None
    if not unpacking.eof:
        raise ValueError(f"{source}: cut off, or more than {MOST_BYTES} bytes when unpacked")
    return model


def pack_priors(model: bytes) -> bytes:
    """The content of a file that `read_priors` takes."""
    return zlib.compress(model, 9)
