"""draftd: drafts for speculative decoding from suffix indexes, without a draft model."""
