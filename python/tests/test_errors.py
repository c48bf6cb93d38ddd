import pickle

import pytest

import forebay as fb
from forebay import errors

PYTHONS_OWN = {
    "invalid_argument": ValueError,
    "not_found": FileNotFoundError,
    "permission_denied": PermissionError,
    "precondition_failed": OSError,
    "unavailable": ConnectionError,
    "deadline_exceeded": TimeoutError,
    "resource_exhausted": MemoryError,
    "data_loss": OSError,
    "unimplemented": NotImplementedError,
    "internal": RuntimeError,
}


@pytest.mark.parametrize("code, own", PYTHONS_OWN.items())
def test_every_code_has_a_class_that_is_also_pythons_own(code, own):
    error = errors.from_status(code, f"{code}: text", "s3://b/k", (3, 9), 2, "RID")
    assert isinstance(error, fb.ForebayError) and isinstance(error, own)
    assert (error.code, error.uri, error.range) == (code, "s3://b/k", (3, 9))
    assert (error.attempt, error.request_id) == (2, "RID")
    assert str(error) == f"{code}: text"


def test_errors_keep_what_they_know_when_they_cross_processes():
    error = errors.from_status("not_found", "text", "s3://b/k", (3, 9), 2, "RID")
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is fb.NotFoundError and str(copy) == "text"
    assert (copy.uri, copy.range, copy.attempt, copy.request_id) == ("s3://b/k", (3, 9), 2, "RID")


def test_a_missing_object_names_its_uri(tmp_path):
    uri = (tmp_path / "nothing.mp4").as_uri()
    with pytest.raises(FileNotFoundError) as raised:
        fb.Video(uri)
    assert raised.value.code == "not_found"
    assert "nothing.mp4" in raised.value.uri and "nothing.mp4" in str(raised.value)


def test_a_data_set_without_catalog_says_how_to_make_one(tmp_path):
    with pytest.raises(fb.NotFoundError, match="forebay index"):
        fb.Loader(fb.VideoClips(tmp_path.as_uri() + "/"))


@pytest.mark.parametrize(
    "arguments, named",
    [
        (dict(frames=0), "frames"),
        (dict(step=1.5), "step"),
        (dict(cameras="front"), "cameras"),
        (dict(cameras=[]), "cameras"),
        (dict(cameras=["a", "a"]), "twice"),
        (dict(cameras=["_sample"]), "_sample"),
        (dict(pattern="{scene/{camera}.mp4"), "brace"),
        (dict(pattern="{scene}/{scene}.mp4"), "twice"),
        (dict(resize=224), "resize"),
        (dict(layout="NCHW"), "layout"),
        (dict(labels=3), "labels"),
    ],
)
def test_clips_refuse_what_cannot_be_meant(arguments, named):
    with pytest.raises(ValueError, match=named):
        fb.VideoClips("s3://bucket/drives/", **arguments)


@pytest.mark.parametrize(
    "arguments, named",
    [
        (dict(batch_size=0), "batch_size"),
        (dict(batch_size="4"), "batch_size"),
        (dict(seed=-1), "seed"),
        (dict(epochs=1.0), "epochs"),
        (dict(shuffle=1), "shuffle"),
        (dict(output="jax"), "output"),
        (dict(device="cuda:0"), "device"),
        (dict(rank=1), "world_size"),
        (dict(rank=4, world_size=4), "rank"),
        (dict(memory="lots"), "memory"),
        (dict(runway="far"), "runway"),
        (dict(on_bad_sample="skip"), "on_bad_sample"),
        (dict(num_workers=-1), "num_workers"),
        (dict(timeout="soon"), "timeout"),
    ],
)
def test_the_loader_refuses_what_cannot_be_meant(arguments, named):
    with pytest.raises(ValueError, match=named):
        fb.Loader(fb.VideoClips("s3://bucket/drives/"), **arguments)


def test_a_loader_of_something_else_is_refused():
    with pytest.raises(ValueError, match="VideoClips"):
        fb.Loader("s3://bucket/drives/")


def test_unknown_storage_options_are_refused_with_the_known_ones():
    with pytest.raises(ValueError, match="endpoint_url"):
        fb.Video("s3://bucket/a.mp4", storage_options={"endpoint": "x"})
    with pytest.raises(ValueError, match="max_attempts.*int"):
        fb.Video("s3://bucket/a.mp4", storage_options={"max_attempts": "x"})


def test_too_little_memory_names_what_is_needed(clips):
    with pytest.raises(fb.InvalidArgumentError, match="needs"):
        fb.Loader(clips, batch_size=4, memory="4KiB")
