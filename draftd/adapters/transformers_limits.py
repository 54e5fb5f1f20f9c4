"""What transformers' `generate` can be asked for and DraftdDecoding can't do."""

import reprlib
from collections.abc import Sequence
from typing import Any

from torch import Tensor
from transformers import GenerationConfig, LogitsProcessorList, PreTrainedModel
from transformers.generation import (
    EncoderNoRepeatNGramLogitsProcessor,
    EncoderRepetitionPenaltyLogitsProcessor,
    GenerationMode,
    PrefixConstrainedLogitsProcessor,
    SynthIDTextWatermarkLogitsProcessor,
    UnbatchedClassifierFreeGuidanceLogitsProcessor,
)

BASE_MODEL = "__base__"  # what peft calls a row without LoRA weights
UNSUPPORTED_OUTPUTS = ("output_scores", "output_logits", "output_attentions", "output_hidden_states")
UNSUPPORTED_INPUTS = ("inputs_embeds", "token_type_ids", "mm_token_type_ids", "encoder_outputs")
# They know their rows by place, or hold something of each; here they are called with one row at a time.
OF_THE_WHOLE_BATCH = {
    "encoder_no_repeat_ngram_size": EncoderNoRepeatNGramLogitsProcessor,
    "encoder_repetition_penalty": EncoderRepetitionPenaltyLogitsProcessor,
    "prefix_allowed_tokens_fn": PrefixConstrainedLogitsProcessor,
    "SynthID's watermarking_config": SynthIDTextWatermarkLogitsProcessor,
}


def refuse_mistaken(rows: int, adapters: Any, group: Any) -> None:
    """Raises TypeError or ValueError for arguments that can't be meant."""
    if not rows:
        raise ValueError("input_ids has no rows; give at least one")
    if not isinstance(group, str):
        raise TypeError(f"group is {reprlib.repr(group)}; name it by a string, or leave it out")
    if adapters is None:
        return
    listed = isinstance(adapters, Sequence) and not isinstance(adapters, str)
    if not listed or not all(isinstance(name, str) for name in adapters):
        raise TypeError(
            f"adapters is {reprlib.repr(adapters)}; give a list with a name for each row, {BASE_MODEL!r} for no weights"
        )
    if len(adapters) != rows:
        raise ValueError(f"adapters names the weights of {len(adapters)} rows; the batch has {rows}")


def refuse_unsupported(
    model: PreTrainedModel,
    input_ids: Tensor,
    processors: LogitsProcessorList,
    config: GenerationConfig,
    model_inputs: dict[str, Any],
) -> None:
    """Raises ValueError, which names the first thing that this method can't do."""
    mode = config.get_generation_mode()
    positions = model_inputs.get("position_ids")
    kinds = {type(processor) for processor in processors}
    several = len(input_ids) > 1
    problems = {
        "a model with an encoder": model.config.is_encoder_decoder,
        f"generation mode {mode.value}": mode not in (GenerationMode.GREEDY_SEARCH, GenerationMode.SAMPLE),
        "use_cache=False": model_inputs.get("past_key_values") is None,
        "guidance_scale": UnbatchedClassifierFreeGuidanceLogitsProcessor in kinds,
        "position_ids of another shape than input_ids": positions is not None
        and (positions.dim() != 2 or positions.shape[1] != input_ids.shape[1]),
        **{f"{name} for more than one row": several and kind in kinds for name, kind in OF_THE_WHOLE_BATCH.items()},
        **{name: getattr(config, name) for name in UNSUPPORTED_OUTPUTS},
        **{name: model_inputs.get(name) is not None for name in UNSUPPORTED_INPUTS},
    }
    for name, is_so in problems.items():
        if is_so:
            raise ValueError(f"DraftdDecoding can't do {name}; call generate without custom_generate")
