"""Engines that draft from draftd: one file for each, on top of the client."""
