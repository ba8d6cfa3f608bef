"""Draws the pictures of docs/concepts/gpu.md.

    python docs/concepts/figures/draw_gpu.py

The scores of the query profile are those of BLOSUM62; everything else is a sketch, smaller than what
the kernels compute.
"""

from __future__ import annotations

from typing import Final

from matplotlib.axes import Axes
from matplotlib.patches import Polygon, Rectangle
from theme import (
    BLUE,
    FAINT,
    GREEN,
    INK,
    ORANGE,
    PALE,
    PALE_BLUE,
    PALE_GREEN,
    PALE_ORANGE,
    new_figure,
    save,
)

from swsearch.scoring.scheme import default_scheme
from swsearch.sequences.alphabet import PROTEIN

LENGTHS: Final = (15, 14.6, 14.3, 14, 13, 12.8, 12.7, 12.5, 9, 8.8, 8.7, 8.6, 5, 4.9, 4.7, 4.6)
"""Lengths of the subjects of the first picture, in the order in which they are taken."""
QUERY: Final = "MKVLAWGE"
SUBJECT: Final = "GWKA"
ROWS_SHOWN: Final = "ARNDCQEGHILKMFPSTWYV"


def canvas(width: float, height: float, columns: float, rows: float) -> tuple[Axes, object]:
    """Axes without scales, from (0, 0) at the upper left to (columns, rows)."""
    figure = new_figure(width, height)
    axes = figure.add_subplot(xlim=(0, columns), ylim=(rows, 0))
    axes.set_axis_off()
    return axes, figure


def box(
    axes: Axes, x: float, y: float, width: float, height: float, face: str, edge: str = INK, line: float = 0.8
) -> None:
    """A rectangle whose upper left corner is (x, y)."""
    axes.add_patch(Rectangle((x, y), width, height, facecolor=face, edgecolor=edge, linewidth=line))


def arrow(axes: Axes, start: tuple[float, float], end: tuple[float, float], colour: str = INK) -> None:
    """An arrow."""
    axes.annotate("", xy=end, xytext=start, arrowprops={"arrowstyle": "->", "color": colour, "linewidth": 1.4})


def inter_task() -> None:
    """Subjects in descending order of length, taken by the groups of lanes of two warps."""
    axes, figure = canvas(7, 4.6, 44, 29)
    axes.text(0, 1, "database, longest first", weight="bold")
    for number, length in enumerate(LENGTHS):
        taken = number < 8
        box(axes, 0, 2 + 1.45 * number, length, 1, (PALE_BLUE if number < 4 else PALE_GREEN) if taken else PALE)
    axes.text(0, 27.5, "subjects not yet taken are grey", fontsize=9.5)
    for warp, (top, face, colour) in enumerate(((2, PALE_BLUE, BLUE), (15.5, PALE_GREEN, GREEN))):
        axes.text(22, top - 1, f"warp {warp + 1}: four groups of lanes", weight="bold", color=colour)
        for group in range(4):
            y = top + 2.9 * group
            length = LENGTHS[4 * warp + group]
            axes.text(
                21.6,
                y + 1.1,
                f"group {group + 1}",
                horizontalalignment="right",
                verticalalignment="center",
                fontsize=9.5,
            )
            box(axes, 22, y, length, 2.2, face)
            for lane in range(1, 4):
                axes.plot((22, 22 + length), (y + 0.55 * lane,) * 2, color=colour, linewidth=0.5)
            for lane in range(4):  # a lane is one column behind the lane above it
                box(axes, 22 + 7 - lane, y + 0.55 * lane, 1, 0.55, ORANGE, ORANGE)
        arrow(axes, (16.2, 5 if warp == 0 else 11), (18.2, top + 5.5), colour)
    axes.text(22, 27.5, "columns of the subject →; orange: computed now", fontsize=9.5)
    axes.text(37.8, 2, "query rows,\nsome for\neach lane", fontsize=9.5, verticalalignment="top")
    save(figure, "inter-task", "Each group of lanes aligns the query with a subject of its own")


def profile() -> None:
    """The query profile: a row of scores for each residue, of which a subject's residue chooses one."""
    axes, figure = canvas(7, 4.4, 40, 25)
    scores = default_scheme(PROTEIN).matrix.scores
    codes = {letter: int(PROTEIN.encode(letter)[0]) for letter in ROWS_SHOWN}
    chosen = SUBJECT[1]
    axes.text(12, 0.8, "query profile (BLOSUM62)", weight="bold")
    for column, letter in enumerate(QUERY):
        axes.text(13 + 2 * column, 2.6, letter, horizontalalignment="center", weight="bold")
    for row, residue in enumerate(ROWS_SHOWN):
        y = 3.2 + 1.05 * row
        axes.text(11.4, y + 0.53, residue, horizontalalignment="right", verticalalignment="center", fontsize=9)
        for word in range(len(QUERY) // 4):
            box(axes, 12 + 8 * word, y, 8, 1.05, PALE_ORANGE if residue == chosen else "none", FAINT)
        for column, letter in enumerate(QUERY):
            axes.text(
                13 + 2 * column, y + 0.55, f"{int(scores[codes[residue], codes[letter]])}".replace("-", "−"),
                horizontalalignment="center", verticalalignment="center", fontsize=8.5,
                weight="bold" if residue == chosen else "normal",
            )  # fmt: skip
    axes.text(0, 0.8, "subject", weight="bold")
    for place, letter in enumerate(SUBJECT):
        box(axes, 2 * place, 2.4, 2, 2, PALE_ORANGE if letter == chosen else PALE)
        axes.text(2 * place + 1, 3.4, letter, horizontalalignment="center", verticalalignment="center")
    y = 3.2 + 1.05 * ROWS_SHOWN.index(chosen) + 0.5
    axes.plot((3, 3), (4.4, y), color=ORANGE, linewidth=1.4)
    arrow(axes, (3, y), (10.2, y), ORANGE)
    for word, top in enumerate((5, 14)):
        arrow(axes, (28.2, y), (31.6, top + 2.6), ORANGE)
        box(axes, 31.8, top, 8, 5, PALE_BLUE)
        first = 4 * word + 1
        axes.text(
            35.8,
            top + 2.5,
            f"lane {word + 1}\nrows {first}–{first + 3}",
            horizontalalignment="center",
            verticalalignment="center",
        )
    save(
        figure,
        "profile",
        "A residue of the subject chooses a row of the query profile, and each lane reads its part of it",
    )


def diamonds() -> None:
    """A matrix in strips of rows and diamonds of columns: finished, running and waiting."""
    axes, figure = canvas(7, 4.2, 56, 27)
    colours = {"finished": (PALE, FAINT), "running": (PALE_ORANGE, ORANGE), "waiting": ("none", FAINT)}
    lanes, steps, strips = 4, 12, 4
    axes.text(4, 1.6, "columns of the subject →")
    axes.text(1, 15, "rows of the query", rotation=90, verticalalignment="center")
    for strip in range(strips):
        for tile in range(6):
            left, top = 4 + steps * tile, 3 + 1.2 * lanes * strip
            lean = 2 * lanes  # each lane is two columns behind the lane above it
            corners = [
                (left, top),
                (left + steps, top),
                (left + steps - lean, top + 1.2 * lanes),
                (left - lean, top + 1.2 * lanes),
            ]
            border = [(min(max(x, 4), 52), y) for x, y in corners]
            if len(set(border)) < 3:
                continue
            order = tile + 2 * strip
            state = "finished" if order < 5 else "running" if order == 5 else "waiting"
            if border[0][0] >= 52 and border[3][0] >= 52:
                continue
            axes.add_patch(Polygon(border, facecolor=colours[state][0], edgecolor=colours[state][1], linewidth=1.2))
            if state == "running":
                for lane in range(lanes):
                    x = left + steps / 2 - 2 * lane
                    if 4 <= x < 51.5:
                        box(axes, x, top + 1.2 * lane + 0.1, 1, 1, ORANGE, ORANGE)
    box(axes, 4, 3, 48, 1.2 * lanes * strips, "none", INK, 1.4)
    axes.text(52.6, 5.4, "strip 1", verticalalignment="center", fontsize=9.5)
    for strip in range(1, strips):
        axes.text(52.6, 5.4 + 1.2 * lanes * strip, f"strip {strip + 1}", verticalalignment="center", fontsize=9.5)
    for place, (state, (face, edge)) in enumerate(colours.items()):
        box(axes, 4 + 12 * place, 24, 1.6, 1.6, face, edge, 1.2)
        axes.text(6.2 + 12 * place, 24.8, state, verticalalignment="center")
    box(axes, 40, 24.3, 1, 1, ORANGE, ORANGE)
    axes.text(41.8, 24.8, "computed now", verticalalignment="center")
    save(
        figure,
        "diamonds",
        "The matrix of two long sequences is cut into diamonds, of which several are computed at a time",
    )


def bound() -> None:
    """The same column of cells, exact and in bands of four rows, and what happens to a subject."""
    axes, figure = canvas(7, 4.4, 56, 35)
    for left, title, band, face, colour in (
        (0, "exact: E and F in every row", 1, PALE_BLUE, BLUE),
        (20, "bound: one E for four rows", 4, PALE_ORANGE, ORANGE),
    ):
        axes.text(left, 1.6, title, weight="bold", fontsize=10)
        for row in range(12):
            box(axes, left + 5, 4 + 2 * row, 5, 2, PALE)
            axes.text(
                left + 7.5,
                5 + 2 * row,
                "H" if band == 1 else "K",
                horizontalalignment="center",
                verticalalignment="center",
                fontsize=9,
            )
        for first in range(0, 12, band):
            y, height = 4 + 2 * first, 2 * band
            box(axes, left, y, 3.6, height, face, colour)
            axes.text(
                left + 1.8, y + height / 2, "E", horizontalalignment="center", verticalalignment="center", fontsize=9
            )
            if first:
                arrow(axes, (left + 12, y - 1), (left + 12, y + 1), colour)
                axes.text(left + 12.8, y, "F", verticalalignment="center", fontsize=9)
        axes.text(left + 5, 30.2, "K ≥ H in every cell" if band > 1 else "the score itself", fontsize=10)
    axes.text(40, 1.6, "each subject", weight="bold", fontsize=10)
    box(axes, 40, 4, 15, 5.5, PALE_ORANGE, ORANGE)
    axes.text(47.5, 6.75, "bound", horizontalalignment="center", verticalalignment="center")
    arrow(axes, (47.5, 9.5), (47.5, 14.2))
    axes.text(46.8, 11.8, "below the floor", verticalalignment="center", horizontalalignment="right", fontsize=9)
    arrow(axes, (54, 9.5), (54, 23.4))
    axes.text(53.4, 20.9, "else", verticalalignment="center", horizontalalignment="right", fontsize=9)
    box(axes, 40, 14.5, 12, 4.5, PALE_GREEN, GREEN)
    axes.text(46, 16.75, "no hit, proved", horizontalalignment="center", verticalalignment="center", fontsize=9.5)
    box(axes, 40, 23.7, 15, 5.5, PALE_BLUE, BLUE)
    axes.text(47.5, 26.45, "exact score", horizontalalignment="center", verticalalignment="center")
    save(figure, "bound", "A bound that is cheaper than the score proves for most subjects that they are not hits")


def main() -> None:
    """Write all pictures."""
    inter_task()
    profile()
    diamonds()
    bound()


if __name__ == "__main__":
    main()
