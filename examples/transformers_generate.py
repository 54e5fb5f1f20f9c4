"""Hugging Face transformers with drafts from draftd.

    draftd serve                                            # in another terminal
    python examples/transformers_generate.py MODEL "text to go on with" "another one"

MODEL is a directory or a name that transformers can load. Texts go on together, in one batch; what is said once is
drafted when it comes again, so run it twice.
"""

import argparse
import time

from transformers import AutoModelForCausalLM, AutoTokenizer

from draftd.adapters.transformers import DraftdDecoding


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("texts", nargs="+")
    parser.add_argument("--endpoint", help="of draftd; without: that of a `draftd serve` on this machine")
    arguments = parser.parse_args()

    model = AutoModelForCausalLM.from_pretrained(arguments.model)
    tokenizer = AutoTokenizer.from_pretrained(arguments.model, padding_side="left")
    tokenizer.pad_token = tokenizer.pad_token or tokenizer.eos_token
    inputs = tokenizer(arguments.texts, return_tensors="pt", padding=True)

    settings = {"endpoint": arguments.endpoint} if arguments.endpoint else {}
    with DraftdDecoding(model, max_nodes=8, **settings) as drafts:
        started = time.perf_counter()
        generated = model.generate(**inputs, max_new_tokens=64, do_sample=False, custom_generate=drafts)
        seconds = time.perf_counter() - started
        figures = drafts.requests.figures
    for text in tokenizer.batch_decode(generated, skip_special_tokens=True):
        print(text, end="\n\n")
    print(f"{figures.steps} verify steps, {figures.accepted} of {figures.verified} drafted tokens accepted")
    print(f"{seconds:.1f} s")


if __name__ == "__main__":
    main()
