// forebay pack SRC DST --to FORMAT
#include "forebay/pack.h"

#include <fmt/core.h>

#include <chrono>
#include <optional>

#include "command.h"
#include "forebay/video.h"
#include "output.h"
#include "share.h"
#include "signals.h"

namespace forebay::cli {
namespace {

// What is left at the pace so far.
class Remaining {
 public:
  std::string Text(uint64_t done, uint64_t total) const {
    const double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - started_).count();
    if (done == 0 || done >= total) return "";
    const auto left = static_cast<uint64_t>(seconds * static_cast<double>(total - done) /
                                            static_cast<double>(done));
    return fmt::format("{}:{:02}:{:02} left", left / 3600, left / 60 % 60, left % 60);
  }

 private:
  const std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
};

class Pack : public Command {
 public:
  std::string name() const override { return "pack"; }
  std::string summary() const override { return "many small files, or other shards, into shards"; }
  void Define(Flags& flags) override {
    flags.Argument("source", &source_, "s3://bucket/prefix/ or a folder");
    flags.Argument("target", &target_, "an empty prefix or folder; an earlier run is gone on with");
    flags.Choice("--to", &options_.to, PackFormats(), "what is written");
    std::vector<std::string> formats = {"auto", "files"};
    for (std::string& format : RecordFormats()) formats.push_back(std::move(format));
    flags.Choice("--format", &options_.format, formats,
                 "what the source is of; files: neighbouring files of one key are a sample");
    flags.Option("--catalog", &options_.catalog, "the source's catalog, instead of indexing it");
    flags.Flag("--unpack", &options_.unpack,
               "the source's shards are compressed as a whole, by gzip, zlib or zstd");
    flags.Size("--shard-size", &options_.shard_bytes, "of a shard, about (default 256MiB)");
    flags.Size("--memory", &options_.memory,
               "bounds the shards that are made at a time (default 1GiB)");
    flags.Option("--shard", &shard_,
                 "I/N: makes every Nth shard from I on, I from 0; the last machine to end writes "
                 "the catalog");
    flags.Options("--column", &options_.columns,
                  "a field to write: NAME, NAME=A|B, NAME:TYPE; once for each (default: all)");
    flags.Choice("--keys", &options_.keys, {"auto", "source", "number"},
                 "the samples' keys: the source's, or their numbers");
    flags.Choice("--labels", &options_.labels, {"folder", "none"},
                 "folder: a field cls, the number of the top folder; none: label 0");
    flags.Option("--label-column", &options_.label_column,
                 "recordio-protobuf, of rows of numbers: which one is the label");
    flags.Option("--sparse-columns", &sparse_columns_,
                 "recordio-protobuf, of LIBSVM's lines: how many features there are");
    flags.Flag("--zero-based", &options_.zero_based, "LIBSVM's features are counted from 0, not 1");
  }

  int Run(const Context& context) override {
    if (options_.to.empty()) return context.FailUsage("--to FORMAT is needed");
    if (sparse_columns_ < 0) return context.FailUsage("--sparse-columns is a count");
    options_.sparse_columns = static_cast<uint64_t>(sparse_columns_);
    if (!shard_.empty()) {
      const std::optional<Share> share = ParseShare(shard_);
      if (!share) return context.FailUsage("--shard is I/N, I from 0 to N - 1");
      options_.share = share->share;
      options_.shares = share->shares;
    }
    const KeepPartialWork keep;  // shards that are made already are what the next run goes on from
    Progress progress(context, "pack");
    const Remaining remaining;
    options_.on_progress = [&](const PackProgress& at) {
      progress.Update(at.bytes_done, at.bytes_total, true,
                      fmt::format("{} of {} shards{}{}", at.shards_done, at.shards_total,
                                  at.bytes_done > 0 ? ", " : "",
                                  remaining.Text(at.bytes_done, at.bytes_total)));
      return !Interrupted();
    };
    const Result<PackReport> report =
        forebay::Pack(source_, target_, context.globals.store, options_);
    progress.Finish();
    if (!report.ok()) {
      const int code = context.FailObject(report.status());
      if (report.code() == Code::kCancelled) context.Note("the same command goes on with it");
      return code;
    }
    for (const std::string& warning : report->warnings) {
      WriteErr(Escaped("forebay pack: warning: " + warning) + "\n");
    }
    if (!WriteOut(context.globals.json ? Json(*report) : Text(*report))) return kExitOther;
    return report->files_left_out > 0 ? kExitSkipped : kExitOk;
  }

 private:
  std::string Json(const PackReport& r) const {
    return JsonLine("pack")
        .Add("source", r.source_uri)
        .Add("target", r.target_uri)
        .Add("from", r.format)
        .Add("to", options_.to)
        .Add("catalog", r.catalog_uri)
        .Add("manifest", r.manifest_uri)
        .Add("content_hash", r.content_hash)
        .Add("samples", r.samples)
        .Add("shards", r.shards)
        .Add("shards_written", r.shards_written)
        .Add("shards_there", r.shards_there)
        .Add("shards_missing", r.shards_missing)
        .Add("bytes_written", r.bytes_written)
        .Add("files_left_out", r.files_left_out)
        .Take();
  }
  std::string Text(const PackReport& r) const {
    std::string text = fmt::format(
        "packed:    {} samples of {} into {} shards of {}\nwritten:   {} shards, {}; {} were there "
        "already\n",
        r.samples, r.format, r.shards, options_.to, r.shards_written, HumanSize(r.bytes_written),
        r.shards_there);
    if (r.shards_missing > 0) {
      return text + fmt::format(
                        "missing:   {} shards of other machines: the one that ends last "
                        "writes the catalog\n",
                        r.shards_missing);
    }
    return text + fmt::format("catalog:   {}\nmanifest:  {}\n", r.catalog_uri, r.manifest_uri);
  }

  std::string source_;
  std::string target_;
  std::string shard_;
  int64_t sparse_columns_ = 0;
  PackOptions options_;
};

}  // namespace

std::unique_ptr<Command> MakePack() { return std::make_unique<Pack>(); }

}  // namespace forebay::cli
