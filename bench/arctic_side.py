"""The side of bench/arctic.py that runs in ArcticInference's own virtual environment; knows nothing of draftd.

    python arctic_side.py TEXT.npz CONTEXT

TEXT.npz has `text`, int32[requests, tokens]: CONTEXT tokens are each request's prompt, the rest comes step by step.
Each line of standard input has one number per request: the tokens it emitted. Answers with a line: microseconds of the
updates, microseconds of the drafts; processor time, so that whatever else the machine does is not held against it.
"""

import sys
import time

import numpy as np
from arctic_inference.suffix_decoding import SuffixDecodingCache

CHAIN = 32  # tokens, and everything else as ArcticInference has it by default
DEPTH = 64  # tokens of context that it matches


def main(text_file: str, context: int) -> None:
    text = np.ascontiguousarray(np.load(text_file)["text"])
    cache = SuffixDecodingCache()
    for request, tokens in enumerate(text):
        cache.start_request(request, tokens[:context])
    length = [context] * len(text)
    print("ready", flush=True)
    for line in sys.stdin:
        emitted = [int(word) for word in line.split()]
        started = time.thread_time_ns()
        for request, count in enumerate(emitted):
            cache.add_active_response(request, text[request, length[request] : length[request] + count])
            length[request] += count
        updated = time.thread_time_ns()
        for request, end in enumerate(length):
            cache.speculate(request, text[request, end - DEPTH : end], max_spec_tokens=CHAIN)
        drafted = time.thread_time_ns()
        print((updated - started) / 1000, (drafted - updated) / 1000, flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
