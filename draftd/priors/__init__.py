"""What namespaces start with: models learned from recordings, packed with zlib. bench/train_priors.py makes them."""

import zlib
from importlib.resources import files
from pathlib import Path
from typing import Literal

MOST_BYTES = 1 << 22  # packed or not: a model has half a mebibyte


def read_priors(which: Literal["shipped", "none"] | Path) -> bytes:
    """A saved model, to be checked by who loads it; empty for "none".

    Raises ValueError, which names the file, for one that can't be read or is packed otherwise."""
    if which == "none":
        return b""
    source = files(__name__) / "shipped" if which == "shipped" else Path(which)
    try:
        with source.open("rb") as file:
            return _unpacked(file.read(MOST_BYTES + 1))
    except OSError as error:
        raise ValueError(f"priors {source}: {error.strerror}") from None
    except zlib.error as error:
        raise ValueError(f"priors {source}: not packed as priors are: {error}") from None
    except ValueError as error:
        raise ValueError(f"priors {source}: {error}") from None


def _unpacked(packed: bytes) -> bytes:
    """Raises ValueError or zlib.error."""
    if not packed:
        raise ValueError("the file is empty")
    if len(packed) > MOST_BYTES:
        raise ValueError(f"the file has more than {MOST_BYTES} bytes")
    unpacking = zlib.decompressobj()
    model = unpacking.decompress(packed, MOST_BYTES)
    if unpacking.unconsumed_tail:
        raise ValueError(f"more than {MOST_BYTES} bytes when unpacked")
    if not unpacking.eof:
        raise ValueError("cut off")
    if unpacking.unused_data:
        raise ValueError(f"{len(unpacking.unused_data)} bytes stand behind its end")
    if not model:
        raise ValueError("packed is nothing")
    return model


def pack_priors(model: bytes) -> bytes:
    """The content of a file that `read_priors` takes."""
    return zlib.compress(model, 9)
