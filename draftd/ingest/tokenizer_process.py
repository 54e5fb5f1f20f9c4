"""A tokenizer in a process of its own, so that it never holds the lock of the one that drafts."""

import os
import pickle
import subprocess
import sys
from array import array
from collections.abc import Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

from draftd.ingest.job import KnownTokenizer
from draftd.ingest.problem import IngestError


class TokenizerProcess:
    """Lives until it is closed. When the process that started it dies, it reads the end of its input and ends too.

    Calls raise IngestError when the tokenizer can't be used, RuntimeError when the process died."""

    def __init__(self, known: KnownTokenizer, *, niceness: int = 0) -> None:
        """`niceness`: by how much others go first, more than this process lets them."""
        alone = {"RAYON_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
        program = [sys.executable, "-P", "-m", "draftd.ingest.use_tokenizer", str(known.path), known.fingerprint]
        self._process = subprocess.Popen(
            ["nice", "-n", str(niceness), *program],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=os.environ | alone,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.kill()
        self.close()

    def encode(self, texts: Sequence[str]) -> list[bytes]:
        """Token ids of each as packed int32."""
        encoded: list[bytes] = self._asked(list(texts))
        return encoded

    def spell(self, ids: Sequence[int]) -> list[str]:
        """What each id, which must be of the vocabulary, stands for in the middle of a text."""
        spelt: list[str] = self._asked(array("i", ids))
        return spelt

    def _asked(self, question: "list[str] | array[int]") -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            pickle.dump(question, self._process.stdin)
            self._process.stdin.flush()
            answer = pickle.load(self._process.stdout)
        except (EOFError, BrokenPipeError, pickle.UnpicklingError):
            raise RuntimeError("a tokenizer process died; is there enough memory?") from None
        if isinstance(answer, IngestError):
            raise answer
        return answer

    def kill(self) -> None:
        self._process.kill()

    def close(self) -> None:
        with suppress(BrokenPipeError), self._process:  # something may be left that it didn't read
            pass
