"""Causal models of transformers as drafters: weights and key-value memory that a process has once, and drafts for many
texts at a time.

Needs the `models` extra (`pip install 'draftd[models]'`): whatever is wanted is imported from its own file. Knows no
request and no namespace, only texts.
"""
