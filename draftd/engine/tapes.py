"""The windows of text that go out beside the drafts of a step."""

from draftd import native
from draftd.wire import DraftTape, VerifyCommit


def fill_tape(tape: DraftTape, commit: VerifyCommit, tapes: native.Tapes) -> None:
    """All columns."""
    tape.request = commit.request
    tape.epoch = commit.epoch
    tape.window_end = tapes.window_end
    tape.token_end = tapes.token_end
    tape.tokens = tapes.tokens
    tape.corpus = tapes.corpus
    tape.version = tapes.version
    tape.news = tapes.news
    tape.reader = tapes.reader
    tape.reader_epoch = tapes.reader_epoch
    tape.reads = tapes.reads
    tape.reads_version = tapes.reads_version
