// Which source serves which position of a mixture: super-blocks of `block` positions in which every
// source has an exact whole number of places (largest remainder), scattered anew in each. Weights
// may change at any position; every source goes on where it was.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "forebay/status.h"

namespace forebay::order {

// From position `start` on, sources have these shares. Only their ratios count.
struct MixturePiece {
  uint64_t start = 0;
  std::vector<uint64_t> weights;
  bool operator==(const MixturePiece&) const = default;
};

struct MixtureSpec {
  uint64_t seed = 0;
  uint64_t block = 1000;             // positions in a super-block; at most kBlockMost
  std::vector<MixturePiece> pieces;  // by start; the first starts at 0
};
inline constexpr uint64_t kMixtureBlockMost = 1 << 17;

// Places of each source in a super-block: block * w / sum(w), the remainders' largest rounded up
// (ties: the first source).
std::vector<uint64_t> QuotasOf(std::span<const uint64_t> weights, uint64_t block);

// Not thread-safe: keeps the super-block that it used last.
class Mixture {
 public:
  // Errors: kInvalidArgument (no pieces, unequal numbers of weights, starts not growing, a source
  // with weight that gets no place in a block, ...).
  static Result<Mixture> Make(MixtureSpec spec);

  // Position -> the source and how many of that source's come before it.
  struct Pick {
    uint32_t source = 0;
    uint64_t index = 0;
  };
  Pick At(uint64_t position);
  // Where number `index` of `source` comes; nullopt: never (its weight is 0 from there on).
  std::optional<uint64_t> PositionOf(uint32_t source, uint64_t index);
  // How many of each source come before `position`.
  std::vector<uint64_t> CountsBefore(uint64_t position);
  size_t sources() const { return pieces_.front().quotas.size(); }

 private:
  struct Piece {
    uint64_t start = 0;
    std::vector<uint64_t> quotas;  // per super-block
    std::vector<uint64_t> before;  // of each source, at `start`
  };
  struct Block {
    uint64_t piece = ~uint64_t{0};
    uint64_t number = 0;
    uint64_t first = 0;            // position
    std::vector<uint64_t> before;  // of each source
    std::vector<uint16_t> source;  // per position
    std::vector<uint32_t> rank;    // ... among its source's in this block
  };
  Mixture(uint64_t seed, uint64_t block) : seed_(seed), block_(block) {}
  size_t PieceAt(uint64_t position) const;
  const Block& BlockAt(size_t piece, uint64_t number);

  uint64_t seed_;
  uint64_t block_;
  std::vector<Piece> pieces_;
  Block kept_;
  uint64_t kept_end_ = 0;  // where the weights after kept_'s piece begin
};

}  // namespace forebay::order
