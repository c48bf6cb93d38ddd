"""The pictures of the demo's report: each a function of the summary, returning SVG."""

import math

from .charts import Picture, Scale, nice_top, number

_FLOOR_MS = 0.1  # waits below this are drawn as this: a call into the loader takes as long


def colour(result, row):
    """off, fixed-0..2 or auto: names of the page's colours."""
    if row["run"] == "off":
        return "off"
    fixed = [other["run"] for other in result["runs"] if other.get("fixed_runway_s")]
    return f"fixed-{min(fixed.index(row['run']), 2)}" if row["run"] in fixed else "auto"


def runs_with_change(result):
    """(row, all its waits, the step at which the latency changed or None) of every run."""
    for row in result["runs"]:
        waits, change = list(row["waits_ms"]), None
        if row["run"] == "auto" and result["after_latency_change"]:
            change = len(waits)
            waits += result["after_latency_change"]["waits_ms"]
        yield row, waits, change


def waits_of_every_step(result):
    """One bar a step, all runs side by side on one logarithmic axis."""
    picture = Picture(1120, 330, "the wait of every step of every run, in milliseconds")
    runs = list(runs_with_change(result))
    top = max(max(waits) for _, waits, _ in runs)
    high = 10.0 ** math.ceil(math.log10(max(top, 100.0)))
    scale = Scale(_FLOOR_MS, high, 290, 58, log=True)
    gap, left, right = 22, 52, 1112
    unit = (right - left - gap * (len(runs) - 1)) / sum(len(waits) for _, waits, _ in runs)
    picture.y_axis(scale, left, right, title="ms")
    x = left
    for row, waits, change in runs:
        fill, width = colour(result, row), unit * len(waits)
        picture.text(x, 18, row["run"], kind="label", fill=fill)
        picture.text(x, 35, f"{row['wait_ms_mean']:.3g} ms a step", kind="tick")
        if change is not None:
            after = result["after_latency_change"]
            edge = x + unit * change
            picture.line(edge, 8, edge, 290, "mark")
            picture.text(edge + 6, 18, f"latency x {after['latency_scale']:g}", kind="label")
            picture.text(edge + 6, 35, f"{after['wait_ms_mean']:.3g} ms a step", kind="tick")
        for step, wait in enumerate(waits):
            first = step == 0
            at = scale(wait)
            picture.rect(x + unit * step + 0.3, at, max(unit - 0.6, 0.8), 290 - at,
                         "muted" if first else fill,
                         f"{row['run']}, step {step + 1}{' (first batch)' if first else ''}: "
                         f"{wait:.2f} ms")
        picture.line(x, 290, x + width, 290, "axis")
        picture.text(x, 307, "1", anchor="start")
        picture.text(x + width, 307, f"step {len(waits)}", anchor="end")
        x += width + gap
    return picture.svg()


def where_a_step_goes(result):
    """Compute and wait of an average step, per run."""
    rows = result["runs"]
    picture = Picture(540, 48 + 42 * len(rows), "milliseconds of compute and of wait per step")
    top = nice_top(max(row["step_ms_mean"] + row["wait_ms_mean"] for row in rows) * 1.14)
    scale = Scale(0, top, 66, 510)
    bottom = 20 + 42 * len(rows)
    picture.x_axis(scale, bottom, grid_to=8, show=lambda value: f"{number(value)} ms")
    for place, row in enumerate(rows):
        y = 16 + 42 * place
        middle = scale(row["step_ms_mean"])
        end = scale(row["step_ms_mean"] + row["wait_ms_mean"])
        picture.text(58, y + 18, row["run"], kind="label", anchor="end", fill=colour(result, row))
        picture.rect(scale.start, y, middle - scale.start, 26, "compute",
                     f"{row['run']}: computes {row['step_ms_mean']:.1f} ms")
        picture.rect(middle, y, end - middle, 26, "off",
                     f"{row['run']}: waits {row['wait_ms_mean']:.2f} ms")
        picture.text(end + 7, y + 18, f"{row['steps_per_s']:.2f} steps/s", kind="tick")
    return picture.svg()


def cumulative_wait(result):
    """Seconds waited since the first batch, step by step."""
    rows = result["runs"]
    picture = Picture(540, 260, "seconds waited for data, added up over the steps of each run")
    totals = []
    for row in rows:
        total, line = 0.0, [0.0]
        for wait in row["waits_ms"][1:]:
            total += wait / 1e3
            line.append(total)
        totals.append(line)
    x = Scale(1, max(len(line) for line in totals), 44, 480)
    y = Scale(0, nice_top(max(line[-1] for line in totals)), 226, 26)
    picture.y_axis(y, 44, 480, title="s")
    picture.x_axis(x, 226, show=lambda value: f"{value:.0f}")
    placed = []
    for row, line in sorted(zip(rows, totals), key=lambda pair: pair[1][-1]):
        fill = colour(result, row)
        points = [(x(step + 1), y(total)) for step, total in enumerate(line)]
        picture.path(points, fill, 2.5)
        at = points[-1][1] + 4
        while any(abs(at - other) < 14 for other in placed):
            at -= 1
        placed.append(at)
        end = points[-1][0]
        picture.text(end + 6, at, row["run"], kind="label", fill=fill)
    picture.text(480, 256, "steps", kind="axis-title", anchor="end")
    return picture.svg()


def runway_over_time(result):
    """The runway chosen, and the waits, of the run in which the runway finds itself."""
    auto = next(row for row in result["runs"] if row["run"] == "auto")
    after = result["after_latency_change"]
    rows = [auto] + ([after] if after else [])
    times = [at for row in rows for at in row["at_s"]]
    runways = [chosen for row in rows for chosen in row["runways_s"]]
    waits = [wait for row in rows for wait in row["waits_ms"]]
    picture = Picture(1120, 330, "the runway chosen over time, with the waits below")
    x = Scale(times[0], times[-1], 52, 1108)
    y = Scale(0, nice_top(max(*runways, 0.5) * 1.15), 200, 34)
    picture.y_axis(y, 52, 1108, title="runway s")
    points = [(x(at), y(chosen)) for at, chosen in zip(times, runways)]
    picture.area(points, 200, "auto", steps=True)
    picture.path(points, "auto", 2, steps=True)
    picture.line(52, 200, 1108, 200, "axis")
    for row in rows:
        end = row["at_s"][-1]
        picture.text(x(end) - 4, y(row["runways_s"][-1]) - 7, f"{row['runway_s']:.2f} s",
                     kind="label", anchor="end", fill="auto")
    below = Scale(_FLOOR_MS, 1000, 296, 218, log=True)
    picture.y_axis(below, 52, 1108, values=[1, 10, 100, 1000])
    picture.text(45, 300, "wait ms", kind="axis-title", anchor="end")
    for at, wait in zip(times[1:], waits[1:]):
        if wait > _FLOOR_MS:
            picture.rect(x(at) - 1.5, below(wait), 3, 296 - below(wait), "off",
                         f"{at:.1f} s: waited {wait:.2f} ms")
    picture.x_axis(x, 296, show=lambda value: f"{value:.0f} s")
    if after:
        edge = x(after["at_s"][0])
        picture.line(edge, 8, edge, 296, "mark")
        picture.text(edge + 6, 18, f"latency x {after['latency_scale']:g}", kind="label")
        recovered = after["recovered_after_steps"]
        if recovered is not None:
            back = x(after["at_s"][recovered])
            picture.dot(back, 200, 5, "auto", f"hidden again after {recovered} steps", ring=True)
            picture.text(back + 9, 193, f"hidden again after {recovered} steps", kind="tick")
    return picture.svg()


def latency_drawn(result):
    """How long the fault server held back first bytes, before and after the change."""
    series = [("auto", "x 1", [ms for row in result["runs"] for ms in row["drawn_ms"]])]
    after = result["after_latency_change"]
    if after:
        series.append(("off", f"x {after['latency_scale']:g}", after["drawn_ms"]))
    picture = Picture(540, 260, "distribution of the time to first byte that was drawn")
    low, high, bins = 25.0, 2500.0, 46
    x = Scale(low, high, 20, 524, log=True)
    heights = []
    for _, _, values in series:
        counts = [0] * bins
        for value in values:
            share = math.log(min(max(value, low), high * 0.999) / low) / math.log(high / low)
            counts[int(share * bins)] += 1
        heights.append([count / max(len(values), 1) for count in counts])
    y = Scale(0, max(max(line) for line in heights) * 1.05, 222, 48)
    width = (x.end - x.start) / bins
    for at, ((fill, name, values), line) in enumerate(zip(series, heights)):
        for place, share in enumerate(line):
            picture.rect(x.start + place * width + 0.5, y(share), width - 1, 222 - y(share), fill,
                         f"{name}: {100 * share:.1f}% of {len(values):,}", opacity=0.55)
        if values:
            ordered = sorted(values)
            middle = ordered[len(ordered) // 2]
            picture.line(x(middle), 30, x(middle), 222, "mark")
            side = -6 if at == 0 else 6
            picture.text(x(middle) + side, 40, f"{name}: median {middle:.0f} ms", kind="label",
                         anchor="end" if at == 0 else "start", fill=fill)
    picture.x_axis(x, 222, values=[30, 100, 300, 1000, 2000], show=lambda v: f"{number(v)} ms")
    picture.text(524, 254, f"{sum(len(values) for _, _, values in series):,} GETs",
                 kind="axis-title", anchor="end")
    return picture.svg()


def decode_core(result):
    """How busy the decoding core was, so that nobody takes a decode limit for a storage wait."""
    rows = list(result["runs"])
    if result["after_latency_change"]:
        rows.append(result["after_latency_change"])
    picture = Picture(540, 30 + 34 * len(rows), "share of the decoding core that was left")
    scale = Scale(0, 1, 124, 470)
    for place, row in enumerate(rows):
        y = 8 + 34 * place
        left = row["decode_core_left"]
        picture.text(116, y + 16, row["run"], kind="label", anchor="end",
                     fill=colour(result, row))
        picture.rect(scale.start, y, scale.end - scale.start, 22, "track")
        picture.rect(scale.start, y, scale(1 - left) - scale.start, 22, "compute",
                     f"{row['run']}: busy {100 * (1 - left):.0f}%")
        picture.text(scale.end + 8, y + 16, f"{100 * left:.0f}% left", kind="tick")
    picture.x_axis(scale, 10 + 34 * len(rows), values=[0, 0.5, 1],
                   show=lambda value: f"{100 * value:.0f}%")
    return picture.svg()


def first_batches(result):
    """Every cold start beside its bound."""
    starts = result["first_batches"]
    picture = Picture(540, 52 + 22 * len(starts), "time to the first batch of each cold start")
    top = nice_top(max(max(start["bound_ms"], start["first_batch_ms"]) for start in starts) * 1.05)
    scale = Scale(0, top, 24, 510)
    bottom = 12 + 22 * len(starts)
    picture.x_axis(scale, bottom, grid_to=6, show=lambda value: f"{number(value)} ms")
    for place, start in enumerate(starts):
        y, at = 10 + 22 * place, 0.0
        picture.text(16, y + 11, str(place + 1), anchor="end")
        slack = start["bound_ms"] - sum(start[name] for name in (
            "catalog_ms", "slowest_first_byte_ms", "decode_ms"))
        for name, fill, length in (("catalog's GETs", "fixed-0", start["catalog_ms"]),
                                   ("slowest first byte", "fixed-1",
                                    start["slowest_first_byte_ms"]),
                                   ("decode", "compute", start["decode_ms"]),
                                   ("slack", "track", slack)):
            picture.rect(scale(at), y, scale(at + length) - scale(at), 14, fill,
                         f"{name}: {length:.0f} ms")
            at += length
        picture.dot(scale(start["first_batch_ms"]), y + 7, 4.5,
                    "auto" if start["first_batch_ms"] <= start["bound_ms"] else "off",
                    f"first batch after {start['first_batch_ms']:.0f} ms")
    x = 24
    for name, fill in (("catalog", "fixed-0"), ("slowest first byte", "fixed-1"),
                       ("decode", "compute"), ("50 ms", "track")):
        picture.rect(x, bottom + 27, 10, 10, fill)
        picture.text(x + 15, bottom + 36, name)
        x += 34 + 6.4 * len(name)
    picture.dot(x + 4, bottom + 32, 4.5, "auto")
    picture.text(x + 14, bottom + 36, "first batch")
    return picture.svg()


def loss(result):
    """The training loss of every run, smoothed over five steps."""
    picture = Picture(540, 260, "training loss over the steps of each run")
    longest = max(len(row["loss"]) for row in result["runs"])
    x = Scale(1, longest, 44, 528)
    high = max(max(row["loss"]) for row in result["runs"])
    y = Scale(0, nice_top(high), 226, 20)
    picture.y_axis(y, 44, 528, title="L1")
    picture.x_axis(x, 226, show=lambda value: f"{value:.0f}")
    for row in result["runs"]:
        values = row["loss"]
        smooth = [sum(values[max(0, at - 4):at + 1]) / len(values[max(0, at - 4):at + 1])
                  for at in range(len(values))]
        picture.path([(x(at + 1), y(value)) for at, value in enumerate(smooth)],
                     colour(result, row), 2.5 if row["run"] == "auto" else 1.5)
    picture.text(528, 256, "steps", kind="axis-title", anchor="end")
    return picture.svg()
