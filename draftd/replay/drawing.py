"""How far survival can be trusted, and how deep drafts are accepted, as one SVG."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from draftd.replay.calibration import BUCKETS, Calibration
from draftd.replay.positions import Positions
from draftd.replay.result import ReplayResult
from draftd.replay.runner import ReplayError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

INSTALL = "install it with: pip install 'draftd[plots]'"
DEPTHS = 16  # drawn; deeper nodes are few

# Of workloads, in their order: as many as anyone can tell apart.
_COLOURS = [
    *("#1f77b4", "#ff7f0e", "#2ca02c", "#d62728", "#9467bd", "#8c564b", "#e377c2"),
    *("#17becf", "#bcbd22", "#7f7f7f", "#aec7e8", "#ffbb78", "#98df8a", "#ff9896"),
]
STYLE: dict[Any, Any] = {
    "axes.prop_cycle": f"cycler('color', {_COLOURS})",
    "svg.hashsalt": "draftd",  # the same figures are the same bytes
    "svg.fonttype": "none",  # text stays text
    "text.parse_math": False,  # dollars in names of files
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e4e4e4",
    "axes.axisbelow": True,
}
_WHOLE, _BARS = "#1f3b73", "#9db4d8"


def require_matplotlib() -> None:
    """Raises ReplayError, which says what to install."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise ReplayError(f"a drawing needs matplotlib; {INSTALL}") from None


def draw(results: Sequence[ReplayResult], file: Path) -> None:
    """A reliability diagram with its node counts, and acceptance by depth, of each workload and of all together.

    Raises ReplayError if matplotlib is not installed, no node states a survival, or the file can't be written.
    """
    require_matplotlib()
    import matplotlib as mpl
    from matplotlib.figure import Figure

    calibration = Calibration.pooled(result.calibration for result in results)
    if not calibration.nodes:
        raise ReplayError("nothing to draw: no drafted node states a survival")
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(10, 6.2), layout="constrained")
        axes = figure.subplots(2, 2, sharex="col", height_ratios=(4, 1))
        _draw_reliability(axes[0, 0], axes[1, 0], results, calibration)
        _draw_depths(axes[0, 1], axes[1, 1], results, Positions.pooled(result.positions for result in results))
        handles, labels = axes[0, 0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=5, frameon=False)
        try:
            figure.savefig(file, format="svg", metadata={"Date": None})
        except OSError as error:
            raise ReplayError(f"the drawing cannot be written: {error}") from error


def _draw_reliability(
    curves: "Axes", counts: "Axes", results: Sequence[ReplayResult], calibration: Calibration
) -> None:
    curves.set_title(f"Calibration error {calibration.error:.3f} over all nodes")
    curves.plot([0, 1], [0, 1], color="#888888", linestyle="--", linewidth=1, label="exactly as stated")
    if len(results) > 1:
        for result in results:
            of_workload = result.calibration
            curves.plot(of_workload.mean_survival, of_workload.accepted_share, linewidth=0.9, label=result.workload)
    name = "all nodes" if len(results) > 1 else results[0].workload
    curves.plot(calibration.mean_survival, calibration.accepted_share, "o-", color=_WHOLE, markersize=4, label=name)
    curves.set(ylabel="share accepted", xlim=(0, 1), ylim=(0, 1))
    middles = (np.arange(BUCKETS) + 0.5) / BUCKETS
    counts.bar(middles, calibration.bucket_nodes, width=0.9 / BUCKETS, color=_BARS)
    counts.set(xlabel="stated survival", ylabel="nodes", yscale="log")


def _draw_depths(curves: "Axes", counts: "Axes", results: Sequence[ReplayResult], positions: Positions) -> None:
    steps = sum(result.steps for result in results)
    curves.set_title("Steps that accept at least so many drafted tokens")
    if len(results) > 1:
        for result in results:
            _draw_accepted(curves, result.positions, result.steps, linewidth=0.9)
    _draw_accepted(curves, positions, steps, color=_WHOLE, marker="o", markersize=4)
    curves.set(ylabel="share of steps", xlim=(0.4, DEPTHS + 0.6), ylim=(0, 1))
    nodes = positions.nodes[:DEPTHS]
    counts.bar(range(1, len(nodes) + 1), [count / steps for count in nodes], width=0.9, color=_BARS)
    counts.set(xlabel="position after the committed text, tokens", ylabel="nodes\nper step")


def _draw_accepted(curves: "Axes", positions: Positions, steps: int, **style: Any) -> None:
    accepted = positions.accepted_steps[:DEPTHS]
    # Each curve takes the next colour of the cycle, as its workload did in the diagram beside it.
    curves.plot(range(1, len(accepted) + 1), [count / steps for count in accepted], **style)
