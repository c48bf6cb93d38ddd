"""From what the runs measured to the numbers that are shown: pure functions over plain data."""

import math

HIDDEN_TARGET = 0.995
AS_WELL_SLACK = 0.001
RUNWAY_TARGET = 1.25
RECOVERY_TARGET_STEPS = 20
FIRST_BATCH_SLACK_S = 0.05
INDEX_READ_TARGET = 0.02
INDEX_BYTES_TARGET = 10_000  # per 600 frames
MEMORY_SLACK_BYTES = 64 << 20

# What the loader counts; sums over labels that are not named.
PARTS = "forebay_prefetch_parts_total"
DECODE_BUSY = "forebay_decode_busy_seconds_total"
BYTES_USED = "forebay_used_bytes_total"
RUNWAY = "forebay_runway_seconds"


def mean(values):
    values = list(values)
    return sum(values) / len(values) if values else 0.0


def quantile(values, fraction):
    """The smallest value that at least `fraction` of them do not exceed."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(fraction * len(ordered)) - 1)] if ordered else 0.0


def median(values):
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def summed(metrics, name, **labels):
    """The sum of `name` over all its label sets that hold `labels`."""
    wanted = [f'{key}="{value}"' for key, value in labels.items()]
    return sum(value for key, value in metrics.items()
               if key.partition("{")[0] == name and all(label in key for label in wanted))


def run_row(run, phase, memory):
    """One row of the table. The first batch of a run stands apart from its steps' waits."""
    steps = phase["steps"]
    cold = phase["starts_loader"]
    later = steps[1:] if cold else steps
    waits = [1e3 * step["wait_s"] for step in later]
    before, after = phase["before"], phase["after"]
    wall_s = after["clock_s"] - before["clock_s"] - (steps[0]["wait_s"] if cold else 0)

    def counted(name, **labels):
        return (summed(after["metrics"], name, **labels)
                - summed(before["metrics"], name, **labels))

    def served(read):
        return read(after["server"]) - read(before["server"])

    busy = (after["metrics"].get(DECODE_BUSY, 0.0) - before["metrics"].get(DECODE_BUSY, 0.0))
    busy_wall_s = after["clock_s"] - before["clock_s"]
    return {
        "run": run,
        "steps": len(steps),
        "latency_scale": phase["latency_scale"],
        "first_batch_ms": 1e3 * steps[0]["wait_s"] if cold else None,
        "wait_ms_mean": mean(waits),
        "wait_ms_p50": quantile(waits, 0.5),
        "wait_ms_p99": quantile(waits, 0.99),
        "wait_ms_max": max(waits, default=0.0),
        "waits_ms": [1e3 * step["wait_s"] for step in steps],
        "at_s": [step["at_s"] for step in steps],
        "step_ms_mean": 1e3 * mean(step["step_s"] for step in steps),
        "steps_per_s": len(later) / wall_s,
        "gc_ms_per_step": 1e3 * (after["gc_s"] - before["gc_s"]) / len(steps),
        "gets": served(lambda server: server["methods"].get("GET", 0)),
        "bytes_fetched": served(lambda server: server["body_bytes"]),
        "bytes_used": counted(BYTES_USED),
        "parts": {outcome: counted(PARTS, outcome=outcome)
                  for outcome in ("useful", "late", "wasted", "failed")},
        "decode_core_left": max(0.0, 1 - busy / busy_wall_s),
        "runways_s": [step["runway_s"] for step in steps],
        "runway_s": after["metrics"].get(RUNWAY, 0.0),
        "loss": [step["loss"] for step in steps],
        "runway_reason": phase["runway_reason"],
        "drawn_ms": phase["drawn_ms"],
        "peak_memory_bytes": memory["peak_memory_bytes"],
        "memory_budget_bytes": memory["memory_budget_bytes"],
    }


def hide(rows, off):
    """Adds to each row the share of the wait of `off` that it does not show."""
    for row in rows:
        row["wait_hidden"] = (1 - row["wait_ms_mean"] / off["wait_ms_mean"]
                              if off["wait_ms_mean"] else 0.0)


def recovery_steps(waits_ms, off_ms):
    """The first step from which on, to the end, the waits are hidden as well as the target asks; None
    when no such step has enough of them behind it to tell."""
    limit = (1 - HIDDEN_TARGET) * off_ms
    for start in range(len(waits_ms) - RECOVERY_TARGET_STEPS + 1):
        if mean(waits_ms[start:]) <= limit:
            return start
    return None


def first_batches(starts, decode_s, catalog_suffix, parts):
    """Each cold start beside its own bound: the catalog's GETs one after the other, the slowest first
    byte that the fault server drew for the first sample, its decode, and a slack."""
    rows = []
    for start in starts:
        log = sorted(start["log"], key=lambda entry: entry["number"])  # in order of arrival
        gets = [entry for entry in log if entry["method"] == "GET"]
        catalog = [entry for entry in gets if entry["target"].partition("?")[0]
                   .endswith(catalog_suffix)]
        data = [entry for entry in gets if entry not in catalog][:parts]
        catalog_s = sum(entry["drawn_ms"] or 0 for entry in catalog) / 1e3
        slowest_s = max((entry["drawn_ms"] or 0 for entry in data), default=0) / 1e3
        rows.append({"first_batch_ms": 1e3 * start["first_batch_s"],
                     "open_ms": 1e3 * start["open_s"],
                     "catalog_gets": len(catalog), "catalog_ms": 1e3 * catalog_s,
                     "slowest_first_byte_ms": 1e3 * slowest_s, "decode_ms": 1e3 * decode_s,
                     "bound_ms": 1e3 * (catalog_s + slowest_s + decode_s + FIRST_BATCH_SLACK_S)})
    return rows


def does_as_well(row, auto):
    """Whether a fixed runway hides what the target asks, and what auto hides but for a tenth of a
    point: so much is chance in so few steps."""
    return row["wait_hidden"] >= max(HIDDEN_TARGET, auto["wait_hidden"] - AS_WELL_SLACK)


def least_fixed_runway(rows, auto):
    """The least of the fixed runways that do as well as auto, in seconds; None without one."""
    return min((row["runway_s"] for row in rows
                if row.get("fixed_runway_s") and does_as_well(row, auto)), default=None)


def targets(summary):
    """What this run was meant to reach, and what it reached: (name, value, limit, met) each."""
    rows = {row["run"]: row for row in summary["runs"]}
    auto, changed, index = rows["auto"], summary["after_latency_change"], summary["index"]
    least = least_fixed_runway(summary["runs"], auto)
    if least is None and auto["wait_hidden"] >= HIDDEN_TARGET:
        # None of the fixed runways does as well: the least that would is longer than all of them.
        least = max(row["runway_s"] for row in summary["runs"] if row.get("fixed_runway_s"))
    ratio = auto["runway_s"] / least if least else None
    recovered = changed["recovered_after_steps"]
    margin_ms = median([start["first_batch_ms"] - start["bound_ms"]
                        for start in summary["first_batches"]])
    slack = max(row["peak_memory_bytes"] - 1.1 * row["memory_budget_bytes"]
                for row in summary["runs"])
    checks = [
        ("auto hides this share of the wait of off", auto["wait_hidden"], HIDDEN_TARGET,
         auto["wait_hidden"] >= HIDDEN_TARGET),
        ("auto's runway against the least fixed one that does as well", ratio, RUNWAY_TARGET,
         ratio is not None and ratio <= RUNWAY_TARGET),
        ("steps until the waits are hidden again after the latency tripled", recovered,
         RECOVERY_TARGET_STEPS, recovered is not None and recovered <= RECOVERY_TARGET_STEPS),
        ("first batch over its bound, median, ms", margin_ms, 0, margin_ms <= 0),
        ("bytes read to index, of the files with a sample table", index["read_share_with_table"],
         INDEX_READ_TARGET, index["read_share_with_table"] <= INDEX_READ_TARGET),
        ("bytes of index per 600 frames", index["bytes_per_600_frames"], INDEX_BYTES_TARGET,
         index["bytes_per_600_frames"] <= INDEX_BYTES_TARGET),
        ("memory over budget and a tenth, MiB", slack / 2**20, MEMORY_SLACK_BYTES / 2**20,
         slack <= MEMORY_SLACK_BYTES),
    ]
    return [{"name": name, "value": value, "limit": limit, "met": met}
            for name, value, limit, met in checks]
