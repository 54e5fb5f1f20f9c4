"""Recorded traffic as prompts for the model that engines run here: what came before an answer, cut to its end."""

import random
from collections.abc import Iterable
from pathlib import Path

import mistral_common
from mistral_common.tokens.tokenizers.tekken import Tekkenizer
from tokenizers import Tokenizer

from draftd.replay.traces import RecordedRequest, read_trace

RECORDED = Path(mistral_common.__file__).parent / "data/tekken_240911.json"  # whose ids the recordings have


def prompts_of(trace: Path, tokenizer: Path, count: int, length: int, seed: int) -> list[list[int]]:
    """Prompts of `count` requests of a recording, chosen with the seed, in order of arrival; of each at most its last
    `length` tokens, in ids of the tokenizer (a tokenizer.json)."""
    requests = list(read_trace(trace))
    chosen = sorted(random.Random(seed).sample(range(len(requests)), min(count, len(requests))))
    return ends_of_prompts([requests[number] for number in chosen], tokenizer, length)


def ends_of_prompts(requests: Iterable[RecordedRequest], tokenizer: Path, length: int) -> list[list[int]]:
    """Of each request at most the last `length` tokens of its prompt, in ids of the tokenizer."""
    recorded, own = Tekkenizer.from_file(str(RECORDED)), Tokenizer.from_file(str(tokenizer))
    # From the end of a long prompt alone; a smaller vocabulary makes more tokens of it.
    texts = [recorded.decode(request.prompt[-2 * length :].tolist()) for request in requests]
    return [own.encode(text, add_special_tokens=False).ids[-length:] for text in texts]
