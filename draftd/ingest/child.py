"""One loader process, seen from the server."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress

from draftd.ingest.job import Built, Described, Job, Line, Opened, Progress, Refused

NICENESS = 10  # steps of drafting go first


class Child:
    """Waits from its start on for its job, and ends with it."""

    def __init__(self) -> None:
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed by close()
        self._process = subprocess.Popen(
            ["nice", "-n", str(NICENESS), sys.executable, "-P", "-m", "draftd.ingest"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            # numpy's linear algebra is not used; its threads would only make the start longer.
            env=os.environ | {"OPENBLAS_NUM_THREADS": "1"},
        )

    def lives(self) -> bool:
        return self._process.poll() is None

    def work(self, job: Job) -> Iterator[Opened | Progress | Built | Described | Refused]:
        """What it says until it ends."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with suppress(BrokenPipeError):  # it died; its status says why
            self._process.stdin.write(job.model_dump_json().encode())
            self._process.stdin.close()
        for line in self._process.stdout:
            if line.endswith(b"\n"):  # the last one of a process that was killed may be half a line
                yield Line.model_validate_json(line).line
        self._process.wait()

    def failure(self) -> str | None:
        """After its end: why it failed."""
        status = self._process.wait()
        if status == 0:
            return None
        if status < 0:
            return f"the loader process was killed by signal {-status}; is there enough memory?"
        self._errors.seek(0)
        last = self._errors.read().decode(errors="replace").strip().rpartition("\n")[2]
        return f"the loader process failed: {last or status}"

    def kill(self) -> None:
        self._process.kill()

    def close(self) -> None:
        """Ends it, if it has not ended."""
        self._process.kill()
        with suppress(BrokenPipeError), self._process, self._errors:
            pass
