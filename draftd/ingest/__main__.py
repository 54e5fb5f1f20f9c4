"""The loader process: one job on standard input, one outcome on standard output."""

import sys
from contextlib import suppress
from pathlib import Path

from draftd.ingest.job import Job, LoadJob, Outcome
from draftd.ingest.problem import IngestError
from draftd.ingest.work import describe, load


def main() -> None:
    # If memory runs out, the kernel should end this process and not the server.
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("500")
    job = Job.model_validate_json(sys.stdin.buffer.read()).job
    try:
        outcome = Outcome(result=load(job) if isinstance(job, LoadJob) else describe(job))
    except IngestError as error:
        outcome = Outcome(problem=str(error))
    print(outcome.model_dump_json())


if __name__ == "__main__":
    main()
