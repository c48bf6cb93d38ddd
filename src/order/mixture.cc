#include "order/mixture.h"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "base/assert.h"
#include "base/random.h"
#include "order/permutation.h"

namespace forebay::order {
namespace {

constexpr size_t kSourcesMost = 1 << 16;

Status Bad(std::string text) { return Status(Code::kInvalidArgument, std::move(text)); }

Status CheckPiece(const MixturePiece& piece, const MixtureSpec& spec) {
  if (piece.weights.size() != spec.pieces.front().weights.size()) {
    return Bad(fmt::format("a mixture has {} weights at first and {} from position {} on",
                           spec.pieces.front().weights.size(), piece.weights.size(), piece.start));
  }
  Wide sum = 0;
  for (const uint64_t weight : piece.weights) sum += weight;
  if (sum == 0) return Bad("the weights of a mixture are all 0");
  if (sum > ~uint64_t{0}) return Bad("the weights of a mixture add up to more than 2^64");
  const auto quotas = QuotasOf(piece.weights, spec.block);
  for (size_t i = 0; i < quotas.size(); ++i) {
    if (quotas[i] == 0 && piece.weights[i] > 0) {
      return Bad(
          fmt::format("source {} has weight {} of {}: it gets none of a mixture block's {} "
                      "places; a larger block would give it one",
                      i, piece.weights[i], static_cast<uint64_t>(sum), spec.block));
    }
  }
  return {};
}

}  // namespace

std::vector<uint64_t> QuotasOf(std::span<const uint64_t> weights, uint64_t block) {
  Wide sum = 0;
  for (const uint64_t weight : weights) sum += weight;
  FB_ASSERT(sum > 0);
  std::vector<uint64_t> quotas;
  std::vector<Wide> remainders;
  uint64_t given = 0;
  for (const uint64_t weight : weights) {
    const Wide share = static_cast<Wide>(weight) * block;
    quotas.push_back(static_cast<uint64_t>(share / sum));
    remainders.push_back(share % sum);
    given += quotas.back();
  }
  std::vector<size_t> by_remainder(weights.size());
  std::iota(by_remainder.begin(), by_remainder.end(), size_t{0});
  std::ranges::stable_sort(by_remainder,
                           [&](size_t a, size_t b) { return remainders[a] > remainders[b]; });
  for (size_t i = 0; given < block; ++i, ++given) ++quotas[by_remainder[i]];
  return quotas;
}

Result<Mixture> Mixture::Make(MixtureSpec spec) {
  if (spec.pieces.empty() || spec.pieces.front().weights.empty()) return Bad("an empty mixture");
  if (spec.pieces.front().weights.size() > kSourcesMost) return Bad("over 65536 sources");
  if (spec.pieces.front().start != 0) return Bad("a mixture's first weights start at position 0");
  if (spec.block == 0 || spec.block > kMixtureBlockMost) {
    return Bad(
        fmt::format("a mixture block of {} is not in [1, {}]", spec.block, kMixtureBlockMost));
  }
  Mixture mixture(spec.seed, spec.block);
  for (const MixturePiece& piece : spec.pieces) {
    FB_RETURN_IF_ERROR(CheckPiece(piece, spec));
    std::vector<uint64_t> before(piece.weights.size(), 0);
    if (!mixture.pieces_.empty()) {
      if (piece.start <= mixture.pieces_.back().start) {
        return Bad(fmt::format("weights from position {} on come after those from {} on",
                               piece.start, mixture.pieces_.back().start));
      }
      before = mixture.CountsBefore(piece.start);
    }
    mixture.pieces_.push_back(
        {piece.start, QuotasOf(piece.weights, spec.block), std::move(before)});
  }
  mixture.kept_ = {};  // made before all pieces were known
  return mixture;
}

size_t Mixture::PieceAt(uint64_t position) const {
  const auto after = std::ranges::upper_bound(pieces_, position, {}, &Piece::start);
  return static_cast<size_t>(after - pieces_.begin()) - 1;
}

const Mixture::Block& Mixture::BlockAt(size_t piece, uint64_t number) {
  if (kept_.piece == piece && kept_.number == number) return kept_;
  const std::vector<uint64_t>& quotas = pieces_[piece].quotas;
  const uint64_t key =
      DeriveKey(DeriveKey(DeriveKey(seed_, HashName("mix/v1")), pieces_[piece].start), number);
  const Permutation scatter(block_, key);
  kept_.piece = piece;
  kept_.number = number;
  kept_.first = pieces_[piece].start + number * block_;
  kept_end_ = piece + 1 < pieces_.size() ? pieces_[piece + 1].start : ~uint64_t{0};
  kept_.before = pieces_[piece].before;
  for (size_t i = 0; i < quotas.size(); ++i) kept_.before[i] += number * quotas[i];
  kept_.source.resize(block_);
  kept_.rank.resize(block_);
  uint64_t place = 0;
  for (size_t source = 0; source < quotas.size(); ++source) {
    for (uint64_t i = 0; i < quotas[source]; ++i) {
      kept_.source[scatter.At(place++)] = static_cast<uint16_t>(source);
    }
  }
  std::vector<uint32_t> counts(quotas.size(), 0);
  for (uint64_t i = 0; i < block_; ++i) kept_.rank[i] = counts[kept_.source[i]]++;
  return kept_;
}

Mixture::Pick Mixture::At(uint64_t position) {
  // Mostly it is in the same block as the last one, and no later weights begin inside it.
  if (kept_.source.empty() || position - kept_.first >= block_ || position >= kept_end_) {
    const size_t p = PieceAt(position);
    BlockAt(p, (position - pieces_[p].start) / block_);
  }
  const uint64_t at = position - kept_.first;
  const uint32_t source = kept_.source[at];
  return {source, kept_.before[source] + kept_.rank[at]};
}

std::vector<uint64_t> Mixture::CountsBefore(uint64_t position) {
  const size_t p = PieceAt(position);
  const Piece& piece = pieces_[p];
  const uint64_t number = (position - piece.start) / block_;
  const uint64_t at = (position - piece.start) % block_;
  std::vector<uint64_t> counts = piece.before;
  for (size_t i = 0; i < counts.size(); ++i) counts[i] += number * piece.quotas[i];
  if (at == 0) return counts;
  const Block& block = BlockAt(p, number);
  for (uint64_t i = 0; i < at; ++i) ++counts[block.source[i]];
  return counts;
}

std::optional<uint64_t> Mixture::PositionOf(uint32_t source, uint64_t index) {
  FB_ASSERT(source < sources());
  for (size_t p = pieces_.size(); p > 0; --p) {
    const Piece& piece = pieces_[p - 1];
    if (index < piece.before[source]) continue;
    const uint64_t quota = piece.quotas[source];
    if (quota == 0) return std::nullopt;
    const uint64_t number = (index - piece.before[source]) / quota;
    const auto rank = static_cast<uint32_t>((index - piece.before[source]) % quota);
    const Block& block = BlockAt(p - 1, number);
    for (uint64_t i = 0; i < block_; ++i) {
      if (block.source[i] == source && block.rank[i] == rank) {
        return piece.start + number * block_ + i;
      }
    }
  }
  return std::nullopt;
}

}  // namespace forebay::order
