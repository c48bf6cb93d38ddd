#include "format/archive/tar_scan.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "base/hash.h"
#include "format/archive/tar_reader.h"
#include "format/foreign.h"

namespace forebay::format::archive {
namespace {

constexpr uint64_t kAfterEnd = uint64_t{1} << 20;  // looked through for what may follow an end

std::string LeftOut(std::string_view name, std::string_view why) {
  constexpr size_t kShown = 120;
  return fmt::format("'{}' is left out: {}", name.substr(0, kShown), why);
}

std::string_view KindOf(char type) {
  switch (type) {
    case '0':
    case '\0':
    case '7':
    case '5':
      return "a directory";
    case '1':
      return "a hard link";
    case '2':
      return "a symbolic link";
    case '3':
    case '4':
      return "a device";
    case '6':
      return "a FIFO";
    case 'V':
      return "the archive's own label";
    default:
      return "of a type that is no file";
  }
}

// Neighbouring members of one key.
class Samples {
 public:
  Samples(const Shard& shard, const TarOptions& options, const OnRecord& on_record,
          ScanReport* report)
      : shard_(shard), options_(options), on_record_(on_record), report_(report) {}

  bool IsOpen(std::string_view key) const { return !open_.fields.empty() && open_.key == key; }
  void Drop() { open_ = {}; }

  Status Add(const SampleName& name, uint64_t header, ByteRange data,
             std::optional<uint32_t> crc32c) {
    const Place place{shard_.name, header};
    if (!IsOpen(name.key)) {
      FB_RETURN_IF_ERROR(Close());
      open_.key = name.key;
      open_.range = data;
      keys_.emplace_back(HashBytes(AsBytes(name.key)).low, header);
    }
    std::string field(name.extension);
    for (char& c : field) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    for (const FoundField& other : open_.fields) {
      if (other.name != field) continue;
      return Damaged(place, "each extension once in a sample",
                     fmt::format("'{}' twice in the sample '{}'", field, open_.key));
    }
    if (open_.fields.size() >= options_.max_sample_members) {
      return AboveLimit(place, "a sample's count of members", open_.fields.size() + 1,
                        options_.max_sample_members);
    }
    const uint64_t size = data.end - open_.range.offset;
    if (size > options_.max_sample_bytes) {
      return AboveLimit(place, "a sample's size", size, options_.max_sample_bytes);
    }
    open_.range.end = data.end;
    open_.fields.push_back({std::move(field), data, data.size(), crc32c});
    return {};
  }

  // Hands over the open sample.
  Status Close() {
    if (open_.fields.empty()) return {};
    ++report_->records;
    return on_record_(std::exchange(open_, {}));
  }

  // Tells of keys that came again after another one.
  void NoteRepeats() {
    std::ranges::sort(keys_);
    std::vector<std::pair<uint64_t, uint64_t>> repeats;  // where, and where first
    for (size_t i = 0, first = 0; i < keys_.size(); ++i) {
      if (keys_[i].first != keys_[first].first) first = i;
      if (i != first) repeats.emplace_back(keys_[i].second, keys_[first].second);
    }
    std::ranges::sort(repeats);
    for (const auto& [offset, first] : repeats) {
      report_->Note(offset, fmt::format("the key of this sample was met before, at offset {}: "
                                        "members that are no neighbours are samples of their own",
                                        first));
    }
  }

 private:
  const Shard& shard_;
  const TarOptions& options_;
  const OnRecord& on_record_;
  ScanReport* const report_;
  FoundRecord open_;
  std::vector<std::pair<uint64_t, uint64_t>> keys_;  // hash, offset; of each sample
};

class TarScan {
 public:
  TarScan(const Shard& shard, const TarOptions& options, const OnRecord& on_record,
          ScanReport* report)
      : options_(options),
        report_(report),
        window_(shard, report),
        reader_(&window_),
        samples_(shard, options, on_record, report) {}

  Status Run() {
    while (!done_) FB_RETURN_IF_ERROR(Step());
    FB_RETURN_IF_ERROR(samples_.Close());
    samples_.NoteRepeats();
    if (report_->records == 0) report_->Note(0, "there are no samples");
    return {};
  }

 private:
  using Kind = MemberHeader::Kind;

  // One member, or the end.
  Status Step() {
    auto header = ReadMemberHeader(&window_, next_);
    if (next_ == 0 && (!header.ok() || header->kind == Kind::kDamaged)) {
      FB_ASSIGN_OR_RETURN(const ByteView head, window_.From(0));
      FB_RETURN_IF_ERROR(RefuseForeign(head, window_.PlaceAt(0)));
    }
    if (!header.ok()) return CutHeader(std::move(header).status());
    if (header->kind == Kind::kDamaged) return reader_.WhyDamaged(next_);
    if (header->kind != Kind::kMember) return End(header->kind);
    if (++members_ > options_.max_members) {
      return AboveLimit(window_.PlaceAt(next_), "the count of members", members_,
                        options_.max_members);
    }
    return header->type == 'V' ? SkipLabel(*header) : Member(*header);
  }

  // The shard ends within a header: whether the open sample is whole is not known.
  Status CutHeader(Status error) {
    const uint64_t left = window_.Left(next_);
    const bool is_cut = error.code() == Code::kDataLoss && error.detail().end >= 0 &&
                        static_cast<uint64_t>(error.detail().end) > window_.size();
    if (!is_cut || !options_.drop_tail) return error;
    samples_.Drop();
    done_ = true;
    report_->Note(next_, fmt::format("the last {} bytes are a cut header: the sample before it is "
                                     "left out",
                                     left));
    return {};
  }

  // libarchive does not read what a label may carry.
  Status SkipLabel(const MemberHeader& header) {
    const Place place = window_.PlaceAt(header.offset);
    if (!header.size) return Damaged(place, "a label's size", "no octal number");
    const auto range = RangeWithin(header.offset + kBlock, *header.size, window_.size());
    if (!range) {
      return CutMember(place, "", header.offset + kBlock, *header.size);
    }
    report_->Note(header.offset, LeftOut(header.name.value_or(""), KindOf('V')));
    return MoveTo(PaddedTo(range->end, kBlock));
  }

  Status Member(const MemberHeader& header) {
    FB_ASSIGN_OR_RETURN(const TarMember member, reader_.Read(next_, header));
    const Place place = window_.PlaceAt(header.offset);
    if (member.name.size() > options_.max_name_bytes) {
      return AboveLimit(place, "a name's length", member.name.size(), options_.max_name_bytes);
    }
    if (reader_.has_warning()) report_->Note(header.offset, reader_.warning());
    const auto name = SplitSampleName(member.name);
    if (member.cut) {
      return CutMember(place, name ? name->key : "", member.data.offset, member.data.size());
    }
    if (!member.is_file) {
      report_->Note(header.offset, LeftOut(member.name, KindOf(header.type)));
    } else if (IsMetadataName(member.name)) {
      report_->Note(header.offset, LeftOut(member.name, "WebDataset keeps notes under such names"));
    } else if (!name) {
      report_->Note(header.offset, LeftOut(member.name, "its name has no key and extension"));
    } else {
      FB_ASSIGN_OR_RETURN(const auto crc, window_.Crc32cOf(member.data));
      FB_RETURN_IF_ERROR(samples_.Add(*name, header.offset, member.data, crc));
    }
    if (member.is_file && PaddedTo(member.data.end, kBlock) >= window_.size()) {
      return MoveTo(PaddedTo(member.data.end, kBlock));
    }
    FB_ASSIGN_OR_RETURN(const uint64_t end, reader_.End());
    return MoveTo(end);
  }

  Status CutMember(const Place& place, std::string_view key, uint64_t data, uint64_t size) {
    done_ = true;
    FB_RETURN_IF_ERROR(CutTail(options_.drop_tail, window_.PlaceAt(data), "a member's data", size,
                               window_.Left(data), report_));
    if (samples_.IsOpen(key)) {
      samples_.Drop();
      report_->Note(place.offset, "the sample of the cut member is left out");
    }
    return {};
  }

  Status MoveTo(uint64_t end) {
    next_ = end;
    if (end <= window_.size()) return {};
    report_->Note(window_.size(),
                  "the padding of the last member is cut: there may have been more");
    done_ = true;
    return {};
  }

  // At zeros or at the end of the shard.
  Status End(Kind kind) {
    done_ = true;
    if (kind == Kind::kNothing) {
      report_->Note(next_, next_ == 0 ? "the shard is empty"
                                      : "no end is marked: the shard may be cut between members");
      return {};
    }
    if (window_.Left(next_) < 2 * kBlock) report_->Note(next_, "the mark of the end is cut");
    for (uint64_t at = next_; at < window_.size() && at - next_ < kAfterEnd;) {
      FB_ASSIGN_OR_RETURN(const ByteView bytes, window_.From(at));
      const size_t found = AsText(bytes).find_first_not_of('\0');
      if (found != std::string_view::npos) return AfterEnd(at + found);
      at += bytes.size();
    }
    return {};
  }

  Status AfterEnd(uint64_t found) {
    const uint64_t block = found / kBlock * kBlock;
    if (!options_.concatenated) {
      report_->Note(block,
                    "data behind the archive's end is left out; to read archives that follow "
                    "one another, say so");
      return {};
    }
    FB_RETURN_IF_ERROR(samples_.Close());
    done_ = false;
    return MoveTo(block);
  }

  const TarOptions& options_;
  ScanReport* const report_;
  Window window_;
  TarReader reader_;
  Samples samples_;
  uint64_t next_ = 0;  // where the next headers begin
  uint64_t members_ = 0;
  bool done_ = false;
};

}  // namespace

Status ScanTar(const Shard& shard, const TarOptions& options, const OnRecord& on_record,
               ScanReport* report) {
  return TarScan(shard, options, on_record, report).Run();
}

}  // namespace forebay::format::archive
