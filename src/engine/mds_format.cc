#include "engine/mds_format.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "engine/pack_unpacked.h"
#include "engine/record_formats.h"
#include "format/compressed.h"
#include "format/mds.h"
#include "format/mds_json.h"
#include "store/s3/named_digest.h"

namespace forebay::engine {
namespace {

using format::OnRecord;
using format::ScanReport;
using format::Shard;

constexpr uint64_t kMdsHeadMost = 16ULL << 20;  // of the text that describes the columns
constexpr std::string_view kIndexName = "index.json";

// MosaicML's encodings of numbers -> what NumPy calls them; "": kept as bytes.
std::string_view TypeOfMds(std::string_view encoding) {
  constexpr std::string_view kSame[] = {"uint8", "int32", "int64", "float16", "float32", "float64"};
  if (encoding == "int") return "int64";
  const auto same = std::ranges::find(kSame, encoding);
  return same == std::end(kSame) ? std::string_view() : *same;
}

// The columns that the shard's head describes: a number of samples, their offsets, a JSON text.
Result<std::vector<format::MdsColumn>> MdsColumnsOf(const Shard& shard) {
  uint32_t head[2] = {};  // the number of samples, and where the first begins
  if (shard.size < sizeof(head)) return std::vector<format::MdsColumn>();
  FB_RETURN_IF_ERROR(shard.read({0, sizeof(head)}, std::as_writable_bytes(std::span(head))));
  const uint64_t text = sizeof(uint32_t) * (uint64_t{head[0]} + 2);
  if (head[1] < text || head[1] > shard.size || head[1] - text > kMdsHeadMost) {
    return std::vector<format::MdsColumn>();  // the scan says what is wrong
  }
  std::vector<std::byte> json(head[1] - text);
  FB_RETURN_IF_ERROR(shard.read({text, head[1]}, json));
  return format::ParseMdsConfig(AsText(json), {shard.name, text});
}

// A shard whose bytes are hashed as they are read, as far as they come in order; the rest is read
// at the end.
class HashedShard {
 public:
  // Both outlive it.
  HashedShard(const Shard& shard, const format::MdsFile& file) : shard_(shard) {
    for (const auto& [algorithm, hash] : file.hashes) {
      auto digest = store::s3::NamedDigest::Make(algorithm);
      if (digest) hashes_.push_back({algorithm, hash, std::move(digest)});
    }
  }

  Shard shard() {
    Shard through = shard_;
    if (hashes_.empty()) return through;
    through.read = [this](ByteRange range, MutableBytes into) {
      FB_RETURN_IF_ERROR(shard_.read(range, into));
      if (range.offset <= hashed_ && hashed_ < range.end) Add(into.subspan(hashed_ - range.offset));
      return Status();
    };
    return through;
  }

  Status Check(ScanReport* report) {
    if (hashes_.empty()) return {};
    std::vector<std::byte> piece;
    while (hashed_ < shard_.size) {
      const ByteRange range{hashed_, std::min(shard_.size, hashed_ + kPiece)};
      piece.resize(range.size());
      FB_RETURN_IF_ERROR(shard_.read(range, piece));
      report->bytes_read += range.size();
      Add(piece);
    }
    for (Hash& one : hashes_) {
      const std::string is = one.digest->Hex();
      if (is == one.said) continue;
      return format::Damaged({shard_.name, 0},
                             fmt::format("{} {}, as index.json says", one.algorithm, one.said), is);
    }
    return {};
  }

 private:
  static constexpr uint64_t kPiece = 8ULL << 20;
  struct Hash {
    std::string algorithm, said;
    std::unique_ptr<store::s3::NamedDigest> digest;
  };
  void Add(ByteView bytes) {
    for (Hash& one : hashes_) one.digest->Add(bytes);
    hashed_ += bytes.size();
  }

  const Shard& shard_;
  std::vector<Hash> hashes_;
  uint64_t hashed_ = 0;  // of its bytes, from the start
};

Status ScanColumns(const Shard& shard, const format::MdsShard* expected, const OnRecord& on_record,
                   ScanReport* report) {
  FB_ASSIGN_OR_RETURN(const std::vector<format::MdsColumn> columns, MdsColumnsOf(shard));
  const auto typed = [&](format::FoundRecord record) {
    for (format::FoundField& field : record.fields) {
      const auto column = std::ranges::find(columns, field.name, &format::MdsColumn::name);
      if (column != columns.end()) field.dtype = TypeOfMds(column->encoding);
    }
    return on_record(std::move(record));
  };
  format::MdsOptions options;
  options.expected = expected;
  return format::ScanMds(shard, options, typed, report);
}

Status ScanHashed(const Shard& shard, const format::MdsShard* expected, const OnRecord& on_record,
                  ScanReport* report) {
  if (expected == nullptr) return ScanColumns(shard, expected, on_record, report);
  HashedShard hashed(shard, expected->raw);
  FB_RETURN_IF_ERROR(ScanColumns(hashed.shard(), expected, on_record, report));
  return hashed.Check(report);
}

// The index files of a data set, each read once.
class Indexes {
 public:
  // What the one beside it says of this object; none: there is no such file, or it does not name
  // it. Held until then: who asks for the same folder's waits.
  Result<const format::MdsShard*> Find(const Shard& shard) FB_EXCLUDES(mutex_) {
    const format::MdsShard* const none = nullptr;
    if (!shard.beside) return none;
    const size_t name = shard.name.rfind('/') + 1;  // npos + 1 is 0
    const MutexLock lock(mutex_);
    const std::string folder = shard.name.substr(0, name);
    auto it = read_.find(folder);
    if (it == read_.end()) {
      it = read_.emplace(folder, Read(shard, folder + std::string(kIndexName))).first;
    }
    FB_RETURN_IF_ERROR(it->second.status());
    const auto found = (*it->second)->find(shard.name.substr(name));
    return found == (*it->second)->end() ? none : &found->second;
  }

  // See RecordFormat::named: compressed shards may lie there unpacked.
  static Result<std::vector<catalog::RecordFormat::Names>> NamedBy(const std::string& companion,
                                                                   const format::ReadBeside& read) {
    const size_t name = companion.rfind('/') + 1;
    std::vector<catalog::RecordFormat::Names> all;
    if (companion.substr(name) != kIndexName) return all;
    FB_ASSIGN_OR_RETURN(const auto text, read(companion, format::kMaxMdsIndexBytes));
    FB_ASSIGN_OR_RETURN(const std::vector<format::MdsShard> shards,
                        format::ParseMdsIndex(AsText(text), {companion, 0}));
    const std::string folder = companion.substr(0, name);
    for (const format::MdsShard& shard : shards) {
      all.push_back({folder + (shard.zip ? shard.zip->name : shard.raw.name)});
      if (shard.zip) all.back().push_back(folder + shard.raw.name);
    }
    return all;
  }

 private:
  using Index = std::map<std::string, format::MdsShard>;  // by the name of what is in the store
  using Parsed = Result<std::shared_ptr<const Index>>;

  static Parsed Read(const Shard& shard, const std::string& name) {
    auto index = std::make_shared<Index>();
    const auto text = shard.beside(name, format::kMaxMdsIndexBytes);
    if (text.code() == Code::kNotFound) return std::shared_ptr<const Index>(std::move(index));
    FB_RETURN_IF_ERROR(text.status());
    FB_ASSIGN_OR_RETURN(std::vector<format::MdsShard> shards,
                        format::ParseMdsIndex(AsText(*text), {name, 0}));
    for (format::MdsShard& one : shards) {
      std::string stored = one.zip ? one.zip->name : one.raw.name;
      (*index)[std::move(stored)] = std::move(one);
    }
    return std::shared_ptr<const Index>(std::move(index));
  }

  Mutex mutex_;
  std::map<std::string, Parsed> read_ FB_GUARDED_BY(mutex_);  // by folder
};

}  // namespace

catalog::RecordFormat MdsRecordFormat() {
  auto indexes = std::make_shared<Indexes>();
  catalog::RecordFormat mds{.name = "mds", .companion = std::string(kIndexName)};
  mds.is_shard = [indexes](const Shard& shard) -> Result<bool> {
    FB_ASSIGN_OR_RETURN(const format::Kind kind, KindOf(shard));
    if (kind == format::Kind::kMds) return true;
    FB_ASSIGN_OR_RETURN(const format::MdsShard* expected, indexes->Find(shard));
    if (expected == nullptr) return false;
    if (!expected->zip) {
      return format::Damaged({shard.name, 0}, "a shard, as index.json says", "something else");
    }
    return format::Refused({shard.name, 0},
                           fmt::format("a shard compressed with {}: index it as compressed-mds, "
                                       "to be read in whole shards, or make others of it with "
                                       "`forebay pack --unpack`",
                                       expected->compression));
  };
  mds.named = Indexes::NamedBy;
  mds.scan = [indexes](const Shard& shard, const OnRecord& on_record,
                       ScanReport* report) -> Status {
    FB_ASSIGN_OR_RETURN(const format::MdsShard* expected, indexes->Find(shard));
    return ScanHashed(shard, expected, on_record, report);
  };
  return mds;
}

catalog::RecordFormat CompressedMdsFormat() {
  auto indexes = std::make_shared<Indexes>();
  catalog::RecordFormat mds{.name = "compressed-mds", .companion = std::string(kIndexName)};
  mds.is_shard = [indexes](const Shard& shard) -> Result<bool> {
    FB_ASSIGN_OR_RETURN(const bool packed, IsPackedShard(shard));
    if (packed) return true;
    FB_ASSIGN_OR_RETURN(const format::Kind kind, KindOf(shard));
    if (kind == format::Kind::kMds) return true;  // which the scan refuses
    FB_ASSIGN_OR_RETURN(const format::MdsShard* expected, indexes->Find(shard));
    if (expected == nullptr) return false;
    return format::Refused(
        {shard.name, 0},
        fmt::format("a shard compressed with '{}': gzip and zstd are read", expected->compression));
  };
  mds.named = Indexes::NamedBy;
  mds.scan = [indexes](const Shard& shard, const OnRecord& on_record,
                       ScanReport* report) -> Status {
    FB_ASSIGN_OR_RETURN(const format::MdsShard* expected, indexes->Find(shard));
    const auto scan = [&](const Shard& inside, const OnRecord& on_row, ScanReport* of_rows) {
      return ScanHashed(inside, expected, on_row, of_rows);
    };
    constexpr auto kRows = format::CompressedRows::kMds;
    if (expected == nullptr || !expected->zip) {
      return format::ScanCompressed(kRows, shard, scan, on_record, report);
    }
    if (expected->zip->bytes != shard.size) {
      return format::Damaged({shard.name, 0},
                             fmt::format("{} bytes, as index.json says", expected->zip->bytes),
                             fmt::format("{}", shard.size));
    }
    HashedShard hashed(shard, *expected->zip);
    FB_RETURN_IF_ERROR(format::ScanCompressed(kRows, hashed.shard(), scan, on_record, report));
    return hashed.Check(report);
  };
  return mds;
}

}  // namespace forebay::engine
