#include "testing/ops_images.h"

#include <cstdio>

#include <jpeglib.h>
#include <spng.h>
#include <webp/encode.h>

#include <cstdlib>

#include "base/random.h"

namespace forebay::testing {

Picture MakePicture(int width, int height, int channels, uint64_t seed) {
  Picture picture{width, height, channels, {}};
  Random random(DeriveKey(HashName("picture"), seed));
  const auto slope = static_cast<int>(random.NextBelow(7)) + 1;
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      for (int c = 0; c < channels; ++c) {
        const int edge = ((x / 9 + y / 7 + c) % 2) * 90;
        const auto noise = static_cast<int>(random.NextBelow(30));
        picture.pixels.push_back(
            static_cast<uint8_t>((x * slope + y * (c + 1)) / 2 % 130 + edge + noise));
      }
    }
  }
  return picture;
}

std::string EncodeJpeg(const Picture& picture, const JpegOptions& options) {
  jpeg_compress_struct jpeg = {};
  jpeg_error_mgr errors = {};  // the default: a failure ends the test's process
  jpeg.err = jpeg_std_error(&errors);
  jpeg_create_compress(&jpeg);
  unsigned char* bytes = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&jpeg, &bytes, &size);
  jpeg.image_width = static_cast<JDIMENSION>(picture.width);
  jpeg.image_height = static_cast<JDIMENSION>(picture.height);
  jpeg.input_components = picture.channels;
  jpeg.in_color_space = picture.channels == 1   ? JCS_GRAYSCALE
                        : picture.channels == 3 ? JCS_RGB
                                                : JCS_CMYK;
  jpeg_set_defaults(&jpeg);
  jpeg_set_quality(&jpeg, options.quality, TRUE);
  if (picture.channels == 3) {
    jpeg.comp_info[0].h_samp_factor = options.chroma_x;
    jpeg.comp_info[0].v_samp_factor = options.chroma_y;
  }
  jpeg.arith_code = options.arithmetic ? TRUE : FALSE;
  jpeg.restart_in_rows = options.restart_rows;
  if (options.progressive) jpeg_simple_progression(&jpeg);
  jpeg_start_compress(&jpeg, TRUE);
  const auto stride = static_cast<size_t>(picture.width) * static_cast<size_t>(picture.channels);
  while (jpeg.next_scanline < jpeg.image_height) {
    auto* row = const_cast<JSAMPROW>(picture.pixels.data() + jpeg.next_scanline * stride);
    jpeg_write_scanlines(&jpeg, &row, 1);
  }
  jpeg_finish_compress(&jpeg);
  jpeg_destroy_compress(&jpeg);
  std::string file(reinterpret_cast<char*>(bytes), size);
  std::free(bytes);
  return file;
}

std::string EncodePng(const Picture& picture) {
  constexpr spng_color_type kColors[] = {SPNG_COLOR_TYPE_GRAYSCALE, SPNG_COLOR_TYPE_GRAYSCALE_ALPHA,
                                         SPNG_COLOR_TYPE_TRUECOLOR,
                                         SPNG_COLOR_TYPE_TRUECOLOR_ALPHA};
  spng_ctx* context = spng_ctx_new(SPNG_CTX_ENCODER);
  spng_set_option(context, SPNG_ENCODE_TO_BUFFER, 1);
  spng_ihdr header = {};
  header.width = static_cast<uint32_t>(picture.width);
  header.height = static_cast<uint32_t>(picture.height);
  header.bit_depth = 8;
  header.color_type = static_cast<uint8_t>(kColors[picture.channels - 1]);
  spng_set_ihdr(context, &header);
  spng_encode_image(context, picture.pixels.data(), picture.pixels.size(), SPNG_FMT_PNG,
                    SPNG_ENCODE_FINALIZE);
  size_t size = 0;
  int error = 0;
  void* bytes = spng_get_png_buffer(context, &size, &error);
  std::string file(static_cast<const char*>(bytes), size);
  std::free(bytes);
  spng_ctx_free(context);
  return file;
}

std::string EncodeWebp(const Picture& picture) {
  uint8_t* bytes = nullptr;
  const auto encode = picture.channels == 4 ? &WebPEncodeLosslessRGBA : &WebPEncodeLosslessRGB;
  const size_t size = encode(picture.pixels.data(), picture.width, picture.height,
                             picture.width * picture.channels, &bytes);
  std::string file(reinterpret_cast<const char*>(bytes), size);
  WebPFree(bytes);
  return file;
}

}  // namespace forebay::testing
