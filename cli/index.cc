// forebay index SRC
#include <fmt/core.h>

#include "command.h"
#include "forebay/video.h"
#include "output.h"
#include "share.h"

namespace forebay::cli {
namespace {

double Percent(uint64_t part, uint64_t whole) {
  return whole == 0 ? 0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole);
}

class Index : public Command {
 public:
  std::string name() const override { return "index"; }
  std::string summary() const override { return "build the catalog of a data set by range reads"; }
  void Define(Flags& flags) override {
    flags.Argument("source", &source_, "s3://bucket/prefix/ or a folder");
    flags.Option("--out", &options_.out, "catalog URI (default: SRC/.forebay/catalog.fbc)");
    std::vector<std::string> formats = {"auto", "video", "files"};
    for (std::string& format : RecordFormats()) formats.push_back(std::move(format));
    flags.Choice("--format", &options_.format, formats,
                 "what the objects are; files: each is a sample, none is read");
    flags.Choice("--s3-data-type", &options_.s3_data_type,
                 {"S3Prefix", "ManifestFile", "AugmentedManifestFile"},
                 "files: what SRC names, as SageMaker defines it (default: a folder)");
    flags.Choice("--key-order", &options_.key_order, {"bytes", "listed"},
                 "files: the samples' order: of the keys' bytes, or as the store lists them");
    flags.Flag("--append", &options_.append,
               "not of videos: new objects' samples come behind those that the catalog has");
    flags.Option("--shard", &shard_,
                 "I/N: every Nth video or shard from I on, I from 0; then `forebay merge`");
    flags.Option("--dtype", &options_.dtype,
                 "tokens: their type where a file does not say it (uint16, uint32, ...)");
    flags.Flag("--drop-tail", &options_.drop_tail,
               "shards: a last record that is cut is left out and told, not an error");
    flags.Flag("--concatenated", &options_.concatenated,
               "tar: behind an archive's end another one begins");
    flags.Option(
        "--max-damaged", &max_damaged_,
        "tfrecord: so many records of a shard with a wrong checksum are left out and told");
    flags.Choice("--verify", &options_.verify, {"none", "heads", "full"},
                 "how sync points are checked");
    flags.Option("--parallel", &parallel_, "objects at a time");
  }

  int Run(const Context& context) override {
    if (parallel_ < 1 || parallel_ > 1024) {
      WriteErr("forebay index: --parallel must be in [1, 1024]\n");
      return kExitUsage;
    }
    options_.parallel = static_cast<uint32_t>(parallel_);
    if (max_damaged_ < 0) return context.FailUsage("--max-damaged is negative");
    options_.max_damaged = static_cast<uint64_t>(max_damaged_);
    if (!shard_.empty()) {
      const std::optional<Share> share = ParseShare(shard_);
      if (!share) return context.FailUsage("--shard is I/N, I from 0 to N - 1");
      options_.share = share->share;
      options_.shares = share->shares;
    }
    Progress progress(context, "index");
    options_.on_progress = [&](const IndexProgress& now) {
      progress.Update(now.objects_done, now.objects_total, false);
      return true;
    };
    const Result<IndexReport> report = BuildIndex(source_, context.globals.store, options_);
    progress.Finish();
    if (!report.ok()) return context.Fail(report.status());
    return Tell(context, *report);
  }

  // The exit code.
  static int Tell(const Context& context, const IndexReport& report) {
    for (const IndexFailure& failure : report.failures) {
      WriteErr(Escaped(fmt::format("forebay index: {}: {}", failure.uri, failure.why)) + "\n");
    }
    for (const std::string& warning : report.warnings) {
      WriteErr(Escaped("forebay index: warning: " + warning) + "\n");
    }
    if (!WriteOut(context.globals.json ? Json(report) : AnyText(report))) return kExitOther;
    if (report.objects_failed > 0) return kExitFailed;
    return report.objects_skipped > 0 ? kExitSkipped : kExitOk;
  }

 private:
  static std::string Json(const IndexReport& r) {
    return JsonLine("index")
        .Add("catalog", r.catalog_uri)
        .Add("content_hash", r.content_hash)
        .Add("objects", r.objects)
        .Add("objects_failed", r.objects_failed)
        .Add("objects_skipped", r.objects_skipped)
        .Add("videos", r.videos)
        .Add("frames", r.frames)
        .Add("dataset_bytes", r.dataset_bytes)
        .Add("bytes_read", r.bytes_read)
        .Add("table_dataset_bytes", r.table_dataset_bytes)
        .Add("table_bytes_read", r.table_bytes_read)
        .Add("requests", r.requests)
        .Add("index_bytes", r.index_bytes)
        .Add("format", r.format)
        .Add("appended", r.appended)
        .Add("generations", r.generations)
        .Add("shards", r.shards)
        .Add("records", r.records)
        .Add("oddities", r.oddities)
        .Take();
  }
  static std::string FilesText(const IndexReport& r) {
    const uint64_t files = r.objects - r.objects_skipped;
    std::string text = fmt::format(
        "catalog:   {} ({})\nobjects:   {}, {} ({} left out), as they are; none was read\n",
        r.catalog_uri, HumanSize(r.index_bytes), files, HumanSize(r.dataset_bytes),
        r.objects_skipped);
    if (r.appended != files) {
      text += r.appended > 0
                  ? fmt::format("appended:  {}, as generation {}\n", r.appended, r.generations)
                  : "appended:  nothing, the catalog stays as it is\n";
    }
    return text;
  }
  static std::string AnyText(const IndexReport& r) {
    if (r.format == "files") return FilesText(r);
    return r.format == "video" ? Text(r) : RecordsText(r);
  }
  static std::string RecordsText(const IndexReport& r) {
    std::string text = fmt::format(
        "catalog:   {} ({})\nshards:    {} of format {}, {} ({} failed, {} left out)\n"
        "records:   {}{}\nread:      {} in {} GETs\n",
        r.catalog_uri, HumanSize(r.index_bytes), r.shards, r.format, HumanSize(r.dataset_bytes),
        r.objects_failed, r.objects_skipped, r.records,
        r.oddities > 0 ? fmt::format(", {} oddities (see the warnings)", r.oddities) : "",
        HumanSize(r.bytes_read), r.requests);
    for (const IndexField& field : r.fields) {
      text += fmt::format("field:     {} in {} records, {} at most\n", field.name, field.records,
                          HumanSize(field.bytes_max));
    }
    if (r.appended != r.records) {
      text += r.appended > 0
                  ? fmt::format("appended:  {}, as generation {}\n", r.appended, r.generations)
                  : "appended:  nothing, the catalog stays as it is\n";
    }
    return text;
  }
  static std::string Text(const IndexReport& r) {
    std::string text = fmt::format(
        "catalog:   {} ({})\nobjects:   {} ({} videos, {} frames; {} failed, {} left out)\n"
        "read:      {} of {} ({:.2f}%) in {} GETs\n",
        r.catalog_uri, HumanSize(r.index_bytes), r.objects, r.videos, r.frames, r.objects_failed,
        r.objects_skipped, HumanSize(r.bytes_read), HumanSize(r.dataset_bytes),
        Percent(r.bytes_read, r.dataset_bytes), r.requests);
    if (r.table_dataset_bytes > 0 && r.table_dataset_bytes != r.dataset_bytes) {
      text += fmt::format("           {:.2f}% where the container has a sample table\n",
                          Percent(r.table_bytes_read, r.table_dataset_bytes));
    }
    const uint64_t files = r.objects - r.objects_skipped - r.objects_failed;
    if (files > 0 && r.frames > 0) {
      text +=
          fmt::format("index:     {} a file, {} per 600 frames\n", HumanSize(r.index_bytes / files),
                      HumanSize(r.index_bytes * 600 / r.frames));
    }
    return text;
  }

  std::string source_;
  std::string shard_;
  int64_t parallel_ = 16;
  int64_t max_damaged_ = 0;
  IndexOptions options_;
};

// forebay merge SRC
class Merge : public Command {
 public:
  std::string name() const override { return "merge"; }
  std::string summary() const override { return "one catalog of what `index --shard` has left"; }
  void Define(Flags& flags) override {
    flags.Argument("source", &source_, "as it was indexed");
    flags.Option("--out", &out_, "as it was indexed");
  }
  int Run(const Context& context) override {
    const Result<IndexReport> report = MergeIndex(source_, context.globals.store, out_);
    return report.ok() ? Index::Tell(context, *report) : context.Fail(report.status());
  }

 private:
  std::string source_;
  std::string out_;
};

}  // namespace

std::unique_ptr<Command> MakeMerge() { return std::make_unique<Merge>(); }

std::unique_ptr<Command> MakeIndex() { return std::make_unique<Index>(); }

}  // namespace forebay::cli
