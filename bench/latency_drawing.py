"""Latencies by percentile, as one SVG."""

from collections.abc import Mapping
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from bench.open_loop import Latencies
from draftd.replay.drawing import STYLE

NINES = 3  # 99.9 %: beyond it a run of some seconds has single steps


def draw(named: Mapping[str, Latencies], file: Path) -> None:
    """Each a curve. Every nine of the percentile takes the same width, so that the slow steps can be seen."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(8, 4.5), layout="constrained")
        axes = figure.subplots()
        one_in = np.geomspace(1, 10**NINES, 200)
        for name, latencies in named.items():
            milliseconds = [latencies.percentile(100 * (1 - 1 / steps)) / 1000 for steps in one_in]
            axes.plot(one_in, milliseconds, label=name)
        nines = [10**nine for nine in range(NINES + 1)]
        axes.set_xscale("log")
        axes.set_xticks(nines, [f"{100 * (1 - 1 / steps):g} %" for steps in nines])
        axes.set(xlabel="of the steps", ylabel="done so many ms after they were due", ylim=(0, None))
        axes.legend(frameon=False)
        figure.savefig(file, format="svg", metadata={"Date": None})
