"""Latencies by percentile, as one SVG."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from bench.open_loop import Latencies

NINES = 3  # 99.9 %: beyond it a run of some seconds has single steps
_STYLE: dict[Any, Any] = {
    "svg.hashsalt": "draftd",  # the same figures are the same bytes
    "svg.fonttype": "none",  # text stays text
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e4e4e4",
    "axes.axisbelow": True,
}


def draw(named: Mapping[str, Latencies], file: Path) -> None:
    """Each a curve. Every nine of the percentile takes the same width, so that the slow steps can be seen."""
    with mpl.rc_context(_STYLE):
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
