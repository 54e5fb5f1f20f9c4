"""The process that tokenizes. Each message on its standard input has an answer on its standard output: lists of texts
have packed int32 token ids, arrays of ids have texts."""

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
            question = pickle.load(sys.stdin.buffer)
            if isinstance(question, array):
                _say(tokenizer.spell(question))
            else:
                _say([array("i", ids).tobytes() for ids in tokenizer.encode(question)])


def _opened(path: Path, fingerprint: str) -> Tokenizer:
    tokenizer = open_tokenizer(path)
    if tokenizer.fingerprint != fingerprint:
        raise IngestError(
            f"tokenizer {path} changed from {fingerprint} to {tokenizer.fingerprint} while the server runs; restart it"
        )
    return tokenizer


def _say(answer: list[bytes] | list[str] | IngestError) -> None:
    pickle.dump(answer, sys.stdout.buffer)
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
