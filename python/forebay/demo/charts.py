"""A little SVG: scales, axes and marks, drawn by hand so that a report needs no network and no
library. Colours are CSS variables of the page, so that pictures follow its light or dark scheme."""

import html
import math


class Scale:
    """Values low..high onto pixels start..end, linearly or by logarithm; out of range is clipped."""

    def __init__(self, low, high, start, end, log=False):
        self.low, self.high, self.start, self.end, self.log = low, high, start, end, log

    def __call__(self, value):
        value = min(max(value, self.low), self.high)
        if self.log:
            share = math.log(value / self.low) / math.log(self.high / self.low)
        else:
            share = (value - self.low) / ((self.high - self.low) or 1)
        return self.start + share * (self.end - self.start)

    def ticks(self, about=5):
        if self.log:
            low, high = math.ceil(math.log10(self.low) - 1e-9), math.floor(math.log10(self.high))
            return [10.0 ** power for power in range(low, high + 1)]
        step = nice_step((self.high - self.low) / about)
        first = math.ceil(self.low / step - 1e-9)
        return [step * number for number in range(first, math.floor(self.high / step + 1e-9) + 1)]


def nice_step(about):
    power = 10.0 ** math.floor(math.log10(about)) if about > 0 else 1.0
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= about * 0.999)


def nice_top(value):
    """A round number that is at least `value`, for the end of an axis."""
    step = nice_step(value / 5 if value > 0 else 0.2)
    return step * math.ceil(value / step - 1e-9)


def number(value):
    """1500 -> "1,500"; 0.5 -> "0.5"."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


class Picture:
    """Marks in the order in which they are added. `label` is what a screen reader says."""

    def __init__(self, width, height, label):
        self.width, self.height, self._label = width, height, label
        self._marks = []

    def svg(self):
        return (f'<svg viewBox="0 0 {self.width} {self.height}" role="img" '
                f'aria-label="{html.escape(self._label)}">{"".join(self._marks)}</svg>')

    def rect(self, x, y, width, height, fill, title="", radius=0, opacity=1.0):
        if width > 0 and height > 0:
            self._mark("rect", title, x=x, y=y, width=width, height=height, rx=radius,
                       style=f"fill:var(--{fill});opacity:{opacity}")

    def line(self, x1, y1, x2, y2, kind="grid"):
        self._mark("line", "", x1=x1, y1=y1, x2=x2, y2=y2, **{"class": kind})

    def dot(self, x, y, radius, fill, title="", ring=False):
        style = (f"fill:var(--card);stroke:var(--{fill});stroke-width:2" if ring
                 else f"fill:var(--{fill})")
        self._mark("circle", title, cx=x, cy=y, r=radius, style=style)

    def path(self, points, stroke, width=2.0, steps=False, dashed=False):
        """A line through points; `steps`: held until the next one."""
        if not points:
            return
        parts = [f"M{points[0][0]:.1f} {points[0][1]:.1f}"]
        for x, y in points[1:]:
            parts.append(f"H{x:.1f}V{y:.1f}" if steps else f"L{x:.1f} {y:.1f}")
        dashes = ";stroke-dasharray:5 4" if dashed else ""
        self._mark("path", "", d="".join(parts),
                   style=f"fill:none;stroke:var(--{stroke});stroke-width:{width};"
                         f"stroke-linejoin:round{dashes}")

    def area(self, points, base, fill, opacity=0.18, steps=False):
        if not points:
            return
        parts = [f"M{points[0][0]:.1f} {base:.1f}V{points[0][1]:.1f}"]
        for x, y in points[1:]:
            parts.append(f"H{x:.1f}V{y:.1f}" if steps else f"L{x:.1f} {y:.1f}")
        parts.append(f"V{base:.1f}Z")
        self._mark("path", "", d="".join(parts), style=f"fill:var(--{fill});opacity:{opacity}")

    def text(self, x, y, words, kind="tick", anchor="start", fill=None):
        style = {"style": f"fill:var(--{fill})"} if fill else {}
        attributes = self._attributes(x=x, y=y, **{"class": kind, "text-anchor": anchor}, **style)
        self._marks.append(f"<text {attributes}>{html.escape(words)}</text>")

    def x_axis(self, scale, y, values=None, show=number, grid_to=None):
        self.line(scale.start, y, scale.end, y, "axis")
        for value in scale.ticks() if values is None else values:
            if grid_to is not None:
                self.line(scale(value), y, scale(value), grid_to)
            self.text(scale(value), y + 16, show(value), anchor="middle")

    def y_axis(self, scale, x, grid_to, values=None, show=number, title=""):
        for value in scale.ticks() if values is None else values:
            self.line(x, scale(value), grid_to, scale(value))
            self.text(x - 7, scale(value) + 4, show(value), anchor="end")
        if title:
            self.text(x - 7, scale.end - 12, title, kind="axis-title", anchor="end")

    def _mark(self, name, title, **attributes):
        inside = f"<title>{html.escape(title)}</title></{name}>" if title else ""
        self._marks.append(f"<{name} {self._attributes(**attributes)}"
                           + (f">{inside}" if title else "/>"))

    @staticmethod
    def _attributes(**attributes):
        return " ".join(f'{name}="{value:.2f}"' if isinstance(value, float)
                        else f'{name}="{html.escape(str(value))}"'
                        for name, value in attributes.items())
