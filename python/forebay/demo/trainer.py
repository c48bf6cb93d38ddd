"""One run of the demo's training job, in a process of its own: `python -m forebay.demo.trainer`.

Reads its task as one JSON object from stdin, writes JSON Lines to stdout: {"event": "progress"} while
it trains, {"event": "result"} at the end. A process per run, so that memory is each run's own.

Task: mode "train" (a measured training run), "decode" (seconds that a sample's decode takes while the
training core is busy), or "cold" (times from nothing to the first batch).
"""

import contextlib
import gc
import json
import os
import sys
import threading
import time
import urllib.request

import torch

import forebay as fb

from . import model as models
from .summary import RUNWAY

PROGRESS_EVERY = 20
SETTLE_SAMPLES = 6  # of a decode measurement: until decoding is what limits


class Cores:
    """The training core and the others. With a single core, everything shares it."""

    def __init__(self):
        cores = sorted(os.sched_getaffinity(0))
        self.training = {cores[0]}
        self.others = set(cores[1:]) or {cores[0]}

    def use(self, cores):
        """For the calling thread, and the threads that it starts from now on."""
        os.sched_setaffinity(0, cores)


class FaultServer:
    """What the fault server counted; and the one thing that a run changes on it."""

    def __init__(self, control):
        self._control = control

    def stats(self):
        with urllib.request.urlopen(self._control + "/stats", timeout=10) as answer:
            return json.load(answer)

    def scale_latency(self, factor):
        body = json.dumps({"latency_scale": factor}).encode()
        request = urllib.request.Request(self._control + "/rules", data=body, method="POST")
        urllib.request.urlopen(request, timeout=10).close()

    def log(self, after=0):
        url = f"{self._control}/log?after={after}"
        with urllib.request.urlopen(url, timeout=10) as answer:
            return json.load(answer)["requests"]

    def last_request(self):
        return max((entry["number"] for entry in self.log()), default=0)


class Heap:
    """Objects beside the training, as a program with large tables of them has, and new ones in
    every step, so that collections are due."""

    NEW_EACH_STEP = 2000

    def __init__(self, objects):
        self._kept = [[number] for number in range(objects)]

    def step(self):
        for number in range(self.NEW_EACH_STEP if self._kept else 0):
            one = [number]
            one.append(one)  # only a collection frees it


class GcClock:
    """Time spent in Python's garbage collector."""

    def __init__(self):
        self.seconds = 0.0
        self._started = 0.0

    def __call__(self, phase, info):
        if phase == "start":
            self._started = time.perf_counter()
        else:
            self.seconds += time.perf_counter() - self._started


def memory_bytes(field):
    """`VmRSS` (now) or `VmHWM` (the most since reset_peak)."""
    with open("/proc/self/status", encoding="ascii") as status:
        for line in status:
            if line.startswith(field + ":"):
                return int(line.split()[1]) * 1024
    return 0


def reset_peak():
    with contextlib.suppress(OSError), open("/proc/self/clear_refs", "w", encoding="ascii") as file:
        file.write("5")


def emit(event, **fields):
    print(json.dumps({"event": event, **fields}), flush=True)


def emit_progress(phase, rows):
    """The loss and wait of the last steps; the first batch of a loader is no step's wait."""
    recent = rows[-PROGRESS_EVERY:]
    waits = [row["wait_s"] for row in recent if not row["first"]]
    emit("progress", phase=phase["name"], step=len(rows), steps=phase["steps"],
         loss=sum(row["loss"] for row in recent) / len(recent),
         wait_ms=1e3 * sum(waits) / max(len(waits), 1))


def open_loader(task, runway):
    clips = fb.VideoClips(task["uri"], pattern=task["pattern"], cameras=task["cameras"],
                          frames=task["frames"], step=task["step"], hop=task["hop"])
    return fb.Loader(clips, batch_size=1, seed=task["seed"], runway=runway, memory=task["memory"],
                     output="torch", decode_threads=1)


def endless(loader):
    """Batches over epochs. Each `next` of it is one `next` of the loader, but at an epoch's end."""
    while True:
        yield from loader


class Trainer:
    """The model, and steps of a set length that do real work all the time."""

    def __init__(self, task):
        torch.set_num_threads(1)
        torch.manual_seed(task["seed"])
        self._cameras = task["cameras"]
        self._model = models.NextFrame()
        self._optimizer = torch.optim.Adam(self._model.parameters(), lr=3e-3)
        self._pass_s = 0.0

    def warm_up(self, frames):
        """What torch allocates and compiles at first use is not the loader's."""
        spare = models.NextFrame()
        optimizer = torch.optim.Adam(spare.parameters())
        clips = models.made_up_clips(len(self._cameras), frames)
        for _ in range(3):
            started = time.perf_counter()
            models.train_pass(spare, optimizer, clips)
            self._pass_s = time.perf_counter() - started

    def step(self, batch, length_s):
        """Passes over the batch for `length_s` seconds; the first pass's loss."""
        started = time.perf_counter()
        clips = models.to_model_input(batch, self._cameras)
        loss = None
        while True:
            before = time.perf_counter()
            value = models.train_pass(self._model, self._optimizer, clips)
            loss = value if loss is None else loss
            now = time.perf_counter()
            self._pass_s = 0.8 * self._pass_s + 0.2 * (now - before)
            if now - started + self._pass_s / 2 >= length_s:
                return loss


def train(task, cores):
    """A measured run. Its phases follow each other on one loader; the latency may change between."""
    trainer = Trainer(task)
    trainer.warm_up(task["frames"])
    server = FaultServer(task["control"])
    heap = Heap(task["heap"])
    gc_clock = GcClock()
    gc.callbacks.append(gc_clock)
    gc.collect()
    base_memory = memory_bytes("VmRSS")
    reset_peak()
    cores.use(cores.others)  # the loader's threads stay there
    opened = time.perf_counter()
    phases = []
    with open_loader(task, task["runway"]) as loader, fb.gc_guard():
        batches = iter(endless(loader))
        for number, phase in enumerate(task["phases"]):
            if phase.get("latency_scale"):
                server.scale_latency(phase["latency_scale"])
            logged = server.last_request()
            before = Snapshot(server, loader, gc_clock)
            rows = []
            for step in range(phase["steps"]):
                first = number == 0 and step == 0
                collected = gc_clock.seconds
                asked = opened if first else time.perf_counter()
                batch = next(batches)
                got = time.perf_counter()
                if first:
                    cores.use(cores.training)
                ahead = loader.metrics().get(RUNWAY, 0.0)
                worked = time.perf_counter()
                loss = trainer.step(batch, task["step_s"])
                heap.step()
                del batch
                ended = time.perf_counter()
                rows.append({"first": first, "at_s": got - opened, "wait_s": got - asked, "step_s": ended - worked,
                             "loss": loss, "gc_s": gc_clock.seconds - collected,
                             "runway_s": ahead})
                if (step + 1) % PROGRESS_EVERY == 0 or step + 1 == phase["steps"]:
                    emit_progress(phase, rows)
            phases.append({"name": phase["name"], "latency_scale": phase.get("latency_scale", 1),
                           "starts_loader": number == 0, "steps": rows, "before": before.values,
                           "after": Snapshot(server, loader, gc_clock).values,
                           "runway_reason": loader.runway_reason,
                           "drawn_ms": [entry["drawn_ms"] for entry in server.log(logged)
                                        if entry["drawn_ms"] is not None]})
    gc.callbacks.remove(gc_clock)
    emit("result", phases=phases, base_memory_bytes=base_memory,
         peak_memory_bytes=memory_bytes("VmHWM") - base_memory)


class Snapshot:
    """All counters at one moment."""

    def __init__(self, server, loader, gc_clock):
        self.values = {"metrics": dict(loader.metrics()), "server": server.stats(),
                       "gc_s": gc_clock.seconds, "clock_s": time.perf_counter()}


def measure_decode(task, cores):
    """Seconds from one decoded sample to the next while decoding is what limits: first with the
    training core idle, as it is while the first batch comes, then as busy as it will be."""
    trainer = Trainer(task)
    trainer.warm_up(task["frames"])
    made_up = {camera: (torch.rand(1, task["frames"], *task["picture"], 3) * 255).byte()
               for camera in task["cameras"]}
    stop = threading.Event()

    def work():
        cores.use(cores.training)
        while not stop.is_set():
            trainer.step(made_up, 0.1)

    cores.use(cores.others)
    worker = threading.Thread(target=work)
    with open_loader(task, task["runway"]) as loader:
        batches = iter(endless(loader))
        idle_s = seconds_per_sample(batches, task["samples"])
        worker.start()
        try:
            busy_s = seconds_per_sample(batches, task["samples"])
        finally:
            stop.set()
            worker.join()
    emit("result", decode_s=busy_s, idle_decode_s=idle_s)


def seconds_per_sample(batches, samples):
    for _ in range(SETTLE_SAMPLES):
        next(batches)
    started = time.perf_counter()
    for _ in range(samples):
        next(batches)
    return (time.perf_counter() - started) / samples


def measure_cold_starts(task, cores):
    """From nothing but the imports to the first batch, again and again; nothing is kept between."""
    server = FaultServer(task["control"])
    cores.use(cores.others)
    starts = []
    for number in range(task["starts"]):
        logged = server.last_request()
        started = time.perf_counter()
        loader = open_loader({**task, "seed": task["seed"] + number}, task["runway"])
        opened = time.perf_counter()
        next(iter(loader))
        first = time.perf_counter()
        starts.append({"open_s": opened - started, "first_batch_s": first - started,
                       "log": server.log(logged)})
        loader.close()
    emit("result", starts=starts)


def main():
    task = json.load(sys.stdin)
    run = {"train": train, "decode": measure_decode, "cold": measure_cold_starts}[task["mode"]]
    try:
        run(task, Cores())
    except fb.ForebayError as error:
        emit("error", text=str(error))
        sys.exit(1)


if __name__ == "__main__":
    main()
