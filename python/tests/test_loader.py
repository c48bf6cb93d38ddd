import gc
import json
import os
import pickle
import re
import shutil
import threading
import weakref

import numpy as np
import pytest
from conftest import CAMERAS, HEIGHT, SCENES, WIDTH, path_of

import forebay as fb

PER_SCENE = 18  # clips of 4 frames, 2 apart, from frames 0, 3, .. 51 of 60
SAMPLES = 3 * PER_SCENE


def samples_of(batches):
    return [batch["_sample"].tolist() for batch in batches]


def flat(lists):
    return [item for items in lists for item in items]


def same(batch, other):
    assert batch.keys() == other.keys()
    return all(np.array_equal(batch[name], other[name]) for name in batch)


def copies(batches):
    return [{name: np.array(array) for name, array in batch.items()} for batch in batches]


def test_a_batch_holds_every_camera_and_the_three_fields(clips):
    with fb.Loader(clips, batch_size=5, epochs=1, drop_last=False) as loader:
        batch = next(iter(loader))
        assert list(batch) == [*CAMERAS, "_sample", "_epoch", "_pad"]
        for camera in CAMERAS:
            assert batch[camera].shape == (5, 4, HEIGHT, WIDTH, 3)
            assert batch[camera].dtype == np.uint8
        assert batch["_sample"].dtype == np.int64 and batch["_sample"].shape == (5,)
        assert batch["_epoch"].dtype == np.int32 and batch["_epoch"].tolist() == [0] * 5
        assert batch["_pad"].dtype == np.bool_ and not batch["_pad"].any()


def test_clips_are_exactly_the_videos_frames(drives, clips):
    videos = {
        (scene, camera): fb.Video(f"{drives}{scene}/{camera}.mp4")
        for scene in SCENES
        for camera in CAMERAS
    }
    with fb.Loader(clips, batch_size=3, epochs=1, seed=5) as loader:
        for batch in loader:
            for row, sample in enumerate(batch["_sample"].tolist()):
                scene, start = SCENES[sample // PER_SCENE], 3 * (sample % PER_SCENE)
                for camera in CAMERAS:
                    frames = videos[scene, camera].frames([start, start + 2, start + 4, start + 6])
                    assert np.array_equal(batch[camera][row], frames), (scene, camera, start)


def test_an_epoch_holds_every_sample_once_in_an_order_of_its_seed(clips):
    def order(**arguments):
        with fb.Loader(clips, batch_size=3, epochs=1, **arguments) as loader:
            return flat(samples_of(loader))

    shuffled = order(seed=1)
    assert sorted(shuffled) == list(range(SAMPLES)) and shuffled != sorted(shuffled)
    assert order(seed=1) == shuffled
    assert order(seed=2) != shuffled
    assert order(shuffle=False) == list(range(SAMPLES))


def test_len_is_exact_and_each_iter_is_an_epoch(clips):
    with fb.Loader(clips, batch_size=10, epochs=2, seed=3) as loader:
        assert len(loader) == 5
        first, second, third = (copies(loader) for _ in range(3))
        assert (len(first), len(second), len(third)) == (5, 5, 0)
        assert {batch["_epoch"][0] for batch in first} == {0}
        assert {batch["_epoch"][0] for batch in second} == {1}
        assert samples_of(first) != samples_of(second)


def test_without_epochs_it_never_ends(clips):
    with fb.Loader(clips, batch_size=27, epochs=None) as loader:
        epochs = [int(batch["_epoch"][0]) for _ in range(4) for batch in loader]
        assert epochs == [0, 0, 1, 1, 2, 2, 3, 3]


def test_ranks_take_disjoint_slices_of_each_step(clips):
    def batches(rank, world_size, batch_size):
        with fb.Loader(clips, batch_size=batch_size, seed=4, epochs=1, rank=rank,
                       world_size=world_size) as loader:  # fmt: skip
            assert loader.rank == rank and loader.world_size == world_size
            return samples_of(loader)

    alone = batches(0, 1, 6)
    ranks = [batches(rank, 3, 2) for rank in range(3)]
    assert [flat(step) for step in zip(*ranks)] == alone


def test_an_incomplete_last_batch_is_padded_from_the_start(clips):
    with fb.Loader(clips, batch_size=10, epochs=1, drop_last=False, seed=9) as loader:
        assert len(loader) == 6
        batches = copies(loader)
    order = flat(samples_of(batches))
    padded = flat(batch["_pad"].tolist() for batch in batches)
    real = [sample for sample, pad in zip(order, padded) if not pad]
    assert sorted(real) == list(range(SAMPLES))
    repeats = [sample for sample, pad in zip(order, padded) if pad]
    assert repeats == order[: len(repeats)]


def test_ranks_get_equal_parts_of_a_padded_last_batch(clips):
    parts = []
    for rank in range(4):
        with fb.Loader(clips, batch_size=4, epochs=1, drop_last=False, rank=rank,
                       world_size=4) as loader:  # fmt: skip
            batches = copies(loader)
            assert len(batches) == len(loader)
            parts.append(batches[-1])
    assert len({len(part["_sample"]) for part in parts}) == 1
    assert len({part["front"].shape for part in parts}) == 1


def test_resume_in_the_middle_of_an_epoch_gives_equal_arrays(clips):
    with fb.Loader(clips, batch_size=4, seed=7, epochs=2) as loader:
        iterator = iter(loader)
        for _ in range(5):
            next(iterator)
        state = json.loads(json.dumps(loader.state_dict()))
        assert len(json.dumps(state)) < 1024
        rest = copies(iterator) + copies(loader)
    for _ in range(2):  # resuming is idempotent
        with fb.Loader(clips, batch_size=4, seed=7, epochs=2) as loader:
            loader.load_state_dict(state)
            assert loader.state_dict() == state
            resumed = copies(loader) + copies(loader)
        assert len(resumed) == len(rest) == 8 + 13
        assert all(map(same, resumed, rest))


def test_resume_on_another_world_size_goes_on_with_the_same_samples(clips):
    with fb.Loader(clips, batch_size=6, seed=7, epochs=1) as loader:
        iterator = iter(loader)
        next(iterator), next(iterator)
        state = loader.state_dict()
        rest = flat(samples_of(iterator))
    ranks = []
    for rank in range(3):
        with fb.Loader(clips, batch_size=2, seed=7, epochs=1, rank=rank, world_size=3) as loader:
            loader.load_state_dict(state)
            ranks.append(samples_of(loader))
    assert flat(flat(step) for step in zip(*ranks)) == rest


def test_the_state_is_the_same_on_every_rank(clips):
    states = []
    for rank in range(2):
        with fb.Loader(clips, batch_size=3, rank=rank, world_size=2) as loader:
            iterator = iter(loader)
            next(iterator), next(iterator)
            states.append(loader.state_dict())
    assert states[0] == states[1] and states[0]["position"] == 12


def test_a_state_counts_what_was_returned_and_not_what_was_fetched(clips):
    with fb.Loader(clips, batch_size=3) as loader:
        assert loader.state_dict()["position"] == 0
        iterator = iter(loader)
        next(iterator)
        assert loader.state_dict()["position"] == 3


def test_the_end_of_an_epoch_is_a_place_to_resume_from(clips):
    with fb.Loader(clips, batch_size=18, seed=2) as loader:
        samples_of(loader)
        state = loader.state_dict()
        assert (state["epoch"], state["position"]) == (1, 0)
        second = samples_of(loader)
    with fb.Loader(clips, batch_size=18, seed=2) as loader:
        loader.load_state_dict(state)
        assert samples_of(loader) == second


@pytest.mark.parametrize(
    "change", [dict(seed=8), dict(shuffle=False), dict(dataset=dict(frames=5)),
               dict(dataset=dict(cameras=["left"]))],
)  # fmt: skip
def test_a_state_of_something_else_is_refused(drives, clips, change):
    with fb.Loader(clips, batch_size=3, seed=7) as loader:
        state = loader.state_dict()
    arguments = dict(seed=7) | change
    other = fb.VideoClips(drives, **(dict(frames=4, step=2, hop=3) | arguments.pop("dataset", {})))
    with fb.Loader(other, batch_size=3, **arguments) as loader:
        with pytest.raises(fb.InvalidArgumentError):
            loader.load_state_dict(state)


@pytest.mark.parametrize("bad", [None, {}, {"epoch": 1}, 7])
def test_what_is_no_state_is_refused(clips, bad):
    with fb.Loader(clips) as loader, pytest.raises(fb.InvalidArgumentError, match="state"):
        loader.load_state_dict(bad)


def test_a_field_of_the_wrong_type_is_named(clips):
    with fb.Loader(clips) as loader:
        for name, value in dict(position="x", epoch=1.5, seed=None, schema="1").items():
            with pytest.raises(fb.InvalidArgumentError, match=name):
                loader.load_state_dict({**loader.state_dict(), name: value})
        for name in ("position", "epoch", "seed", "schema"):
            with pytest.raises(fb.InvalidArgumentError, match=name):
                loader.load_state_dict({**loader.state_dict(), name: True})


def test_a_state_beyond_the_last_epoch_is_refused(clips):
    with fb.Loader(clips, batch_size=18, seed=2, epochs=2) as loader:
        state = loader.state_dict()
        for place in (dict(epoch=3), dict(epoch=2, position=18), dict(epoch=2**40)):
            with pytest.raises(fb.InvalidArgumentError, match="beyond this loader's 2 epochs"):
                loader.load_state_dict(state | place)
        loader.load_state_dict(state | dict(epoch=2))  # the end itself
        assert samples_of(loader) == []
        loader.load_state_dict(state | dict(epoch=1))
        assert len(samples_of(loader)) == 3


def test_set_epoch_goes_to_its_start(clips):
    with fb.Loader(clips, batch_size=18, seed=2) as loader:
        epochs = [samples_of(loader) for _ in range(3)]
        loader.set_epoch(1)
        assert samples_of(loader) == epochs[1]
        iterator = iter(loader)
        next(iterator)
        loader.set_epoch(0)
        assert samples_of(loader) == epochs[0]
        with pytest.raises(fb.InvalidArgumentError, match="left"):
            next(iterator)


def test_set_epoch_keeps_a_position_just_loaded(clips):
    with fb.Loader(clips, batch_size=18, seed=2) as loader:
        iterator = iter(loader)
        next(iterator)
        state = loader.state_dict()
        rest = samples_of(iterator)
    with fb.Loader(clips, batch_size=18, seed=2) as loader:
        loader.load_state_dict(state)
        loader.set_epoch(state["epoch"])
        assert samples_of(loader) == rest


def test_an_epoch_left_early_counts_as_done(clips):
    with fb.Loader(clips, batch_size=18, seed=2) as loader:
        epochs = [samples_of(loader) for _ in range(3)]
        loader.set_epoch(0)
        for _ in loader:
            break
        assert samples_of(loader) == epochs[1]
        taken = [batch["_sample"].tolist() for _, batch in zip(range(len(loader)), loader)]
        assert taken == epochs[2]  # zip never asked for the end
        assert next(iter(loader))["_epoch"][0] == 3


def test_an_exception_in_the_loops_body_leaves_the_iterator_usable(clips):
    with fb.Loader(clips, batch_size=4, seed=2) as loader:
        whole = samples_of(loader)
        loader.set_epoch(0)
        iterator, taken = iter(loader), []
        with pytest.raises(ZeroDivisionError):
            for batch in iterator:
                taken.append(batch["_sample"].tolist())
                if len(taken) == 3:
                    1 / 0
        taken += samples_of(iterator)
        assert taken == whole


def test_numpy_output_is_writable_and_shares_no_batch(clips):
    with fb.Loader(clips, batch_size=2, shuffle=False, epochs=1) as loader:
        iterator = iter(loader)
        first, second = next(iterator), next(iterator)
        before = second["front"].copy()
        first["front"][:] = 0
        assert np.array_equal(second["front"], before)


def test_arrays_stay_valid_after_close_and_del(clips):
    loader = fb.Loader(clips, batch_size=2, epochs=1)
    batch = next(iter(loader))
    before = batch["front"].copy()
    loader.close()
    del loader
    gc.collect()
    assert np.array_equal(batch["front"], before)


def test_a_closed_loader_says_so(clips):
    loader = fb.Loader(clips)
    iterator = iter(loader)
    next(iterator)
    loader.close()
    loader.close()
    with pytest.raises(fb.CancelledError, match="closed"):
        next(iterator)
    with pytest.raises(fb.CancelledError, match="closed"):
        len(loader)


def test_close_from_another_thread_wakes_the_consumer(clips):
    loader = fb.Loader(clips, batch_size=4)
    failures = []

    def consume():
        try:
            while True:
                for _ in loader:
                    pass
        except fb.CancelledError as error:
            failures.append(error)

    thread = threading.Thread(target=consume)
    thread.start()
    loader.close()
    thread.join(20)
    assert not thread.is_alive() and len(failures) == 1


def test_more_held_batches_than_the_limit_is_an_error_that_ends_with_them(clips):
    with fb.Loader(clips, batch_size=2, held_limit=3) as loader:
        iterator = iter(loader)
        held = [next(iterator) for _ in range(3)]
        with pytest.raises(fb.ResourceExhaustedError, match="3"):
            next(iterator)
        held.pop()
        assert next(iterator) is not None


def test_a_batch_is_given_back_when_its_last_view_dies(clips):
    with fb.Loader(clips, batch_size=2, held_limit=1, epochs=1) as loader:
        iterator = iter(loader)
        for _ in range(10):
            view = next(iterator)["front"][0]
            with pytest.raises(fb.ResourceExhaustedError):
                next(iterator)
            del view
        assert loader.state_dict()["position"] == 20


def test_torch_output_shares_memory_and_has_bools(clips):
    import torch

    with fb.Loader(clips, batch_size=4, drop_last=False, output="torch", epochs=1) as loader:
        with fb.Loader(clips, batch_size=4, drop_last=False, epochs=1) as plain:
            for batch, expected in zip(loader, plain):
                assert batch["_pad"].dtype == torch.bool
                assert batch["front"].dtype == torch.uint8
                assert all(np.array_equal(batch[k].numpy(), expected[k]) for k in expected)


def test_dlpack_output_is_taken_without_a_copy(clips):
    import torch
    from torch.utils.dlpack import from_dlpack

    with fb.Loader(clips, batch_size=2, output="dlpack", epochs=1) as loader:
        array = next(iter(loader))["front"]
        assert array.__dlpack_device__() == (1, 0)
        as_numpy, as_torch = np.from_dlpack(array), from_dlpack(array)
        assert as_numpy.ctypes.data == as_torch.data_ptr()
        assert as_torch.shape == torch.Size((2, 4, HEIGHT, WIDTH, 3))


def test_no_python_object_is_made_for_a_sample_or_a_frame(drives):
    def objects(batch_size, frames):
        clips = fb.VideoClips(drives, frames=frames)
        with fb.Loader(clips, batch_size=batch_size) as loader:
            iterator = iter(loader)
            batch = next(iterator)
            gc.collect()
            before = len(gc.get_objects())
            batch = next(iterator)  # noqa: F841 (held)
            return len(gc.get_objects()) - before

    assert objects(16, 20) == objects(1, 1)


def test_a_loader_dies_with_its_last_reference(clips):
    loader = fb.Loader(clips)
    next(iter(loader))
    gone = weakref.ref(loader)
    del loader
    assert gone() is None


def test_tchw_and_resize(drives):
    clips = fb.VideoClips(drives, frames=2, resize=(24, 40), layout="TCHW")
    with fb.Loader(clips, batch_size=3) as loader:
        assert next(iter(loader))["left"].shape == (3, 2, 3, 24, 40)
    plain = fb.VideoClips(drives, frames=2, resize=(24, 40))
    with fb.Loader(clips, batch_size=3) as chw, fb.Loader(plain, batch_size=3) as hwc:
        left, expected = next(iter(chw))["left"], next(iter(hwc))["left"]
        assert np.array_equal(left, np.moveaxis(expected, -1, 2))


def test_cameras_come_in_the_order_asked_for(drives):
    with fb.Loader(fb.VideoClips(drives, cameras=["left", "front"])) as loader:
        assert list(next(iter(loader)))[:2] == ["left", "front"]
    with pytest.raises(fb.ForebayError, match="rear"):
        fb.Loader(fb.VideoClips(drives, cameras=["rear"]))


@pytest.mark.parametrize("runway", ["auto", "off", 0, 0.5, "200ms"])
def test_the_runway_changes_nothing_of_what_comes(clips, runway):
    with fb.Loader(clips, batch_size=4, seed=1, epochs=1) as loader:
        expected = copies(loader)
    with fb.Loader(clips, batch_size=4, seed=1, epochs=1, runway=runway) as loader:
        assert all(map(same, copies(loader), expected))
        assert isinstance(loader.runway_reason, str)


def test_metrics_are_a_flat_dict_of_numbers(clips):
    with fb.Loader(clips, batch_size=4, epochs=1) as loader:
        samples_of(loader)
        metrics = loader.metrics()
    assert all(isinstance(value, float) for value in metrics.values())
    assert all(name.startswith("forebay_") for name in metrics)
    assert metrics["forebay_samples_total"] == 52
    gets = metrics['forebay_store_requests_total{op="get",code="ok"}']
    assert gets > 0
    assert metrics['forebay_store_bytes_total{op="get"}'] >= metrics["forebay_used_bytes_total"] > 0
    times = "forebay_store_request_duration_seconds"
    assert metrics[times + '_count{op="get",phase="ttfb"}'] == gets
    assert metrics[times + '{op="get",phase="ttfb",quantile="0.99"}'] > 0
    assert metrics["forebay_store_requests_in_flight"] == 0


def test_a_pickled_loader_goes_on_where_it_stood(clips):
    with fb.Loader(clips, batch_size=4, seed=3, epochs=1) as loader:
        assert pickle.loads(pickle.dumps(clips)) == clips
        iterator = iter(loader)
        next(iterator), next(iterator)
        copy = pickle.loads(pickle.dumps(loader))
        assert samples_of(copy) == samples_of(iterator)
        copy.close()


def test_arguments_of_a_dataloader_are_accepted(clips):
    with fb.Loader(clips, num_workers=4, prefetch_factor=2, pin_memory=True) as loader:
        assert loader.batch_size == 1 and loader.drop_last is True and loader.dataset is clips


@pytest.fixture
def damaged(drives, tmp_path):
    """The clips of a copy in which half of beta/left.mp4 was zeroed after it was indexed."""
    root = tmp_path / "damaged"
    shutil.copytree(path_of(drives), root)
    fb.index(root.as_uri() + "/")
    video = root / "beta" / "left.mp4"
    stamp = video.stat()
    body = bytearray(video.read_bytes())
    start = body.index(b"mdat") + 4
    zeroed = (len(body) - start) // 2
    body[start : start + zeroed] = bytes(zeroed)
    video.write_bytes(body)
    os.utime(video, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))  # so that its ETag still fits
    return fb.VideoClips(root.as_uri() + "/", frames=4, step=2, hop=3)


def test_a_bad_sample_is_an_error_that_names_its_key(damaged):
    with fb.Loader(damaged, batch_size=1, shuffle=False, epochs=1) as loader:
        with pytest.raises(fb.DataLossError, match="beta/left.mp4") as raised:
            samples_of(loader)
        error, position = raised.value, loader.state_dict()["position"]
    assert error.uri.endswith("beta/left.mp4") and error.range[0] < error.range[1]
    video = path_of(damaged.uri) / "beta" / "left.mp4"
    assert error.range[1] <= video.stat().st_size
    assert f"batch {position} of epoch 0: sample {position} (" in str(error)
    assert re.search(r"ETag \S+: ", str(error))


def test_a_batch_that_failed_is_not_consumed_and_comes_when_asked_again(drives, tmp_path):
    root = tmp_path / "away"
    shutil.copytree(path_of(drives), root)
    fb.index(root.as_uri() + "/")
    clips = fb.VideoClips(root.as_uri() + "/", frames=4, step=2, hop=3)
    video, away = root / "beta" / "left.mp4", tmp_path / "left.mp4"
    video.rename(away)
    with fb.Loader(clips, batch_size=4, shuffle=False, epochs=1, drop_last=False) as loader:
        batches, samples = iter(loader), []
        for _ in range(PER_SCENE // 4):
            samples += next(batches)["_sample"].tolist()
        for _ in range(2):
            with pytest.raises(fb.NotFoundError, match="ETag .*beta/left.mp4") as raised:
                next(batches)
            assert raised.value.range is not None and raised.value.attempt == 1
            assert loader.state_dict()["position"] == len(samples)
        away.rename(video)
        for batch in batches:
            samples += batch["_sample"][~batch["_pad"]].tolist()
    assert samples == list(range(SAMPLES))


def test_bad_samples_are_skipped_when_asked(damaged):
    with fb.Loader(damaged, batch_size=1, shuffle=False, epochs=1,
                   on_bad_sample=fb.skip(max=50)) as loader:  # fmt: skip
        samples, skips = [], []
        for batch in loader:
            samples += batch["_sample"].tolist()
            skips = loader.state_dict()["skips"]
    assert len(samples) == SAMPLES
    assert skips and all(PER_SCENE <= position < 2 * PER_SCENE for position in skips)
    assert not set(skips) & set(samples)
    with fb.Loader(damaged, batch_size=1, shuffle=False, epochs=1,
                   on_bad_sample=fb.skip(max=1)) as loader:  # fmt: skip
        with pytest.raises(fb.ForebayError, match="beta/left.mp4"):
            samples_of(loader)


def test_an_object_that_changed_since_it_was_indexed_is_an_error(drives, tmp_path):
    root = tmp_path / "changed"
    shutil.copytree(path_of(drives), root)
    fb.index(root.as_uri() + "/")
    video = root / "alpha" / "front.mp4"
    video.write_bytes(video.read_bytes() + b"more")
    clips = fb.VideoClips(root.as_uri() + "/", frames=4)
    with fb.Loader(clips, shuffle=False) as loader:
        with pytest.raises(fb.PreconditionFailedError, match="alpha/front.mp4"):
            next(iter(loader))
