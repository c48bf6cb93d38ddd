#include "format/lines.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>

#include "base/crc32c.h"
#include "format/foreign.h"
#include "format/window.h"

namespace forebay::format {
namespace {

using std::string_view_literals::operator""sv;

constexpr std::string_view kBlank = " \t\r\v\f";

// Whether a text, taken in pieces, closes all brackets and quotes that it opens.
class Balance {
 public:
  void Add(std::string_view text) {
    for (const char c : text) {
      if (escaped_) {
        escaped_ = false;
      } else if (quoted_) {
        escaped_ = c == '\\';
        quoted_ = c != '"';
      } else if (c == '"') {
        quoted_ = true;
      } else if (c == '{' || c == '[') {
        ++depth_;
      } else if (c == '}' || c == ']') {
        --depth_;
      }
    }
  }
  bool closed() const { return depth_ == 0 && !quoted_; }

 private:
  int64_t depth_ = 0;
  bool quoted_ = false;
  bool escaped_ = false;
};

// How a line scan of one kind goes.
struct LineKind {
  std::string_view field;
  bool header = false;
  bool quotes = false;  // a line's end between two quotes is part of the record
  char quote = '"';
  bool json = false;
};

class LinesScan {
 public:
  LinesScan(const Shard& shard, const LinesOptions& options, LineKind kind,
            const OnRecord& on_record, ScanReport* report)
      : options_(options),
        kind_(kind),
        on_record_(on_record),
        report_(report),
        window_(shard, report) {}

  Status Run() {
    FB_RETURN_IF_ERROR(Begin());
    bool is_header = kind_.header;
    while (start_ < window_.size()) {
      FB_RETURN_IF_ERROR(ReadLine());
      if (!whole_) {
        bool taken = false;
        FB_RETURN_IF_ERROR(TakeTail(&taken));
        if (!taken) return {};
      }
      if (!blank_ && is_header) FB_RETURN_IF_ERROR(LookAtHeader());
      if (!blank_ && !is_header) FB_RETURN_IF_ERROR(Deliver());
      if (!blank_) is_header = false;
      start_ = next_;
    }
    return {};
  }

 private:
  Status Begin() {
    FB_ASSIGN_OR_RETURN(const ByteView head, window_.AtLeast(0, 512));
    FB_RETURN_IF_ERROR(RefuseForeign(head, window_.PlaceAt(0)));
    const std::string_view text = AsText(head);
    if (text.starts_with("\xff\xfe"sv) || text.starts_with("\xfe\xff"sv)) {
      return Refused(window_.PlaceAt(0), "a text in UTF-16: write it in UTF-8");
    }
    if (text.starts_with("\xef\xbb\xbf"sv)) {
      report_->Note(0, "a mark of UTF-8 at the start is passed over");
      start_ = 3;
    }
    if (window_.size() == 0) report_->Note(0, "the shard is empty");
    return {};
  }

  // The line from start_ on: its end_, next_, and what is known of its bytes.
  Status ReadLine() {
    whole_ = false;
    blank_ = true;
    crc_ = 0;
    last_ = '\0';
    balance_ = {};
    bool quoted = false;
    for (uint64_t at = start_; at < window_.size() && !whole_;) {
      FB_ASSIGN_OR_RETURN(const ByteView bytes, window_.From(at));
      const size_t size = PieceOf(AsText(bytes), &quoted);
      Take(bytes.first(size));
      at += size;
      if (at - start_ > options_.max_line_bytes) {
        return AboveLimit(window_.PlaceAt(start_), "a line's length", at - start_,
                          options_.max_line_bytes);
      }
      end_ = at;
      if (whole_) ++at;
      next_ = at;
    }
    if (!whole_) ends_in_quotes_ = quoted;
    return {};
  }

  // How many of these bytes belong to the line; sets whole_ when its end follows them.
  size_t PieceOf(std::string_view text, bool* quoted) {
    for (size_t at = 0;;) {
      const size_t end = text.find('\n', at);
      const std::string_view part = text.substr(at, end == text.npos ? text.npos : end - at);
      if (kind_.quotes && std::ranges::count(part, kind_.quote) % 2 != 0) *quoted = !*quoted;
      if (end == std::string_view::npos) return text.size();
      if (!*quoted) {
        whole_ = true;
        return end;
      }
      at = end + 1;
    }
  }

  // A CR at the end may belong to the line's end: it is held back.
  void Take(ByteView bytes) {
    if (bytes.empty()) return;
    if (last_ == '\r') crc_ = ExtendCrc32c(crc_, AsBytes("\r"));
    const std::string_view text = AsText(bytes);
    last_ = text.back();
    blank_ = blank_ && text.find_first_not_of(kBlank) == std::string_view::npos;
    // Only the last line's brackets are looked at: the one whose end is not found.
    if (kind_.json && !whole_) balance_.Add(text);
    crc_ = ExtendCrc32c(crc_, bytes.first(bytes.size() - (last_ == '\r' ? 1 : 0)));
  }

  // Names of columns are no numbers: then it is a record, most likely, that is about to be lost.
  Status LookAtHeader() {
    constexpr uint64_t kLooked = 4096;
    constexpr std::string_view kOfNumbers = "+-.0123456789eE, \t\r";
    const uint64_t size = std::min(end_ - start_, kLooked);
    FB_ASSIGN_OR_RETURN(const ByteView line, window_.At(start_, size, "the first line"));
    const std::string_view text = AsText(line);
    if (text.find_first_not_of(kOfNumbers) == std::string_view::npos &&
        text.find_first_of("0123456789") != std::string_view::npos) {
      report_->Note(start_,
                    "the first line, which should name the columns, holds numbers alone; "
                    "csv-no-header takes it as a record");
    }
    return {};
  }

  // A last line without its end.
  Status TakeTail(bool* taken) {
    const uint64_t size = end_ - start_;
    *taken = true;
    if (blank_) return {};
    if (kind_.json && !balance_.closed()) {
      *taken = false;
      return CutTail(options_.drop_tail, window_.PlaceAt(start_), "the last line", size + 1, size,
                     report_);
    }
    if (kind_.quotes && ends_in_quotes_) {
      *taken = false;
      return CutTail(options_.drop_tail, window_.PlaceAt(start_),
                     "a line in which a quote is not closed", size + 1, size, report_);
    }
    return {};
  }

  Status Deliver() {
    const uint64_t end = end_ - (last_ == '\r' ? 1 : 0);
    const ByteRange range{start_, end};
    ++report_->records;
    return on_record_({.key = "",
                       .range = range,
                       .fields = {{std::string(kind_.field), range, range.size(), crc_}}});
  }

  const LinesOptions& options_;
  const LineKind kind_;
  const OnRecord& on_record_;
  ScanReport* const report_;
  Window window_;
  uint64_t start_ = 0;
  uint64_t end_ = 0;
  uint64_t next_ = 0;
  bool whole_ = false;
  bool blank_ = true;
  bool ends_in_quotes_ = false;
  char last_ = '\0';
  uint32_t crc_ = 0;
  Balance balance_;
};

}  // namespace

Status ScanJsonLines(const Shard& shard, const LinesOptions& options, const OnRecord& on_record,
                     ScanReport* report) {
  return LinesScan(shard, options, {.field = "json", .json = true}, on_record, report).Run();
}

Status ScanCsv(const Shard& shard, const CsvOptions& options, const OnRecord& on_record,
               ScanReport* report) {
  const LineKind kind{
      .field = "csv", .header = options.header, .quotes = true, .quote = options.quote};
  return LinesScan(shard, options, kind, on_record, report).Run();
}

namespace {

// A quoted cell from `*at` (behind its first quote) on; `*at` is left behind its last one. Two
// quotes are one.
Status TakeQuoted(std::string_view text, char quote, const Place& place, size_t* at,
                  std::string* scratch) {
  for (;;) {
    const size_t end = text.find(quote, *at);
    if (end == std::string_view::npos) {
      return Damaged(place + *at, "a closing quote", "the end of the line");
    }
    scratch->append(text, *at, end - *at);
    *at = end + 1;
    if (*at == text.size() || text[*at] != quote) return {};
    *scratch += quote;
    ++*at;
  }
}

}  // namespace

Status SplitCsvLine(ByteView line, char delimiter, char quote, std::vector<std::string_view>* cells,
                    std::string* scratch, const Place& place) {
  const std::string_view text = AsText(line);
  cells->clear();
  scratch->clear();
  scratch->reserve(text.size());  // views into it stay valid: cells are no longer than the line
  for (size_t at = 0;;) {
    if (at < text.size() && text[at] == quote) {
      const size_t start = scratch->size();
      ++at;
      FB_RETURN_IF_ERROR(TakeQuoted(text, quote, place, &at, scratch));
      cells->push_back(std::string_view(*scratch).substr(start));
      if (at < text.size() && text[at] != delimiter) {
        return Damaged(place + at, "a delimiter behind a closing quote", "text");
      }
    } else {
      const size_t end = std::min(text.find(delimiter, at), text.size());
      cells->push_back(text.substr(at, end - at));
      at = end;
    }
    if (at == text.size()) return {};
    ++at;
    if (at == text.size()) {
      cells->emplace_back();
      return {};
    }
  }
}

}  // namespace forebay::format
