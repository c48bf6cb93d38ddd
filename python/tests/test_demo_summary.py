"""The demo's arithmetic: what is shown must follow from what was measured."""

import pytest

from forebay.demo import charts, pictures, report, summary, table


def step(wait_s, at_s=0.0, **more):
    return {"at_s": at_s, "wait_s": wait_s, "step_s": 0.2, "loss": 0.1, "gc_s": 0.0,
            "runway_s": 0.5, "first": False, **more}


def snapshot(clock_s, gets=0, fetched=0, used=0, busy_s=0.0, late=0, runway_s=1.0):
    return {"clock_s": clock_s, "gc_s": 0.0,
            "server": {"methods": {"GET": gets, "HEAD": 5}, "body_bytes": fetched},
            "metrics": {summary.BYTES_USED: used, summary.DECODE_BUSY: busy_s,
                        summary.RUNWAY: runway_s,
                        'forebay_prefetch_parts_total{outcome="late"}': late}}


def phase(waits_s, before, after, starts_loader=True, latency_scale=1):
    steps = [step(wait, at) for at, wait in enumerate(waits_s)]
    return {"name": "p", "latency_scale": latency_scale, "starts_loader": starts_loader,
            "steps": steps, "before": before, "after": after, "drawn_ms": [100.0, 200.0],
            "runway_reason": "1.00 s = 5 batches"}


MEMORY = {"peak_memory_bytes": 100 << 20, "memory_budget_bytes": 512 << 20}


def row(name, waits_s, fixed=None, **options):
    made = summary.run_row(name, phase(waits_s, snapshot(10.0), snapshot(
        20.0, gets=7, fetched=2000, used=1000, busy_s=2.5, late=3,
        runway_s=fixed or 1.0), **options), MEMORY)
    made["fixed_runway_s"] = fixed
    return made


def whole_summary():
    rows = [row("off", [0.5] + [0.4] * 39), row("0.5s", [0.5] + [0.02] * 59, 0.5),
            row("1s", [0.5] + [0.0005] * 59, 1.0), row("2s", [0.5] + [0.0005] * 59, 2.0),
            row("auto", [0.5] + [0.0005] * 119)]
    changed = row("auto, latency x3", [0.3] * 4 + [0.0] * 56, starts_loader=False,
                  latency_scale=3)
    summary.hide([*rows, changed], rows[0])
    changed["recovered_after_steps"] = summary.recovery_steps(changed["waits_ms"], 400.0)
    log = [{"number": number, "method": method, "target": target, "drawn_ms": drawn_ms}
           for number, method, target, drawn_ms in (
               (5, "GET", "/b/d/of-the-second-sample", 900.0), (4, "GET", "/b/d/right", 250.0),
               (3, "GET", "/b/d/left", 90.0), (2, "HEAD", "/b/d/left", None),
               (1, "GET", "/b/d/.forebay/catalog.fbc", 100.0))]
    return {"schema": "forebay.demo/1", "seconds": 200.0, "seed": 7, "latency": "constant:1ms",
            "machine": report.machine_facts(), "decode_ms": 150.0, "step_ms": 195.0,
            "data": {"scenes": 2, "cameras": 7, "seconds": 20, "frame_rate": 30, "files": 14,
                     "picture": [480, 270], "bytes": 10_000_000},
            "index": {"bytes_read": 1000, "dataset_bytes": 100_000, "read_share": 0.01,
                      "read_share_with_table": 0.01, "requests": 40, "videos": 14,
                      "bytes_per_file": 9000, "bytes_per_600_frames": 9000, "seconds": 1.0},
            "first_batches": summary.first_batches(
                [{"first_batch_s": 0.5, "open_s": 0.1, "log": log}] * 3, 0.15,
                "/.forebay/catalog.fbc", 2),
            "runs": rows, "after_latency_change": changed}


def test_the_first_batch_of_a_loader_is_in_no_mean():
    made = row("off", [5.0, 0.1, 0.3])
    assert made["first_batch_ms"] == 5000
    assert made["wait_ms_mean"] == pytest.approx(200)
    assert made["wait_ms_max"] == 300
    assert made["waits_ms"] == [5000, 100, 300]
    assert made["steps_per_s"] == pytest.approx(2 / 5)  # 10 s, less the 5 s of the first batch


def test_a_phase_on_a_running_loader_counts_every_step():
    made = row("auto", [0.1, 0.3], starts_loader=False)
    assert made["first_batch_ms"] is None
    assert made["wait_ms_mean"] == pytest.approx(200)
    assert made["steps_per_s"] == pytest.approx(2 / 10)


def test_counters_are_differences():
    made = summary.run_row("auto", phase(
        [0.1, 0.1], snapshot(0.0, gets=3, fetched=100, used=50, busy_s=1.0, late=1),
        snapshot(4.0, gets=10, fetched=500, used=350, busy_s=2.0, late=5)), MEMORY)
    assert (made["gets"], made["bytes_fetched"], made["bytes_used"]) == (7, 400, 300)
    assert made["parts"] == {"useful": 0, "late": 4, "wasted": 0, "failed": 0}
    assert made["decode_core_left"] == pytest.approx(0.75)


def test_hidden_is_measured_against_off():
    rows = [row("off", [1, 0.4, 0.4]), row("auto", [1, 0.001, 0.003])]
    summary.hide(rows, rows[0])
    assert rows[0]["wait_hidden"] == 0
    assert rows[1]["wait_hidden"] == pytest.approx(1 - 2 / 400)


@pytest.mark.parametrize(("waits", "expected"), [
    ([0.0] * 60, 0),
    ([300.0] * 5 + [0.0] * 55, 5),
    ([300.0] + [0.0] * 10 + [300.0] + [0.0] * 48, 12),
    ([300.0] * 40 + [0.0] * 20, 40),
    ([300.0] * 41 + [0.0] * 19, None),  # too few steps behind it to tell
    ([1.9] * 60, 0),
    ([2.1] * 60, None),
])
def test_recovery_is_the_first_step_from_which_waits_stay_hidden(waits, expected):
    assert summary.recovery_steps(waits, off_ms=400.0) == expected


def test_quantiles_are_values_that_occurred():
    values = list(range(1, 101))
    assert summary.quantile(values, 0.99) == 99
    assert summary.quantile(values, 0.5) == 50
    assert summary.quantile([7], 0.99) == 7


def test_labels_are_matched_whole():
    metrics = {'a{op="get",code="200"}': 3, 'a{op="get",code="503"}': 1, 'a{op="head"}': 7,
               'ab{op="get"}': 100, "a": 0}
    assert summary.summed(metrics, "a", op="get") == 4
    assert summary.summed(metrics, "a") == 11


def test_a_first_batch_is_held_against_its_own_latencies():
    start = whole_summary()["first_batches"][0]
    assert (start["catalog_gets"], start["catalog_ms"]) == (1, 100)
    assert start["slowest_first_byte_ms"] == 250
    assert start["bound_ms"] == pytest.approx(100 + 250 + 150 + 50)


def test_auto_that_beats_every_fixed_runway_is_held_to_the_longest():
    made = whole_summary()
    for one in made["runs"]:
        if one.get("fixed_runway_s"):
            one["wait_hidden"] = 0.9
    longest = max(one["runway_s"] for one in made["runs"] if one.get("fixed_runway_s"))
    ratio = summary.targets(made)[1]
    assert ratio["value"] == made["runs"][-1]["runway_s"] / longest and ratio["met"]


def test_targets_say_what_was_missed():
    made = whole_summary()
    assert all(target["met"] for target in summary.targets(made))
    made["runs"][-1]["wait_hidden"] = 0.99
    made["after_latency_change"]["recovered_after_steps"] = None
    missed = [target["name"] for target in summary.targets(made) if not target["met"]]
    assert len(missed) == 2 and "auto hides" in missed[0] and "tripled" in missed[1]


def test_the_runway_is_held_against_the_least_fixed_one_that_does_as_well():
    made = whole_summary()
    made["runs"][-1]["runway_s"] = 1.3
    ratio = next(target for target in summary.targets(made) if "least fixed" in target["name"])
    assert ratio["value"] == pytest.approx(1.3) and not ratio["met"]


def test_a_fixed_runway_that_hides_less_than_auto_does_not_do_as_well():
    auto = {"wait_hidden": 0.9995}
    assert summary.does_as_well({"wait_hidden": 0.9986}, auto)
    assert not summary.does_as_well({"wait_hidden": 0.9984}, auto)
    assert not summary.does_as_well({"wait_hidden": 0.994}, {"wait_hidden": 0.994})


def test_the_table_has_a_line_for_every_run_and_target():
    made = whole_summary()
    made["targets"] = summary.targets(made)
    text = table.text(made)
    for run in ("off", "0.5s", "1s", "2s", "auto", "auto, latency x3"):
        assert f"\n{run} " in text
    assert text.count("reached") == len(made["targets"])


def test_the_report_is_one_page_that_loads_nothing():
    made = whole_summary()
    made["targets"] = summary.targets(made)
    page = report.page(made)
    assert page.count("<svg") == page.count("</svg>") == 8
    for outside in ("http://", "https://", "<script", "<link", "@import", "src="):
        assert outside not in page
    assert "NaN" not in page and "Infinity" not in page


def test_pictures_stand_a_run_without_waits():
    made = whole_summary()
    for run in made["runs"]:
        run["waits_ms"] = [0.0] * len(run["waits_ms"])
        run["wait_ms_mean"] = 0.0
    assert "<svg" in pictures.waits_of_every_step(made) + pictures.cumulative_wait(made)


def test_scales_place_values_and_clip_what_is_outside():
    linear = charts.Scale(0, 10, 100, 200)
    assert [linear(value) for value in (0, 5, 10, 11, -1)] == [100, 150, 200, 200, 100]
    log = charts.Scale(1, 100, 0, 200, log=True)
    assert log(10) == pytest.approx(100)
    assert log.ticks() == [1, 10, 100]
    assert linear.ticks() == [0, 2, 4, 6, 8, 10]
    assert charts.nice_top(0.47) == pytest.approx(0.5)
