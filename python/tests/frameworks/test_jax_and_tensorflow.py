"""JAX by DLPack, TensorFlow by a generator: as docs/python.md shows them."""

import jax
import jax.numpy as jnp
import numpy as np
import tensorflow as tf

import forebay as fb


def test_jax_takes_batches_by_dlpack(small, plain):
    seen = []
    with fb.Loader(small, batch_size=7, seed=3, epochs=2, output="dlpack") as loader:
        for _ in range(2):
            for batch in loader:
                front = jax.dlpack.from_dlpack(batch["front"])
                assert isinstance(front, jax.Array) and front.dtype == jnp.uint8
                mean = jnp.mean(front.astype(jnp.float32))
                same = np.from_dlpack(batch["front"]).astype(np.float32).mean()
                np.testing.assert_allclose(float(mean), same, rtol=1e-5)
                seen.append(np.from_dlpack(batch["_sample"]).tolist())
    assert seen == sum(plain(epochs=2, batch_size=7, seed=3), [])


def test_jax_takes_numpy_batches_too(small):
    with fb.Loader(small, batch_size=7, seed=3, epochs=1) as loader:
        for batch in loader:
            front = jnp.asarray(batch["front"])
            assert front.shape == batch["front"].shape
            assert int(front.astype(jnp.int32).sum()) == int(batch["front"].sum(dtype=np.int64))


def test_tensorflow_takes_an_epoch_from_a_generator(small, plain):
    with fb.Loader(small, batch_size=7, seed=3, epochs=2) as loader:
        shapes = {
            "front": tf.TensorSpec((7, 1, 48, 64, 3), tf.uint8),
            "_sample": tf.TensorSpec((7,), tf.int64),
        }

        def batches():
            for batch in loader:
                yield {name: batch[name] for name in shapes}

        data = tf.data.Dataset.from_generator(batches, output_signature=shapes).prefetch(2)
        seen = [
            [batch["_sample"].numpy().tolist() for batch in data] for _ in range(2)
        ]  # each walk is an epoch
    assert seen == plain(epochs=2, batch_size=7, seed=3)
