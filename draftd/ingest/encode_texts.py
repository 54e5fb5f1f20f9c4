"""The process that tokenizes: lists of texts on standard input, lists of packed int32 token ids on standard output."""

import pickle
import sys
from array import array
from contextlib import suppress
from pathlib import Path

from draftd.ingest.problem import IngestError
from draftd.ingest.tokenizers import Tokenizer, open_tokenizer


def main() -> None:
    path, fingerprint = sys.argv[1:]
    with suppress(EOFError, BrokenPipeError):  # who asked has gone
        try:
            tokenizer = _opened(Path(path), fingerprint)
        except IngestError as error:
            pickle.load(sys.stdin.buffer)
            _say(error)
            return
        while True:
            texts = pickle.load(sys.stdin.buffer)
            _say([array("i", ids).tobytes() for ids in tokenizer.encode(texts)])


def _opened(path: Path, fingerprint: str) -> Tokenizer:
    tokenizer = open_tokenizer(path)
    if tokenizer.fingerprint != fingerprint:
        raise IngestError(
            f"tokenizer {path} changed from {fingerprint} to {tokenizer.fingerprint} while the server runs; restart it"
        )
    return tokenizer


def _say(answer: list[bytes] | IngestError) -> None:
    pickle.dump(answer, sys.stdout.buffer)
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
