# SPDX-License-Identifier: GPL-2.0
"""Plots the ratios of the results, each with its range, as SVG."""

from xml.sax import saxutils

WIDTH, LEFT, RIGHT = 760, 220, 90
ROW, HEAD = 20, 44


class Panel:
    """Ratios on a common axis. A row is a label, a ratio, and the ends of its range."""

    def __init__(self, title, rows):
        self.title = title
        self.rows = rows
        values = [1.0] + [value for _, *ratios in rows for value in ratios]
        margin = 0.05 * (max(values) - min(values)) or 0.05
        self._low, self._high = min(values) - margin, max(values) + margin

    def height(self):
        """Return the height in pixels."""
        return HEAD + ROW * len(self.rows)

    def _x(self, value):
        return LEFT + (WIDTH - LEFT - RIGHT) * (value - self._low) / (self._high - self._low)

    def draw(self, top):
        """Yield the SVG elements, starting at y coordinate `top`."""
        one = self._x(1.0)
        yield f'<text x="10" y="{top + 18}" font-weight="bold">{saxutils.escape(self.title)}</text>'
        yield (f'<path d="M{one:.1f} {top + 24}V{top + self.height() - 12}" stroke="#888" '
               'stroke-dasharray="3 3"/>')
        for number, (label, ratio, low, high) in enumerate(self.rows):
            y = top + HEAD - 8 + ROW * number
            colour = "#2a7a2a" if ratio <= 1 else "#b03030"
            yield (f'<text x="{LEFT - 10}" y="{y + 4}" text-anchor="end">'
                   f'{saxutils.escape(label)}</text>')
            yield (f'<path d="M{self._x(low):.1f} {y}H{self._x(high):.1f}" stroke="{colour}" '
                   'stroke-width="2"/>')
            yield f'<circle cx="{self._x(ratio):.1f}" cy="{y}" r="4" fill="{colour}"/>'
            yield f'<text x="{WIDTH - RIGHT + 14}" y="{y + 4}">{ratio:.3f}</text>'


def panels(results):
    """Yield the panels of the plot."""
    found = results.get("instructions", {"loads": [], "steps": []})
    for what, title in (("whole", "Instructions an I/O, the whole machine"),
                        ("own", "Instructions an I/O, the driver's own")):
        yield Panel(f"{title}: rnvmf / nvme-rdma",
                    [(cell["load"], *(cell[what][key] for key in ("ratio", "lowest", "highest")))
                     for cell in found["loads"] if what == "whole" or not cell["polled"]])
    for cost, title in (("kernel", "Instructions of the kernel"), ("time", "Time of the command")):
        yield Panel(f"{title}: rnvmf / nvme-rdma",
                    [(row["step"], *(row[cost][key] for key in ("ratio", "lowest", "highest")))
                     for row in found["steps"]])
    yield Panel("Time an I/O by the host's clock, 95 % confidence: rnvmf / nvme-rdma",
                [(f"{row['load']}, {row['cpus']} CPU", 1 / row["ratio"], 1 / row["high"],
                  1 / row["low"]) for row in results.get("throughput", [])])


def svg(results):
    """Yield the lines of the SVG file."""
    drawn, top = [], 8
    for panel in filter(lambda panel: panel.rows, panels(results)):
        drawn += panel.draw(top)
        top += panel.height() + 12
    yield "<?xml version=\"1.0\"?>"
    yield "<!-- SPDX-License-Identifier: GPL-2.0 -->"
    yield (f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{top}" '
           'font-family="sans-serif" font-size="12">')
    yield f'<rect width="{WIDTH}" height="{top}" fill="#fff"/>'
    yield from drawn
    yield "</svg>"
