#include <cstring>

#include "base/assert.h"
#include "format/archive/tar_scan.h"
#include "fuzz/targets.h"

namespace forebay::fuzz {
namespace {

format::Shard ShardOf(ByteView input) {
  return {.name = "fuzz",
          .size = input.size(),
          .read = [input](ByteRange range, MutableBytes into) -> Status {
            FB_ASSERT(range.offset <= range.end && range.end <= input.size() &&
                      range.size() == into.size());
            if (!range.empty()) std::memcpy(into.data(), &input[range.offset], range.size());
            return {};
          }};
}

// Runs a scan and checks what every scan owes: records in order, their fields within them.
template <class Scan>
void Check(ByteView input, const Scan& scan) {
  format::ScanReport report;
  uint64_t records = 0;
  uint64_t before = 0;
  const Status status = scan(
      ShardOf(input),
      [&](format::FoundRecord record) -> Status {
        FB_ASSERT(before <= record.range.offset && record.range.offset <= record.range.end &&
                  record.range.end <= input.size());
        before = record.range.offset;
        ++records;
        for (const format::FoundField& field : record.fields) {
          FB_ASSERT(record.range.Contains(field.range) && field.range.offset <= field.range.end);
        }
        return {};
      },
      &report);
  FB_ASSERT(report.records == records);
  FB_ASSERT(status.ok() || status.code() == Code::kDataLoss ||
            status.code() == Code::kUnimplemented);
}

}  // namespace

void Tar(ByteView input) {
  for (const bool lenient : {false, true}) {
    Check(input, [lenient](const format::Shard& shard, const format::OnRecord& on_record,
                           format::ScanReport* report) {
      return format::archive::ScanTar(shard, {.concatenated = lenient, .drop_tail = lenient},
                                      on_record, report);
    });
  }
}

}  // namespace forebay::fuzz
