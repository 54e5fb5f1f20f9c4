"""The model that the tests run: SmolLM2-135M-Instruct in float32, as an ordinary model directory.

It comes as a GGUF file in a package. In float32, greedy output does not depend on how many tokens go through at once.
"""

import shutil
from pathlib import Path

MODEL_DIR = Path(__file__).parents[2] / "build/engines/smollm2"
NAME = "smollm2-135m"


def model_directory() -> Path:
    """Made by the first caller. Needs transformers, gguf and accelerate."""
    if not (MODEL_DIR / "config.json").is_file():
        unfinished = MODEL_DIR.with_suffix(".unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        _save(unfinished)
        unfinished.rename(MODEL_DIR)
    return MODEL_DIR


def _save(directory: Path) -> None:
    from draftd.demo.smollm2 import load_smollm2  # needs torch

    model, tokenizer = load_smollm2()
    model.save_pretrained(directory)
    tokenizer.save_pretrained(directory)
