"""vLLM with drafts from draftd.

    draftd serve                                            # in another terminal
    python examples/vllm_generate.py MODEL "text to go on with" "another one"

MODEL is a directory or a name that vLLM can load. What is said once is drafted when it comes again, so run it twice.
DRAFTD_ADAPTER_ENDPOINT names another draftd than that of this machine; docs/configuration.md has the other settings.
"""

import argparse

from vllm import LLM, SamplingParams


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("texts", nargs="+")
    parser.add_argument("--max-model-len", type=int, default=1024)
    parser.add_argument("--enforce-eager", action="store_true", help="starts sooner: nothing is compiled")
    arguments = parser.parse_args()

    llm = LLM(
        arguments.model,
        max_model_len=arguments.max_model_len,
        enforce_eager=arguments.enforce_eager,
        disable_log_stats=False,  # its metrics are read below
        speculative_config={
            "method": "custom_class",
            "model": "draftd.adapters.vllm.DraftdProposer",
            "num_speculative_tokens": 8,
        },
    )
    for output in llm.generate(arguments.texts, SamplingParams(temperature=0.0, max_tokens=128)):
        print(output.prompt + output.outputs[0].text, end="\n\n")
    counts = {metric.name: metric.value for metric in llm.get_metrics() if hasattr(metric, "value")}
    accepted, drafted = (counts[f"vllm:spec_decode_num_{what}_tokens"] for what in ("accepted", "draft"))
    print(f"{accepted} of {drafted} drafted tokens accepted")


if __name__ == "__main__":
    main()
