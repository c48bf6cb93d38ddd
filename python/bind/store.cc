#include "forebay/store.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "bind.h"
#include "interrupt.h"
#include "status.h"

namespace nb = nanobind;

namespace forebay::python {
namespace {

// One version of the object: the ETag of the first look is pinned for the read.
Result<std::vector<std::byte>> ReadWhole(const std::string& uri, const StoreOptions& options,
                                         uint64_t limit_bytes) {
  FB_ASSIGN_OR_RETURN(auto store, Store::Open(options));
  FB_ASSIGN_OR_RETURN(const ObjectStat stat, store->Stat(uri));
  if (stat.size > limit_bytes) {
    return Status(Code::kResourceExhausted,
                  "has " + std::to_string(stat.size) + " bytes; at most " +
                      std::to_string(limit_bytes) + " are read into memory",
                  {.uri = uri});
  }
  std::vector<std::byte> body(stat.size);
  if (!body.empty()) FB_RETURN_IF_ERROR(store->ReadRange(uri, stat.etag, 0, body));
  return body;
}

}  // namespace

void BindStore(nb::module_& m) {
  m.def(
      "read_object",
      [](std::string uri, StoreOptions options, uint64_t limit_bytes) {
        auto body = ValueOrRaise(
            RunInterruptibly([uri = std::move(uri), options = std::move(options), limit_bytes] {
              return ReadWhole(uri, options, limit_bytes);
            }));
        return nb::bytes(body.data(), body.size());
      },
      nb::arg("uri"), nb::arg("store"), nb::arg("limit_bytes"));
}

}  // namespace forebay::python
