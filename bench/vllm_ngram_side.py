"""The side of bench/vllm_ngram.py that runs in the engines' environment: vLLM's n-gram proposer, without draftd.

    python vllm_ngram_side.py TEXT.npz CONTEXT CHAIN

TEXT.npz has `text`, int32[requests, tokens]: CONTEXT tokens are each request's prompt, the rest comes step by step.
Each line of standard input has one number per request: the tokens it emitted. Answers with a line: microseconds of the
proposal, and the tokens proposed.
"""

import sys
import time
from types import SimpleNamespace

import numpy as np
from vllm.v1.spec_decode.ngram_proposer import NgramProposer

SHORTEST, LONGEST = 2, 5  # tokens of an n-gram, as bench/engines.py has it


def proposer(requests: int, longest_text: int, chain: int) -> NgramProposer:
    """What an engine with this configuration makes; compiles."""
    return NgramProposer(
        SimpleNamespace(
            speculative_config=SimpleNamespace(
                prompt_lookup_min=SHORTEST, prompt_lookup_max=LONGEST, num_speculative_tokens=chain
            ),
            model_config=SimpleNamespace(max_model_len=longest_text),
            scheduler_config=SimpleNamespace(max_num_seqs=requests),
            parallel_config=SimpleNamespace(tensor_parallel_size=1),
        )
    )


def main(text_file: str, context: int, chain: int) -> None:
    text = np.ascontiguousarray(np.load(text_file)["text"])
    ngram = proposer(*text.shape, chain)
    tokens = np.zeros_like(text)  # as an engine has it: what is known so far
    tokens[:, :context] = text[:, :context]
    length = np.full(len(text), context, np.int32)
    ngram.propose(chain, [[0]] * len(text), length, tokens)  # compiles for batches that are not empty
    print("ready", flush=True)
    for line in sys.stdin:
        emitted = [int(word) for word in line.split()]
        sampled = []
        for request, count in enumerate(emitted):
            end = length[request] + count
            sampled.append(text[request, length[request] : end].tolist())
            tokens[request, length[request] : end] = sampled[-1]
            length[request] = end
        started = time.perf_counter_ns()
        drafts = ngram.propose(chain, sampled, length, tokens)
        print((time.perf_counter_ns() - started) / 1000, sum(map(len, drafts)), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
