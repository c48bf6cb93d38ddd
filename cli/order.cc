// forebay order show|find|digest|verify|price
#include <fmt/core.h>

#include <charconv>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "command.h"
#include "forebay/order.h"
#include "output.h"

namespace forebay::cli {
namespace {

// "100", of all of `text`.
std::optional<int64_t> Number(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::vector<std::string_view> Split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const size_t at = text.find(separator);
    parts.push_back(text.substr(0, at));
    if (at == text.npos) return parts;
    text.remove_prefix(at + 1);
  }
}

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
  Result<std::unique_ptr<Order>> Open(const Context& context) const;
  int Show(const Context& context, Order& order);
  int Find(const Context& context, Order& order);
  int Digest(const Context& context, Order& order);
  int Verify(const Context& context, Order& order);
  int Price(const Context& context, Order& order);

  std::string what_;
  std::string source_;
  int64_t samples_ = 0;
  int64_t block_samples_ = 1;
  std::string format_ = "video";
  ClipsOptions clips_;
  int64_t frames_ = 8, step_frames_ = 1, hop_ = 1;
  std::string cameras_;
  OrderOptions options_;
  int64_t seed_ = 0;
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
  flags.OptionalArgument("source", &source_, "s3://bucket/prefix/ or a folder, indexed");
  flags.Option("--samples", &samples_, "in place of a source: so many samples");
  flags.Option("--block", &block_samples_, "with --samples: samples in a block");
  flags.Option("--catalog", &clips_.catalog, "catalog URI (default: as `forebay index` leaves it)");
  flags.Choice("--format", &format_, {"video", "files"},
               "what the samples are: clips of videos, or plain objects");
  flags.Option("--pattern", &clips_.pattern, "of video clips: where scene and camera are");
  flags.Option("--cameras", &cameras_, "of video clips: names, with commas (default: all)");
  flags.Option("--frames", &frames_, "of a clip");
  flags.Option("--step-frames", &step_frames_, "from one frame of a clip to the next");
  flags.Option("--hop", &hop_, "frames from one clip's start to the next one's");
  flags.Option("--seed", &seed_, "of the order");
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
  const std::string wrong = "--shuffle: global, none, or blocks[:WINDOW[,STREAMS[,RUN]]]";
  if (text != "blocks" && !text.starts_with("blocks:")) return wrong;
  options_.shuffle = ShuffleKind::kBlocks;
  if (text == "blocks") return "";
  int64_t* values[] = {&options_.blocks.window, &options_.blocks.streams, &options_.blocks.run};
  size_t i = 0;
  for (const std::string_view part : Split(text.substr(7), ',')) {
    const auto value = Number(part);
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
    const auto world = Number(part.substr(0, std::min(x, part.size())));
    const auto batch = x < colon ? Number(part.substr(x + 1, colon - x - 1)) : std::nullopt;
    const auto batches = colon < part.size() ? Number(part.substr(colon + 1)) : std::optional(0L);
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

Result<std::unique_ptr<Order>> OrderCommand::Open(const Context& context) const {
  if (source_.empty()) return Order::OfCount(samples_, block_samples_, options_);
  if (format_ == "files") {
    RecordsOptions records{.uri = source_, .format = format_, .catalog = clips_.catalog};
    return Order::Open({{.name = "", .data = std::move(records)}}, options_, context.globals.store);
  }
  ClipsOptions clips = clips_;
  clips.uri = source_;
  clips.frames = static_cast<int>(frames_);
  clips.step = static_cast<int>(step_frames_);
  clips.hop = static_cast<int>(hop_);
  if (!cameras_.empty()) {
    for (const std::string_view camera : Split(cameras_, ',')) clips.cameras.emplace_back(camera);
  }
  return Order::Open({{.name = "", .data = std::move(clips)}}, options_, context.globals.store);
}

int OrderCommand::Run(const Context& context) {
  if (source_.empty() == (samples_ == 0)) {
    return context.FailUsage("give a SOURCE, or --samples");
  }
  for (const int64_t value : {frames_, step_frames_, hop_}) {
    if (value < 1 || value > INT32_MAX) {
      return context.FailUsage("--frames, --step-frames and --hop are at least 1");
    }
  }
  options_.seed = static_cast<uint64_t>(seed_);
  options_.tail = tail_ == "drop"  ? TailRule::kDrop
                  : tail_ == "pad" ? TailRule::kPad
                                   : TailRule::kRagged;
  std::string wrong = ReadShuffle();
  if (wrong.empty()) wrong = ReadChain();
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
    const bool written =
        context.globals.json
            ? WriteOut(JsonLine("order.show")
                           .Add("epoch", epoch_)
                           .Add("step", step_)
                           .Add("row", row)
                           .Add("position", entry.position)
                           .Add("sample", entry.sample)
                           .Add("pad", entry.pad)
                           .Add("what", where)
                           .Take())
            : WriteOut(fmt::format("{:>6}  position {:>12}  sample {:>12}{}{}{}\n", row,
                                   entry.position, entry.sample, entry.pad ? "  (repeated)" : "",
                                   where.empty() ? "" : "  ", where));
    if (!written) return kExitOther;
    ++row;
  }
  return kExitOk;
}

int OrderCommand::Find(const Context& context, Order& order) {
  if (sample_ < 0) return context.FailUsage("find: --sample, at least 0");
  const auto positions = order.Find(epoch_, 0, sample_);
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
