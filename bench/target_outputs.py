"""SmolLM2's own greedy outputs, as a recording: what a drafter for it learns from and is judged by.

The prompts are the questions of the corpus that comes with draftd, grade-school mathematics, as a chat has them.
"""

import gzip
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from mistral_common.tokens.tokenizers.tekken import Tekkenizer

from bench.engine_prompts import RECORDED
from bench.text import corpus_documents
from draftd.demo.sample import SAMPLE_CORPUS

AT_ONCE = 32  # prompts of a batch

Prompt = list[int]


def questions() -> list[str]:
    """Of the corpus' documents, which are a question and its answer below."""
    recorded = Tekkenizer.from_file(str(RECORDED))
    return [recorded.decode(document.tolist()).splitlines()[0] for document in corpus_documents(SAMPLE_CORPUS)]


def chat_prompt(tokenizer: Any, question: str) -> Prompt:
    messages = [{"role": "user", "content": question}]
    ids: Prompt = tokenizer.apply_chat_template(messages, add_generation_prompt=True, return_dict=False)
    return ids


def greedy_outputs(
    model: Any, tokenizer: Any, prompts: Sequence[Prompt], most_tokens: int
) -> Iterator[tuple[Prompt, list[int]]]:
    """Each prompt with what the model says to it: at most so many tokens, up to the first stop token and with it."""
    for first in range(0, len(prompts), AT_ONCE):
        batch = prompts[first : first + AT_ONCE]
        width = max(map(len, batch))
        stop = tokenizer.eos_token_id
        ids = torch.tensor([[stop] * (width - len(prompt)) + prompt for prompt in batch])
        there = torch.tensor([[0] * (width - len(prompt)) + [1] * len(prompt) for prompt in batch])
        with torch.inference_mode():
            said = model.generate(
                ids, attention_mask=there, max_new_tokens=most_tokens, do_sample=False, pad_token_id=stop
            )
        for prompt, output in zip(batch, said[:, width:].tolist(), strict=True):
            yield prompt, output[: output.index(stop) + 1] if stop in output else output


def write_recording(file: Path, outputs: Iterator[tuple[Prompt, list[int]]]) -> None:
    """A file that `draftd replay` reads, too; it is whole, or not there."""
    unfinished = file.with_suffix(".unfinished")
    with gzip.open(unfinished, "wt", encoding="utf-8") as lines:
        for number, (prompt, output) in enumerate(outputs):
            record = {"id": str(number), "prompt_token_ids": prompt, "output_token_ids": output}
            lines.write(json.dumps(record) + "\n")
    unfinished.rename(file)
