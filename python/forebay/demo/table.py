"""The demo's table, as text."""


def rows_shown(result):
    rows = list(result["runs"])
    if result["after_latency_change"]:
        rows.append(result["after_latency_change"])
    return rows


def amount(count, unit=""):
    """1234567 -> "1.23 M"; three digits or a little more."""
    for factor, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(count) >= factor:
            return f"{count / factor:.3g} {letter}{unit}"
    return f"{count:.0f} {unit}".rstrip()


COLUMNS = (
    ("run", lambda row: row["run"]),
    ("wait/step ms", lambda row: f"{row['wait_ms_mean']:.2f}"),
    ("p99 ms", lambda row: f"{row['wait_ms_p99']:.1f}"),
    ("hidden", lambda row: f"{100 * row['wait_hidden']:.2f}%"),
    ("steps/s", lambda row: f"{row['steps_per_s']:.2f}"),
    ("runway s", lambda row: f"{row['runway_s']:.2f}"),
    ("gc ms/step", lambda row: f"{row['gc_ms_per_step']:.2f}"),
    ("GETs", lambda row: f"{row['gets']:,.0f}"),
    ("fetched", lambda row: amount(row["bytes_fetched"], "B")),
    ("fetched/used", lambda row: f"{row['bytes_fetched'] / row['bytes_used']:.2f}"
     if row["bytes_used"] else "-"),
    ("useful/late/wasted/failed", lambda row: "/".join(
        f"{row['parts'][name]:.0f}" for name in ("useful", "late", "wasted", "failed"))),
    ("decode core left", lambda row: f"{100 * row['decode_core_left']:.0f}%"),
    ("memory of budget MiB", lambda row: f"{row['peak_memory_bytes'] / 2**20:.0f} of "
     f"{row['memory_budget_bytes'] / 2**20:.0f}"),
)


def text(result):
    cells = [[name for name, _ in COLUMNS]]
    cells += [[show(row) for _, show in COLUMNS] for row in rows_shown(result)]
    widths = [max(len(line[column]) for line in cells) for column in range(len(COLUMNS))]
    lines = []
    for number, line in enumerate(cells):
        lines.append("  ".join(cell.ljust(width) if column == 0 else cell.rjust(width)
                               for column, (cell, width) in enumerate(zip(line, widths))))
        if number == 0:
            lines.append("  ".join("-" * width for width in widths))
    lines.append("")
    lines += [f"{row['run']}: {row['runway_reason']}" for row in rows_shown(result)
              if row["run"].startswith("auto")]
    starts = sorted(result["first_batches"], key=lambda start: start["first_batch_ms"])
    if starts:
        middle = starts[len(starts) // 2]
        lines += [f"first batch of {len(starts)} cold starts: median "
                  f"{middle['first_batch_ms']:.0f} ms; that start's bound {middle['bound_ms']:.0f} "
                  f"ms = catalog {middle['catalog_ms']:.0f} + slowest first byte "
                  f"{middle['slowest_first_byte_ms']:.0f} + decode {middle['decode_ms']:.0f} + 50"]
        lines.append("first batch of each run, ms: " + ", ".join(
            f"{row['run']} {row['first_batch_ms']:.0f}" for row in result["runs"]))
    lines.append("")
    for target in result["targets"]:
        value = "none" if target["value"] is None else f"{target['value']:.4g}"
        lines.append(f"{'reached' if target['met'] else 'MISSED ':7}  {target['name']}: {value} "
                     f"(target {target['limit']:g})")
    return "\n".join(lines)
