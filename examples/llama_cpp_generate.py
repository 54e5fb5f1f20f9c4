"""llama-cpp-python with drafts from draftd.

    draftd serve                                            # in another terminal
    python examples/llama_cpp_generate.py MODEL.gguf "text to go on with"

What is said once is drafted when it comes again, so run it twice.
"""

import argparse

from llama_cpp import Llama

from draftd.adapters.llama_cpp import DraftdDraftModel


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("text")
    parser.add_argument("--endpoint", help="of draftd; without: that of a `draftd serve` on this machine")
    arguments = parser.parse_args()

    settings = {"endpoint": arguments.endpoint} if arguments.endpoint else {}
    vocabulary_size = Llama(arguments.model, vocab_only=True, verbose=False).n_vocab()
    with DraftdDraftModel(vocabulary_size, max_nodes=8, model=arguments.model, **settings) as drafts:
        llama = Llama(arguments.model, draft_model=drafts, n_ctx=2048, verbose=False)
        completion = llama(arguments.text, max_tokens=128, temperature=0.0)
    print(completion["choices"][0]["text"])


if __name__ == "__main__":
    main()
