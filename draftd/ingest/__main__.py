"""The loader process: one job on standard input, one outcome on standard output."""

import sys

from draftd.ingest.job import Job, LoadJob, Outcome
from draftd.ingest.problem import IngestError
from draftd.ingest.work import describe, load


def main() -> None:
    job = Job.model_validate_json(sys.stdin.buffer.read()).job
    try:
        outcome = Outcome(result=load(job) if isinstance(job, LoadJob) else describe(job))
    except IngestError as error:
        outcome = Outcome(problem=str(error))
    print(outcome.model_dump_json())


if __name__ == "__main__":
    main()
