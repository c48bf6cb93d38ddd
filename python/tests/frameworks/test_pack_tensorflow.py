"""TensorFlow reads what `forebay pack` writes as TFRecords."""

import tensorflow as tf

from test_pack import arguments_for, pack, pictures  # noqa: F401


def test_tensorflow_parses_the_examples(pictures, tmp_path):  # noqa: F811
    pack(pictures, tmp_path, *arguments_for("tfrecord"))
    files = sorted(str(path) for path in tmp_path.glob("*.tfrecord"))
    features = {
        "__key__": tf.io.FixedLenFeature([], tf.string),
        "jpg": tf.io.FixedLenFeature([], tf.string),
        "cls": tf.io.FixedLenFeature([], tf.int64),
    }
    got = {}
    for record in tf.data.TFRecordDataset(files):
        sample = tf.io.parse_single_example(record, features)
        got[sample["__key__"].numpy().decode()] = (sample["jpg"].numpy(), int(sample["cls"]))
    assert got == {
        str(path.relative_to(pictures).with_suffix("")): (
            path.read_bytes(), int(path.with_suffix(".cls").read_text()))
        for path in pictures.rglob("*.jpg")
    }  # fmt: skip
