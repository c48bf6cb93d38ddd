import pytest

import forebay as fb
from forebay import units
from forebay.units import parse_bytes, parse_runway, parse_seconds


@pytest.mark.parametrize(
    "text, size",
    [
        ("2GiB", 2 << 30),
        ("2GB", 2_000_000_000),
        ("1.5 KiB", 1536),
        ("10kb", 10_000),
        ("7", 7),
        ("7B", 7),
        (1 << 40, 1 << 40),
    ],
)
def test_sizes_are_read_as_they_are_written(text, size):
    assert parse_bytes(text) == size


@pytest.mark.parametrize("bad", ["", "GiB", "2 GiX", "-1", -1, 1.5, True, None, "1e99TiB", 2**64])
def test_what_is_no_size_is_refused_with_its_name(bad):
    with pytest.raises(fb.InvalidArgumentError, match="memory="):
        parse_bytes(bad, "memory")


@pytest.mark.parametrize(
    "text, seconds",
    [("1.5s", 1.5), ("200ms", 0.2), (3, 3.0), ("2min", 120.0), ("off", 0.0), ("auto", -1.0), (0, 0)],
)
def test_runway_takes_durations_and_two_words(text, seconds):
    assert parse_runway(text) == seconds


@pytest.mark.parametrize("bad", ["soon", -1, "-1s", float("inf"), float("nan"), "1y", None])
def test_what_is_no_duration_is_refused(bad):
    with pytest.raises(fb.InvalidArgumentError, match="timeout="):
        parse_seconds(bad, "timeout")


@pytest.mark.parametrize(
    "text, expected",
    [("1MiB", 2**20), ("2.5G", 2_500_000_000), ("64 KiB/s", 65536), ("3MB", 3_000_000), (7, 7)],
)
def test_a_bandwidth_is_a_size_a_second(text, expected):
    from forebay.storage import to_store_options

    assert units.parse_rate(text) == expected
    assert to_store_options({"node_bandwidth": text}).node_bandwidth == expected


@pytest.mark.parametrize("text", ["fast", "1X", "G", "1MiB/h", ""])
def test_what_is_no_bandwidth_is_refused(text):
    from forebay.storage import to_store_options

    with pytest.raises(fb.InvalidArgumentError, match="node_bandwidth"):
        to_store_options({"node_bandwidth": text})
