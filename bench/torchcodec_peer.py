"""torchcodec as decode_bench's peer: exact seeking, its decoders kept open, one thread, RGB.

Needs a Python that imports torch and torchcodec. The protocol is in testing/peer_process.h.
"""

import os
import sys
import time


def main() -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print is no answer
    import torch
    import torchcodec
    from torchcodec.decoders import VideoDecoder

    torch.set_num_threads(1)
    clips, decoders = [], {}
    for line in sys.stdin:
        if not line.strip():
            break
        path, *frames = line.split()
        if path not in decoders:
            with open(path, "rb") as file:
                decoders[path] = VideoDecoder(
                    file.read(), seek_mode="exact", num_ffmpeg_threads=1, dimension_order="NHWC"
                )
        clips.append((decoders[path], [int(frame) for frame in frames]))
    print(f"ready torchcodec {torchcodec.__version__}, torch {torch.__version__}",
          file=answers, flush=True)
    for line in sys.stdin:
        if line.strip() != "go":
            raise SystemExit(f"no such order: {line!r}")
        begin = time.process_time()
        for decoder, frames in clips:
            got = decoder.get_frames_at(frames).data
            assert got.shape[0] == len(frames)
        print(time.process_time() - begin, file=answers, flush=True)


if __name__ == "__main__":
    main()
