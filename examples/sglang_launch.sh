#!/bin/sh
# SGLang with drafts from draftd: one argument. Needs `pip install draftd` where SGLang is installed, and a GPU.
#
#   draftd serve &
#   examples/sglang_launch.sh --model-path meta-llama/Llama-3.1-8B-Instruct
#
# draftd elsewhere, or not the default tenant: DRAFTD_ADAPTER_ENDPOINT=tcp://HOST:PORT, DRAFTD_ADAPTER_TENANT=acme.
# The tree's width, its root included, is --speculative-num-draft-tokens (12); chains: --speculative-ngram-max-bfs-breadth 1.
exec python -m sglang.launch_server --speculative-algorithm DRAFTD "$@"
