"""The loader process: one job on standard input; what becomes of it in lines on standard output."""

import sys
import tempfile
from contextlib import suppress
from pathlib import Path

from draftd.ingest.job import Built, Described, DescribeJob, Job, LoadJob, Refused, SealJob
from draftd.ingest.problem import IngestError, TooLarge
from draftd.ingest.reporting import Reporter
from draftd.ingest.work import describe, load, rebuild, seal


def main() -> None:
    # If memory runs out, the kernel should end this process and not the server.
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("500")
    job = Job.model_validate_json(sys.stdin.buffer.read())
    reporter = Reporter()
    try:
        outcome: Built | Described | Refused = _done(job, reporter)
    except IngestError as error:
        outcome = Refused(problem=str(error), too_large=isinstance(error, TooLarge))
    reporter.say(outcome)


def _done(job: Job, reporter: Reporter) -> Built | Described:
    work = job.job
    if isinstance(work, LoadJob):
        tempfile.tempdir = str(work.result)  # where readers keep what they unpack
        return load(work, job.processes, reporter)
    if isinstance(work, SealJob):
        return seal(work, reporter)
    if isinstance(work, DescribeJob):
        return describe(work)
    return rebuild(work, reporter)


if __name__ == "__main__":
    main()
