"""Makes draftd/demo/traces, the recorded traffic that draftd carries along, from the full recordings.

    python bench/make_sample.py --traces DIR --corpus gsm8k_train.npz

Small files of permissive licence are taken whole; agent files are cut after a number of whole sessions, in order.
draftd/demo/traces/README.md states source and licence of each file. The result is the same bytes on every run.
"""

import argparse
import gzip
import itertools
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np

SAMPLE = Path(__file__).resolve().parent.parent / "draftd" / "demo" / "traces"
SIZE_LIMIT = 2_000_000  # bytes, everything in the folder together

# Sessions kept of each recording; None keeps all of them.
SESSIONS: dict[str, int | None] = {
    "agent_swe": 2,
    "agent_tau_airline": 22,
    "code_edit_swe": 30,
    "math_gsm8k_multi": None,
    "math_tool_tora": None,
    "rl_code_humaneval": None,
    "rl_game24": None,
    "rl_writing_cot": None,
    "rl_writing_standard": None,
    "specbench_math": None,
    "specbench_mtbench": None,
}
CORPUS_DOCUMENTS = 1000


def first_sessions(recording: Path, sessions: int | None) -> Iterator[bytes]:
    """The lines of the first `sessions` runs of one group. Lines are copied as they are."""
    with gzip.open(recording, "rb") as lines:
        runs = itertools.groupby(lines, key=lambda line: json.loads(line)["group"])
        for _, run in itertools.islice(runs, sessions):
            yield from run


def write_sample(recording: Path, sessions: int | None) -> None:
    content = b"".join(first_sessions(recording, sessions))
    (SAMPLE / recording.name).write_bytes(gzip.compress(content, compresslevel=9, mtime=0))


def write_corpus(source: Path) -> None:
    with np.load(source) as corpus:
        offsets = corpus["doc_offsets"][: CORPUS_DOCUMENTS + 1]
        tokens = corpus["token_ids"][: offsets[-1]]
    np.savez_compressed(SAMPLE / source.name, token_ids=tokens, doc_offsets=offsets)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--traces", type=Path, required=True, help="folder of the full recordings (*.jsonl.gz)")
    parser.add_argument("--corpus", type=Path, required=True, help="gsm8k_train.npz with token_ids and doc_offsets")
    arguments = parser.parse_args()
    SAMPLE.mkdir(parents=True, exist_ok=True)
    for workload, sessions in SESSIONS.items():
        write_sample(arguments.traces / f"{workload}.jsonl.gz", sessions)
    write_corpus(arguments.corpus)
    size = sum(file.stat().st_size for file in SAMPLE.iterdir())
    print(f"{SAMPLE}: {size:,} bytes")
    if size > SIZE_LIMIT:
        raise SystemExit(f"the sample is over its limit of {SIZE_LIMIT:,} bytes: keep fewer sessions")


if __name__ == "__main__":
    main()
