"""Slow, readable twins of the native core.

They are the oracle of the tests and the best place to read what the core means: `index` is the live index, `session`
the life of one request, `draft` the recipe that turns evidence into a tree, `engine` all of them together.
"""
