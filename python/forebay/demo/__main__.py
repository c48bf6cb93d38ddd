"""`forebay demo`: S3 server, fault server, data set, index, training runs, table and report.

Everything lies under --output; every part is a child that ends with this process, however it ends.
"""

import argparse
import contextlib
import fcntl
import importlib.util
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

from . import dataset, processes, report, seaweed, summary, table

BUCKET = "forebay-demo"
PREFIX = f"s3://{BUCKET}/drives/"
CATALOG_KEY = "/.forebay/catalog.fbc"
LATENCY = "lognormal:median=130ms,p99=340ms"
CLIP = {"frames": 8, "step": 3, "hop": 10}
DECODE_SHARE = 1 / 1.3  # of a step
OFF_STEPS, FIXED_STEPS, AUTO_STEPS, CHANGED_STEPS = 40, 60, 120, 60
COLD_STARTS = 9
LATENCY_FACTOR = 3

EXIT_FAILED, EXIT_USAGE, EXIT_ENVIRONMENT, EXIT_OTHER = 1, 252, 253, 255


class Talk:
    """What a person sees meanwhile, on stderr."""

    def __init__(self, quiet):
        self._quiet = quiet
        self._started = time.monotonic()
        self._terminal = sys.stderr.isatty()
        self._bar = False

    def say(self, text):
        if self._quiet:
            return
        self._end_bar()
        print(f"[{time.monotonic() - self._started:5.1f} s] {text}", file=sys.stderr, flush=True)

    def bar(self, done, total, what):
        """A bar on a terminal; elsewhere the line before and after is enough."""
        if self._quiet or not self._terminal:
            return
        filled = round(30 * done / max(total, 1))
        print(f"\r          {'━' * filled}{'─' * (30 - filled)} {done:,} of {total:,} {what} ",
              end="", file=sys.stderr, flush=True)
        self._bar = True

    def _end_bar(self):
        if self._bar:
            print("\r\x1b[K", end="", file=sys.stderr)
            self._bar = False


class Demo:
    """The demo's parts and what they need to find each other."""

    def __init__(self, options, talk, stack):
        self.options, self.talk, self.stack = options, talk, stack
        self.output = options.output
        self.forebay = processes.find_program("forebay", "FOREBAY_CLI")
        self.faults_program = processes.find_program("forebay-faults", "FOREBAY_FAULTS")
        self.server = self.endpoint = self.control = None

    def start_servers(self):
        self.talk.say("starting the S3 server (SeaweedFS) and the fault server in front of it")
        self.server = self.stack.enter_context(contextlib.closing(
            seaweed.Server(self.output / "s3")))
        command = [self.faults_program, "--upstream", self.server.endpoint, "--latency", LATENCY,
                   "--seed", str(self.options.seed), "--listen", "127.0.0.1:0", "--control",
                   "127.0.0.1:0"]
        faults = processes.Child("the fault server", command, self.output / "faults.log",
                                 stdout=subprocess.PIPE)
        self.stack.callback(faults.kill)
        self.faults = faults
        addresses = faults.read_json_line(20)
        self.endpoint, self.control = addresses["endpoint"], addresses["control"]
        status, body = self.server.client().request("PUT", f"/{BUCKET}")
        if status not in (200, 409):
            raise processes.PartFailed(f"the S3 server made no bucket: {status} {body[:200]!r}")

    def environment(self, endpoint):
        """The user's environment, but with no AWS setting of the user's in it."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
        return {**kept, "AWS_ACCESS_KEY_ID": self.server.access_key,
                "AWS_SECRET_ACCESS_KEY": self.server.secret_key, "AWS_REGION": "us-east-1",
                "AWS_ENDPOINT_URL_S3": endpoint, "AWS_CONFIG_FILE": os.devnull,
                "AWS_SHARED_CREDENTIALS_FILE": os.devnull, "AWS_EC2_METADATA_DISABLED": "true"}

    def run_forebay(self, *arguments, endpoint):
        """A forebay command whose progress is shown; its JSON lines."""
        log = self.output / "forebay.log" if self.options.quiet else None
        child = processes.Child(f"forebay {arguments[0]}", [self.forebay, *arguments, "--json"], log,
                                stdout=subprocess.PIPE, env=self.environment(endpoint))
        try:
            output, _ = child.process.communicate()
        finally:
            child.kill()
        if child.process.returncode != 0:
            raise processes.PartFailed(f"forebay {arguments[0]} ended with "
                                       f"{child.process.returncode}: {child.last_words()}")
        return [json.loads(line) for line in output.splitlines() if line.startswith(b"{")]

    def make_data(self):
        started = time.monotonic()
        footage = self.output / "footage"
        dataset.fetch_footage(footage)
        files = dataset.make(self.output / "data", footage, self.options.scenes, self.options.size,
                             self.talk.bar)
        size = sum(file.stat().st_size for file in files)
        self.talk.say(f"data set: {self.options.scenes} scenes x {len(dataset.CAMERAS)} cameras x "
                      f"{dataset.SECONDS} s, {len(files)} files, {size / 1e6:.0f} MB "
                      f"({time.monotonic() - started:.0f} s)")
        return {"scenes": self.options.scenes, "cameras": len(dataset.CAMERAS),
                "seconds": dataset.SECONDS, "frame_rate": dataset.FRAME_RATE,
                "picture": list(dataset.SIZES[self.options.size]), "files": len(files),
                "bytes": size}

    def upload(self):
        self.talk.say(f"uploading to {PREFIX}")
        self.run_forebay("cp", "-r", str(self.output / "data" / "drives") + "/", PREFIX,
                         endpoint=self.server.endpoint)

    def index(self):
        self.talk.say("indexing by range reads alone, behind the latency of a busy S3")
        started = time.monotonic()
        made = self.run_forebay("index", PREFIX, endpoint=self.endpoint)[-1]
        facts = index_facts(made, time.monotonic() - started)
        self.talk.say(f"index: {facts['bytes_read'] / 1e6:.2f} MB read of "
                      f"{facts['dataset_bytes'] / 1e6:.0f} MB = {facts['read_share']:.2%} "
                      f"({facts['read_share_with_table']:.2%} of the files with a sample table); "
                      f"{facts['bytes_per_file']:,.0f} bytes of index per file")
        return facts

    def train(self, task):
        """Runs one trainer process to its end; its result event."""
        everything = {"uri": PREFIX, "pattern": "{scene}/{camera}.{ext}",
                      "cameras": [camera.name for camera in dataset.CAMERAS],
                      "picture": dataset.SIZES[self.options.size][::-1], "seed": self.options.seed,
                      "memory": f"{self.options.memory_mib}MiB", "control": self.control,
                      "heap": self.options.heap, **CLIP, **task}
        read_end, write_end = os.pipe()
        with os.fdopen(write_end, "w") as task_file:
            task_file.write(json.dumps(everything))
        environment = self.environment(self.endpoint)
        child = processes.Child(
            f"the trainer ({task['name']})", [sys.executable, "-m", "forebay.demo.trainer"],
            self.output / "trainer.log", stdout=subprocess.PIPE, env=environment, stdin=read_end)
        os.close(read_end)
        try:
            while True:
                event = child.read_json_line(120)
                if event["event"] == "result":
                    return event
                if event["event"] == "error":
                    raise processes.PartFailed(f"the trainer ({task['name']}): {event['text']}")
                self.talk.say("  {phase:>16}  step {step:3d}/{steps}  loss {loss:.4f}  "
                              "waits {wait_ms:7.2f} ms a step".format(**event))
        finally:
            child.kill()
            for part in (self.server.child, self.faults):
                part.check_alive()


def index_facts(made, seconds):
    """The numbers of `forebay index --json`, and what follows from them."""
    videos = max(made["videos"], 1)
    return {
        "bytes_read": made["bytes_read"], "dataset_bytes": made["dataset_bytes"],
        "read_share": made["bytes_read"] / max(made["dataset_bytes"], 1),
        "read_share_with_table": made["table_bytes_read"] / max(made["table_dataset_bytes"], 1),
        "requests": made["requests"], "videos": made["videos"], "frames": made["frames"],
        "index_bytes": made["index_bytes"], "bytes_per_file": made["index_bytes"] / videos,
        "bytes_per_600_frames": made["index_bytes"] / max(made["frames"], 1) * 600,
        "failed": made["objects_failed"], "seconds": seconds}


def run_name(runway):
    return f"{runway:g}s"


def fixed_runways(options, step_s):
    """Too short, about right, and plenty, in steps; a little less than whole ones, so that a step that
    is a little shorter than planned does not make one more of them."""
    return options.runways or [round((steps - 0.15) * step_s, 2) for steps in (2, 4, 8)]


def train_all(demo):
    """Every training run; the rows of the table, and the row after the latency changed."""
    talk, options = demo.talk, demo.options
    talk.say("measuring a sample's decode while the training core is busy")
    decode = demo.train({"mode": "decode", "name": "decode", "runway": 2.0, "samples": 24})
    decode_s = decode["decode_s"]
    step_s = decode_s / DECODE_SHARE
    talk.say(f"decode takes {1e3 * decode_s:.0f} ms a sample; a step will take "
             f"{1e3 * step_s:.0f} ms of the training core")
    cold = demo.train({"mode": "cold", "name": "cold start", "runway": "auto",
                       "starts": COLD_STARTS})
    firsts = summary.first_batches(cold["starts"], decode["idle_decode_s"], CATALOG_KEY,
                                   len(dataset.CAMERAS))
    plan = [("off", 0.0, [("off", OFF_STEPS)])]
    plan += [(run_name(runway), runway, [(run_name(runway), FIXED_STEPS)])
             for runway in fixed_runways(options, step_s)]
    plan += [("auto", "auto", [("auto", AUTO_STEPS),
                               (f"auto, latency x{LATENCY_FACTOR}", CHANGED_STEPS)])]
    rows, changed = [], None
    for name, runway, phases in plan:
        phases = [{"name": phase, "steps": steps,
                   "latency_scale": LATENCY_FACTOR if number else 1}
                  for number, (phase, steps) in enumerate(phases)]
        result = demo.train({"mode": "train", "name": name, "runway": runway, "step_s": step_s,
                             "phases": phases})
        memory = {"peak_memory_bytes": result["peak_memory_bytes"],
                  "memory_budget_bytes": options.memory_mib << 20}
        row = summary.run_row(name, result["phases"][0], memory)
        row["fixed_runway_s"] = runway if name not in ("off", "auto") else None
        rows.append(row)
        for phase in result["phases"][1:]:
            changed = summary.run_row(phase["name"], phase, memory)
    summary.hide([*rows, changed], rows[0])
    changed["recovered_after_steps"] = summary.recovery_steps(changed["waits_ms"],
                                                              rows[0]["wait_ms_mean"])
    return {"decode_ms": 1e3 * decode_s, "step_ms": 1e3 * step_s, "first_batches": firsts,
            "runs": rows, "after_latency_change": changed}


def run_demo(options, talk):
    options.output.mkdir(parents=True, exist_ok=True)
    started = time.time()
    with contextlib.ExitStack() as stack:
        lock = stack.enter_context(open(options.output / ".lock", "w"))
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise processes.PartFailed(f"another demo is running in {options.output}") from None
        demo = Demo(options, talk, stack)
        data = demo.make_data()
        demo.start_servers()
        demo.upload()
        index = demo.index()
        measured = train_all(demo)
    result = {"schema": "forebay.demo/1", "started_unix_s": round(started),
              "seconds": round(time.time() - started, 1), "seed": options.seed,
              "latency": LATENCY, "machine": report.machine_facts(), "data": data, "clip": CLIP,
              "index": index, **measured}
    result["targets"] = summary.targets(result)
    with open(options.output / "summary.json.part", "w", encoding="utf-8") as file:
        json.dump(result, file, indent=1)
        file.write("\n")
    os.replace(options.output / "summary.json.part", options.output / "summary.json")
    report.write(options.output / "report.html", result)
    return result


def parse_arguments():
    parser = argparse.ArgumentParser(
        prog="forebay demo", description="Train from a real S3 server with the latency of a busy one, "
        "without and with prefetch; shows what it changes.")
    parser.add_argument("--output", type=pathlib.Path, default=pathlib.Path("forebay-demo"),
                        metavar="DIR", help="everything goes here (default: ./forebay-demo)")
    parser.add_argument("--size", choices=sorted(dataset.SIZES), default="270p")
    parser.add_argument("--scenes", type=int, default=24)
    parser.add_argument("--runways", type=lambda text: [float(part.rstrip("s")) for part in
                                                        text.split(",")],
                        metavar="S,S,S", help="the fixed runways, seconds (default: 2, 4 and 8 steps)")
    parser.add_argument("--memory-mib", type=int, default=512, help="the loader's budget")
    parser.add_argument("--heap", type=int, default=0, metavar="OBJECTS",
                        help="so many Python objects live beside each training (default: none)")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--strict", action="store_true", help="exit 1 when a target is missed")
    parser.add_argument("--json", action="store_true", help="print summary.json instead of the table")
    parser.add_argument("--quiet", action="store_true")
    return parser.parse_args()


def main():
    try:
        options = parse_arguments()
    except SystemExit as error:
        return EXIT_USAGE if error.code else 0
    for name in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(name, lambda number, frame: sys.exit(128 + number))
    if importlib.util.find_spec("torch") is None:
        print("forebay demo: PyTorch is missing: apt-get install python3-torch", file=sys.stderr)
        return EXIT_ENVIRONMENT
    talk = Talk(options.quiet)
    try:
        result = run_demo(options, talk)
    except KeyboardInterrupt:
        print("\nforebay demo: interrupted; the same command starts over", file=sys.stderr)
        return 130
    except dataset.DatasetError as error:
        print(f"forebay demo: {error}", file=sys.stderr)
        return EXIT_ENVIRONMENT
    except processes.PartFailed as error:
        print(f"forebay demo: {error}", file=sys.stderr)
        return EXIT_OTHER
    print(json.dumps(result) if options.json else table.text(result))
    if not options.json:
        print(f"\n{options.output / 'report.html'}  {options.output / 'summary.json'}")
    missed = [target for target in result["targets"] if not target["met"]]
    return EXIT_FAILED if missed and options.strict else 0


if __name__ == "__main__":
    sys.exit(main())
