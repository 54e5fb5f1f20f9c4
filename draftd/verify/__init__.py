"""The reference verifier: a small engine that verifies drafts by any acceptance rule, to read and to measure with.

The rules need numpy alone; the engine needs torch and transformers (`pip install 'draftd[verify]'`), so it is imported
from its own files.
"""
