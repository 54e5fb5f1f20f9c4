"""Which models can work over a cache that is addressed token by token, under masks of any form."""

from typing import Any

from transformers import DynamicCache
from transformers.cache_utils import DynamicLayer

MASKED_BY_US = ("sdpa", "eager")  # attention that takes a mask of any form


def check_model(model: Any) -> None:
    """Raises ValueError for a model that can't take trees here: one that forgets text, or lets no mask in."""
    for layer in DynamicCache(config=model.config).layers:
        if type(layer) is not DynamicLayer:
            raise ValueError(f"the model's cache has a {type(layer).__name__}; only full attention is supported")
    if model.config._attn_implementation not in MASKED_BY_US:
        raise ValueError(
            f"the model's attention is {model.config._attn_implementation}; load it with 'sdpa' or 'eager'"
        )
