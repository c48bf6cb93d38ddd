"""Where Arrow's libraries are, for what reads Parquet files, and LZ4 in Arrow's."""

import importlib.util
import os


def announce():
    """Says to the native code where pyarrow's libraries are; pyarrow is not imported."""
    if "FOREBAY_ARROW_DIR" in os.environ:
        return
    spec = importlib.util.find_spec("pyarrow")
    if spec is not None and spec.submodule_search_locations:
        os.environ["FOREBAY_ARROW_DIR"] = spec.submodule_search_locations[0]
