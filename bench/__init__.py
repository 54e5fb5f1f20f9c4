"""Measurements. Each module runs by itself: `python -m bench.index --help`."""
