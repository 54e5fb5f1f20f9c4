"""The server's side of the loader process.

Parsing and tokenizing hold Python's lock for long stretches, which would stop the step path; a process of its
own, of low priority, does not, gives its memory back when it ends, and takes nothing with it when it dies.
"""

import os
import subprocess
import sys
import threading

from draftd.ingest.job import Described, DescribeJob, Job, Loaded, LoadJob, Outcome
from draftd.ingest.problem import IngestError

NICENESS = 10  # steps of drafting go first


class LoaderError(RuntimeError):
    """The loader process died: a defect, too little memory, or the server is stopping."""


class Loader:
    """Runs jobs, each in a process of its own. Calls block; threads may call at once."""

    def __init__(self, threads: int) -> None:
        """`threads`: how many a tokenizer may use."""
        # Of the processes it starts.
        self.environment = os.environ | {"RAYON_NUM_THREADS": str(threads), "TOKENIZERS_PARALLELISM": "true"}
        self._running: set[subprocess.Popen[bytes]] = set()
        self._closed = False
        self._lock = threading.Lock()

    def load(self, job: LoadJob) -> Loaded:
        """Raises IngestError or LoaderError."""
        result = self._run(job)
        assert isinstance(result, Loaded)
        return result

    def describe(self, job: DescribeJob) -> Described:
        """Raises IngestError or LoaderError."""
        result = self._run(job)
        assert isinstance(result, Described)
        return result

    def close(self) -> None:
        """Ends what runs; its callers get LoaderError."""
        with self._lock:
            self._closed = True
            for process in self._running:
                process.kill()

    def _run(self, job: LoadJob | DescribeJob) -> Loaded | Described | None:
        process = self._start()
        try:
            output, errors = process.communicate(Job(job=job).model_dump_json().encode())
        finally:
            with self._lock:
                self._running.discard(process)
        if process.returncode != 0:
            raise LoaderError(self._why(process.returncode, errors))
        outcome = Outcome.model_validate_json(output)
        if outcome.problem is not None:
            raise IngestError(outcome.problem)
        return outcome.result

    def _start(self) -> subprocess.Popen[bytes]:
        with self._lock:
            if self._closed:
                raise LoaderError("the server is stopping")
            process = subprocess.Popen(
                ["nice", "-n", str(NICENESS), sys.executable, "-P", "-m", "draftd.ingest"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=self.environment,
            )
            self._running.add(process)
            return process

    def _why(self, returncode: int, errors: bytes) -> str:
        if self._closed:
            return "the server is stopping"
        if returncode < 0:
            return f"the loader process was killed by signal {-returncode}; is there enough memory?"
        last = errors.decode(errors="replace").strip().rpartition("\n")[2]
        return f"the loader process failed: {last or returncode}"
