// What is done to a sample between its bytes and its arrays. torchvision's names and meanings; each
// op is a pure function of the sample and, where it is random, of KeyedRandom's place.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "forebay/status.h"

namespace forebay {

// The bytes of `field` (JPEG, PNG or WebP, told by content) become an image of that name: uint8
// HWC.
struct DecodeImageOp {
  std::string field = "jpg";
  // "RGB": as PIL's convert("RGB"): alpha dropped, grey repeated. "L": grey, as PIL's convert("L").
  // "unchanged": as many channels as the file has.
  std::string mode = "RGB";
  // EXIF orientation: "ignore", as torchvision and PIL do, or "apply", as OpenCV does.
  std::string orientation = "ignore";
  uint64_t pixels_max = 178'956'970;  // more is refused; PIL's limit for an error
  // JPEGs of four inks: "inverted", all of them, as PIL and OpenCV take them; "marker": those with
  // an Adobe marker, as TensorFlow, DALI and torchvision since 0.16 do, in their arithmetic.
  std::string cmyk = "inverted";
  // Grey of 16 bits: "clip", cut off at 255, as PIL; "high_byte", as OpenCV.
  std::string grey16 = "clip";
};

// Antialiased as PIL's resize and torchvision's (antialias=True), or as OpenCV's without.
enum class ResizeFilter : uint8_t { kBilinear, kBicubic, kLanczos, kBox, kOpenCvBilinear };

struct ResizeOp {
  int64_t height = 0;
  int64_t width = 0;  // 0: `height` is the shorter side's, the longer is int(h * long / short)
  ResizeFilter filter = ResizeFilter::kBilinear;
};

// What lies outside of a smaller image is 0.
struct CenterCropOp {
  int64_t height = 0, width = 0;
};

// A random area of `scale` of the image, with a ratio (width / height) drawn log-uniformly from
// `ratio`; ten tries, then the largest centred crop. Cropped first, then resized.
struct RandomResizedCropOp {
  int64_t height = 0, width = 0;
  std::array<double, 2> scale = {0.08, 1.0};
  std::array<double, 2> ratio = {3.0 / 4.0, 4.0 / 3.0};
  ResizeFilter filter = ResizeFilter::kBilinear;
};

struct RandomHorizontalFlipOp {
  double p = 0.5;
};

// Factors drawn uniformly from [max(0, 1 - x), 1 + x], the hue's shift from [-hue, hue]; applied in
// a random order.
struct ColorJitterOp {
  double brightness = 0, contrast = 0, saturation = 0, hue = 0;
};

// (x / 255 - mean) / std of uint8, (x - mean) / std of floats, by channel; float32 comes out.
struct NormalizeOp {
  std::vector<double> mean, std;
};

struct ToChwOp {};  // HWC -> CHW

// "uint8", "float32", "float16", "bfloat16". From uint8 to a float: x / 255 where `scale`.
struct ToDtypeOp {
  std::string dtype = "float32";
  bool scale = false;
};

// Decimal text in `field`, as WebDataset's .cls, .index and .id -> int64 [].
struct ParseIntOp {
  std::string field = "cls";
};

// A NumPy array file (.npy) in `field`: of this dtype and shape, else the sample is bad. No
// pickles.
struct ParseNpyOp {
  std::string field = "npy";
  std::string dtype = "float32";
  std::vector<int64_t> shape;
};

// Arrays of as many values as there are ("ragged"): of a batch NAME, [total], one sample's values
// after the other's, and NAME_offsets, int64 [B + 1], where each begins and the last one ends.

// A field of a JSON document, by its JSON pointer (RFC 6901), as a number or an array of numbers.
struct JsonField {
  std::string pointer;          // "/label"
  std::string name;             // of the array
  std::string dtype = "int64";  // "int64", "float32", "float64", "bool"
  std::vector<int64_t> shape;   // {}: one number
  bool ragged = false;          // a list of numbers, of whatever length; shape is {}
};
struct ParseJsonOp {
  std::string field = "json";
  std::vector<JsonField> fields;
};

// One feature of a tf.train.Example, of fixed shape or ragged; or a sparse vector kept as two
// features, values and the places they stand at (tf.io.SparseFeature).
struct ExampleFeature {
  std::string key;
  std::string name;             // of the array; "": the key
  std::string dtype = "int64";  // "int64", "float32", or "bytes": one value, a field for later ops
  std::vector<int64_t> shape;
  bool has_default = false;  // else a sample without the feature is bad
  double default_value = 0;
  // Fewer values than the shape holds, or none, are filled up with `default_value`.
  bool pad = false;
  // As many values as there are; none where the feature is missing. shape is {}.
  bool ragged = false;
  // Not "": the feature with the values' places, each of 0 to size - 1; `key` has the values.
  // NAME and NAME_indices (int64) are ragged, in the order of the places.
  std::string indices;
  int64_t size = 0;
};
struct ParseExampleOp {
  std::string field = "data";
  std::vector<ExampleFeature> features;
};

// A tensor of SageMaker's Record, by its name in the map of features or of labels.
struct RecordFeature {
  std::string key = "values";     // what a record's only tensor is called
  bool label = false;             // of the map of labels
  std::string name;               // of the array; "": the key
  std::string dtype = "float32";  // "float32", "float64", "int32", or "bytes": one value, a field
  std::vector<int64_t> shape;     // {}: one number. A sparse tensor of this size is filled with 0
  bool ragged = false;            // a dense tensor of whatever size, flat; shape is {}
  // NAME and NAME_indices (int64: places in the flat tensor, ascending) are ragged; of a dense
  // tensor all its places. shape: what the record says it has; {}: whatever it says.
  bool sparse = false;
};
struct ParseRecordOp {
  std::string field = "data";
  std::vector<RecordFeature> features;
};

// Of token files, first of all ops: a sample is `length` tokens in a row of one file, the next one
// begins `stride` tokens behind it (0: `length`) -> "tokens", [length]. What is left at a file's
// end is too short for a window, and left out.
struct TokensOp {
  int64_t length = 0;
  int64_t stride = 0;
  std::string dtype = "int64";  // or "int32"
  int64_t vocabulary = 0;       // > 0: a sample with a token that is not below it is bad
};

// Of token files whose documents are known, first of all ops: a sample is `length` tokens, of whole
// documents where they fit: `window` neighbours are packed together by best fit (0: as many as have
// some MiB), and the rows of a window are shuffled by `seed`. -> "tokens", [length], filled up with
// `pad`; "segment_ids" int32 [length], of which document of the row a token is, from 1, 0: none;
// "positions" int32 [length], of it in that document's part of the row.
struct PackTokensOp {
  int64_t length = 0;
  int64_t window = 0;
  uint64_t seed = 0;
  int64_t pad = 0;
  std::string dtype = "int64";
  int64_t vocabulary = 0;
};

// Only these fields or arrays go on.
struct SelectOp {
  std::vector<std::string> fields;
};

// `field`, by another name from here on.
struct RenameOp {
  std::string field, name;
};

using Op = std::variant<DecodeImageOp, ResizeOp, CenterCropOp, RandomResizedCropOp,
                        RandomHorizontalFlipOp, ColorJitterOp, NormalizeOp, ToChwOp, ToDtypeOp,
                        ParseIntOp, ParseNpyOp, ParseJsonOp, ParseExampleOp, ParseRecordOp,
                        SelectOp, RenameOp, TokensOp, PackTokensOp>;

// "resize(height=256, width=0, filter=bilinear)": what states and catalogs carry.
FOREBAY_API std::string DescribeOp(const Op& op);
// Errors: kInvalidArgument naming op and argument.
FOREBAY_API Status ValidateOp(const Op& op);

}  // namespace forebay
