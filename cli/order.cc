// forebay order show|find|digest|verify|price
#include <fmt/core.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "command.h"
#include "forebay/order.h"
#include "numbers.h"
#include "output.h"

namespace forebay::cli {
namespace {

class OrderCommand : public Command {
 public:
  std::string name() const override { return "order"; }
  std::string summary() const override {
    return "which samples a run takes, when, and the proof that each comes once";
  }
  void Define(Flags& flags) override;
  int Run(const Context& context) override;

 private:
  std::string ReadShuffle();
  std::string ReadChain();
  std::string ReadSources();
  std::string ReadSizes();
  // The number of the source of that name; none: there is no such source.
  std::optional<size_t> SourceNamed(std::string_view name) const;
  SourceOptions SourceAt(const std::string& uri) const;
  Result<std::unique_ptr<Order>> Open(const Context& context) const;
  int Show(const Context& context, Order& order);
  int Find(const Context& context, Order& order);
  int Digest(const Context& context, Order& order);
  int Verify(const Context& context, Order& order);
  int Price(const Context& context, Order& order);

  std::string what_;
  std::string source_;
  std::vector<std::string> mixed_;  // NAME=URI[:WEIGHT]
  std::vector<std::string> sizes_;  // [NAME=]EPOCH:SAMPLES,...
  std::string of_source_;
  std::vector<SourceOptions> sources_;  // of a mixture
  std::vector<Order::Growth> growth_;   // of each source, or none
  int64_t samples_ = 0;
  int64_t block_samples_ = 1;
  std::string format_ = "video";
  ClipsOptions clips_;
  int64_t frames_ = 8, step_frames_ = 1, hop_ = 1;
  std::string cameras_;
  OrderOptions options_;
  std::string shuffle_ = "global";
  std::string tail_ = "drop";
  PlaceOptions place_;
  int64_t epoch_ = 0;
  int64_t step_ = 0;
  int64_t sample_ = -1;
  int64_t position_ = -1;
  std::string chain_text_;
  std::vector<OrderStretch> chain_;
};

void OrderCommand::Define(Flags& flags) {
  flags.Argument("what", &what_,
                 "show (the samples of a step), find (where a sample comes), digest, verify (go "
                 "through all ranks), price (GETs and mixing of a shuffle)");
  flags.OptionalArgument("uri", &source_, "s3://bucket/prefix/ or a folder, indexed");
  flags.Options("--source", &mixed_,
                "in place of a source: NAME=URI[:WEIGHT], for each one of a mixture");
  flags.Option("--mixture-block", &options_.mixture_block,
               "of a mixture: positions in which every share is exact (default: found)");
  flags.Option("--samples", &samples_, "in place of a source: so many samples");
  flags.Options("--sizes", &sizes_,
                "samples that a source had from which of its epochs on, as its state says, "
                "EPOCH:SAMPLES,... (of a mixture NAME=EPOCH:SAMPLES,...)");
  flags.Option("--block", &block_samples_, "with --samples: samples in a block");
  flags.Option("--catalog", &clips_.catalog, "catalog URI (default: as `forebay index` leaves it)");
  flags.Choice("--format", &format_, {"video", "files", "records"},
               "what the samples are: clips of videos, plain objects, or records of shards");
  flags.Option("--pattern", &clips_.pattern, "of video clips: where scene and camera are");
  flags.Option("--cameras", &cameras_, "of video clips: names, with commas (default: all)");
  flags.Option("--frames", &frames_, "of a clip");
  flags.Option("--step-frames", &step_frames_, "from one frame of a clip to the next");
  flags.Option("--hop", &hop_, "frames from one clip's start to the next one's");
  flags.Option("--seed", &options_.seed, "of the order");
  flags.Option("--epoch", &epoch_, "counted from 0");
  flags.Option("--shuffle", &shuffle_, "global, none, or blocks[:WINDOW[,STREAMS[,RUN]]]");
  flags.Choice("--tail", &tail_, {"drop", "pad", "ragged"}, "what becomes of an epoch's end");
  flags.Option("--epoch-samples", &options_.epoch_samples, "samples of an epoch (default: all)");
  flags.Option("--batch-size", &place_.batch_size, "samples per rank and batch");
  flags.Option("--world-size", &place_.world_size, "ranks");
  flags.Option("--rank", &place_.rank, "show: whose rows");
  flags.Option("--replicas", &place_.replicas, "ranks side by side that see the same");
  flags.Option("--step", &step_, "show: which batch of the epoch");
  flags.Option("--sample", &sample_, "find: which sample");
  flags.Option("--of", &of_source_, "find: of which source of a mixture");
  flags.Option("--position", &position_,
               "digest: after so many samples of the epoch (default: all of it)");
  flags.Option("--chain", &chain_text_,
               "verify: a run that was resumed elsewhere, as WORLDxBATCH[:BATCHES],...");
}

// What is wrong with --shuffle; "": nothing.
std::string OrderCommand::ReadShuffle() {
  if (shuffle_ == "global" || shuffle_ == "none") {
    options_.shuffle = shuffle_ == "none" ? ShuffleKind::kNone : ShuffleKind::kGlobal;
    return "";
  }
  const std::string_view text = shuffle_;
  std::string wrong = "--shuffle: global, none, or blocks[:WINDOW[,STREAMS[,RUN]]]";
  if (text != "blocks" && !text.starts_with("blocks:")) return wrong;
  options_.shuffle = ShuffleKind::kBlocks;
  if (text == "blocks") return "";
  int64_t* values[] = {&options_.blocks.window, &options_.blocks.streams, &options_.blocks.run};
  size_t i = 0;
  for (const std::string_view part : Split(text.substr(7), ',')) {
    const auto value = ParseNumber(part);
    if (i == std::size(values) || !value) return wrong;
    *values[i++] = *value;
  }
  return "";
}

std::string OrderCommand::ReadChain() {
  if (chain_text_.empty()) {
    chain_.push_back({place_, 0});
    return "";
  }
  for (const std::string_view part : Split(chain_text_, ',')) {
    const size_t x = part.find('x');
    const size_t colon = std::min(part.find(':'), part.size());
    const auto world = ParseNumber(part.substr(0, std::min(x, part.size())));
    const auto batch = x < colon ? ParseNumber(part.substr(x + 1, colon - x - 1)) : std::nullopt;
    const auto batches =
        colon < part.size() ? ParseNumber(part.substr(colon + 1)) : std::optional(0L);
    if (!world || !batch || !batches || *batches < 0 || (colon < part.size() && *batches == 0)) {
      return "--chain: WORLDxBATCH[:BATCHES] with commas between them, as in 8x32:100,4x64";
    }
    OrderStretch stretch;
    stretch.place.world_size = *world;
    stretch.place.batch_size = *batch;
    stretch.batches = *batches;
    chain_.push_back(stretch);
  }
  return "";
}

std::optional<size_t> OrderCommand::SourceNamed(std::string_view name) const {
  for (size_t i = 0; i < sources_.size(); ++i) {
    if (sources_[i].name == name) return i;
  }
  return std::nullopt;
}

std::string OrderCommand::ReadSources() {
  for (const std::string& text : mixed_) {
    const size_t equals = text.find('=');
    if (equals == 0 || equals == text.npos || equals + 1 == text.size()) {
      return "--source: NAME=URI[:WEIGHT], as in web=s3://bucket/web/:0.7";
    }
    std::string uri = text.substr(equals + 1);
    double weight = 1;
    // URIs have colons of their own.
    if (const size_t colon = uri.rfind(':'); colon != uri.npos) {
      if (const auto number = ParseReal(std::string_view(uri).substr(colon + 1))) {
        weight = *number;
        uri.resize(colon);
      }
    }
    SourceOptions source = SourceAt(uri);
    source.name = text.substr(0, equals);
    source.weight = weight;
    if (SourceNamed(source.name)) return "--source: two are named " + source.name;
    sources_.push_back(std::move(source));
  }
  if (!of_source_.empty() && !SourceNamed(of_source_)) {
    return "--of: no --source is named " + of_source_;
  }
  return "";
}

std::string OrderCommand::ReadSizes() {
  growth_.resize(sizes_.empty() ? 0 : std::max<size_t>(sources_.size(), 1));
  for (const std::string& text : sizes_) {
    std::string_view list = text;
    size_t number = 0;
    if (!sources_.empty()) {
      const size_t equals = list.find('=');
      const auto named = SourceNamed(list.substr(0, equals));
      if (equals == list.npos || !named) return "--sizes: NAME=EPOCH:SAMPLES,... of a --source";
      number = *named;
      list.remove_prefix(equals + 1);
    }
    if (!growth_[number].empty()) return "--sizes: given twice for the same source";
    for (const std::string_view part : Split(list, ',')) {
      const size_t colon = std::min(part.find(':'), part.size());
      const auto epoch = ParseNumber(part.substr(0, colon));
      const auto samples = ParseNumber(part.substr(std::min(colon + 1, part.size())));
      if (!epoch || !samples || *epoch < 0 || *samples < 1) {
        return "--sizes: EPOCH:SAMPLES with commas between them, as in 0:1000,3:1250";
      }
      growth_[number].push_back({static_cast<uint64_t>(*epoch), static_cast<uint64_t>(*samples)});
    }
  }
  return "";
}

SourceOptions OrderCommand::SourceAt(const std::string& uri) const {
  if (format_ != "video") {
    return {
        .name = "",
        .data = RecordsOptions{
            .uri = uri, .format = format_ == "files" ? format_ : "", .catalog = clips_.catalog}};
  }
  ClipsOptions clips = clips_;
  clips.uri = uri;
  clips.frames = static_cast<int>(frames_);
  clips.step = static_cast<int>(step_frames_);
  clips.hop = static_cast<int>(hop_);
  if (!cameras_.empty()) {
    for (const std::string_view camera : Split(cameras_, ',')) clips.cameras.emplace_back(camera);
  }
  return {.name = "", .data = std::move(clips)};
}

Result<std::unique_ptr<Order>> OrderCommand::Open(const Context& context) const {
  const StoreOptions& store = context.globals.store;
  if (!sources_.empty()) return Order::Open(sources_, options_, store, growth_);
  if (!source_.empty()) return Order::Open({SourceAt(source_)}, options_, store, growth_);
  return Order::OfCount(samples_, block_samples_, options_,
                        growth_.empty() ? Order::Growth() : growth_[0]);
}

int OrderCommand::Run(const Context& context) {
  const int given = (source_.empty() ? 0 : 1) + (mixed_.empty() ? 0 : 1) + (samples_ == 0 ? 0 : 1);
  if (given != 1)
    return context.FailUsage("give a SOURCE, or --source several times, or --samples");
  if (!mixed_.empty() && !clips_.catalog.empty()) {
    return context.FailUsage("--catalog is of one SOURCE: those of a mixture are found beside it");
  }
  for (const int64_t value : {frames_, step_frames_, hop_}) {
    if (value < 1 || value > INT32_MAX) {
      return context.FailUsage("--frames, --step-frames and --hop are at least 1");
    }
  }
  options_.tail = tail_ == "drop"  ? TailRule::kDrop
                  : tail_ == "pad" ? TailRule::kPad
                                   : TailRule::kRagged;
  std::string wrong = ReadShuffle();
  if (wrong.empty()) wrong = ReadChain();
  if (wrong.empty()) wrong = ReadSources();
  if (wrong.empty()) wrong = ReadSizes();
  using Verb = int (OrderCommand::*)(const Context&, Order&);
  const std::pair<std::string_view, Verb> verbs[] = {
      {"show", &OrderCommand::Show},     {"find", &OrderCommand::Find},
      {"digest", &OrderCommand::Digest}, {"verify", &OrderCommand::Verify},
      {"price", &OrderCommand::Price},
  };
  Verb verb = nullptr;
  for (const auto& [name, run] : verbs) verb = what_ == name ? run : verb;
  if (verb == nullptr) wrong = "order show|find|digest|verify|price, not '" + what_ + "'";
  if (!wrong.empty()) return context.FailUsage(wrong);
  const auto order = Open(context);
  if (!order.ok()) return context.Fail(order.status());
  return (this->*verb)(context, **order);
}

int OrderCommand::Show(const Context& context, Order& order) {
  const auto entries = order.Batch(place_, epoch_, step_);
  if (!entries.ok()) return context.Fail(entries.status());
  if (entries->empty()) {
    context.Note(fmt::format("epoch {} of {} samples has no batch {} of {} x {}", epoch_,
                             order.EpochSamples(epoch_), step_, place_.world_size,
                             place_.batch_size));
  }
  int64_t row = 0;
  for (const OrderEntry& entry : *entries) {
    const std::string where = order.Describe(entry.source, entry.sample);
    const std::string& source = order.source_names()[static_cast<size_t>(entry.source)];
    JsonLine line("order.show");
    line.Add("epoch", epoch_).Add("step", step_).Add("row", row).Add("position", entry.position);
    if (!source.empty()) line.Add("source", source);
    line.Add("sample", entry.sample).Add("pad", entry.pad).Add("what", where);
    const std::string text =
        fmt::format("{:>6}  position {:>12}  {}{}sample {:>12}{}{}{}\n", row, entry.position,
                    source, source.empty() ? "" : "  ", entry.sample,
                    entry.pad ? "  (repeated)" : "", where.empty() ? "" : "  ", ForStdout(where));
    if (!WriteOut(context.globals.json ? line.Take() : text)) return kExitOther;
    ++row;
  }
  return kExitOk;
}

int OrderCommand::Find(const Context& context, Order& order) {
  if (sample_ < 0) return context.FailUsage("find: --sample, at least 0");
  if (sources_.size() > 1 && of_source_.empty()) {
    return context.FailUsage("find: --of, the name of the sample's source");
  }
  const auto source = static_cast<int32_t>(SourceNamed(of_source_).value_or(0));
  const auto positions = order.Find(epoch_, source, sample_);
  if (!positions.ok()) return context.Fail(positions.status());
  const int64_t global = place_.batch_size * (place_.world_size / place_.replicas);
  for (const int64_t position : *positions) {
    const int64_t step = position / global;
    const int64_t rank = position % global / place_.batch_size * place_.replicas;
    const int64_t row = position % place_.batch_size;
    // The last batch may be cut otherwise.
    const bool whole = (step + 1) * global <= order.EpochSamples(epoch_);
    JsonLine line("order.find");
    line.Add("epoch", epoch_).Add("sample", sample_).Add("position", position).Add("step", step);
    if (whole) line.Add("rank", rank).Add("row", row);
    const std::string text =
        whole ? fmt::format("epoch {}: position {}, step {}, rank {}, row {}\n", epoch_, position,
                            step, rank, row)
              : fmt::format("epoch {}: position {}, step {} (the epoch's last, incomplete batch)\n",
                            epoch_, position, step);
    if (!WriteOut(context.globals.json ? line.Take() : text)) return kExitOther;
  }
  if (positions->empty()) context.Note(fmt::format("not in epoch {}", epoch_));
  return kExitOk;
}

int OrderCommand::Digest(const Context& context, Order& order) {
  const int64_t position = position_ >= 0 ? position_ : order.EpochSamples(epoch_);
  const auto digest = order.Digest(epoch_, position);
  if (!digest.ok()) return context.Fail(digest.status());
  const bool written = WriteOut(context.globals.json ? JsonLine("order.digest")
                                                           .Add("epoch", epoch_)
                                                           .Add("position", position)
                                                           .Add("digest", *digest)
                                                           .Take()
                                                     : *digest + "\n");
  return written ? kExitOk : kExitOther;
}

int OrderCommand::Verify(const Context& context, Order& order) {
  const auto proof = order.Verify(chain_, epoch_);
  if (!proof.ok()) return context.Fail(proof.status());
  const bool good = proof->violations.empty();
  std::string text = fmt::format(
      "{}: epoch {} of {} samples in {} batches\n"
      "  {} rows delivered over all ranks, {} of them declared repeats; {} samples left out by the "
      "tail\n  digest {}\n",
      good ? "every sample exactly as often as declared" : "NOT as declared", epoch_,
      proof->samples, proof->batches, proof->delivered, proof->padded, proof->dropped,
      proof->digest);
  std::string list;
  for (const std::string& violation : proof->violations) {
    text += "  " + violation + "\n";
    list += (list.empty() ? "" : ",") + JsonString(violation);
  }
  const std::string json = JsonLine("order.verify")
                               .Add("ok", good)
                               .Add("epoch", epoch_)
                               .Add("samples", proof->samples)
                               .Add("batches", proof->batches)
                               .Add("delivered", proof->delivered)
                               .Add("padded", proof->padded)
                               .Add("dropped", proof->dropped)
                               .Add("digest", proof->digest)
                               .AddRaw("violations", "[" + list + "]")
                               .Take();
  if (!WriteOut(context.globals.json ? json : text)) return kExitOther;
  return good ? kExitOk : kExitFailed;
}

int OrderCommand::Price(const Context& context, Order& order) {
  const auto price = order.Price(place_, epoch_);
  if (!price.ok()) return context.Fail(price.status());
  const std::string text = fmt::format(
      "{} samples of rank {} looked at, {} x {} a batch\n"
      "  GETs per sample           {:.4f}\n"
      "  samples read per used     {:.2f}\n"
      "  distinct blocks per batch {:.1f}\n"
      "  distance from uniform     {:.3f} (global shuffle: {:.3f})\n",
      price->samples, place_.rank, place_.world_size, place_.batch_size, price->gets_per_sample,
      price->samples_read_per_used, price->blocks_per_batch, price->distance,
      price->distance_of_global);
  const std::string json = JsonLine("order.price")
                               .Add("samples", price->samples)
                               .Add("gets_per_sample", price->gets_per_sample)
                               .Add("samples_read_per_used", price->samples_read_per_used)
                               .Add("blocks_per_batch", price->blocks_per_batch)
                               .Add("distance", price->distance)
                               .Add("distance_of_global", price->distance_of_global)
                               .Take();
  return WriteOut(context.globals.json ? json : text) ? kExitOk : kExitOther;
}

}  // namespace

std::unique_ptr<Command> MakeOrder() { return std::make_unique<OrderCommand>(); }

}  // namespace forebay::cli
