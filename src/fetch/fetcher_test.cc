#include "fetch/fetcher.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace forebay::fetch {
namespace {

// A tier that answers when it is told to.
class HandTier : public Tier {
 public:
  struct Read {
    std::vector<Piece> pieces;
    TierSink* sink = nullptr;
    bool cancelled = false;
  };
  const char* name() const override { return "by hand"; }
  Ticket StartRead(std::vector<Piece> pieces, Priority, Time, TierSink* sink) override {
    reads.push_back({std::move(pieces), sink});
    return reads.size();
  }
  void Promote(Ticket) override {}
  void Cancel(Ticket ticket) override { reads[ticket - 1].cancelled = true; }

  void Answer(size_t number, const Status& status = {}) {
    const Read read = reads[number];
    for (size_t i = 0; i < read.pieces.size(); ++i) {
      if (status.ok()) {
        read.sink->OnBytes(i, read.pieces[i].extent, {});
      } else {
        read.sink->OnFailed(i, status);
      }
    }
    read.sink->OnTierDone();
  }
  // "0 1024 | 2048": where the pieces of each read begin.
  std::string Asked() const {
    std::string text;
    for (const Read& read : reads) {
      if (!text.empty()) text += "| ";
      for (const Piece& piece : read.pieces) {
        text += std::to_string(piece.extent.range.offset) + " ";
      }
    }
    return text;
  }

  std::vector<Read> reads;
};

class Log : public FetchSink {
 public:
  void OnExtent(uint64_t tag, size_t index) override {
    text += std::to_string(tag) + " has " + std::to_string(index) + "; ";
  }
  void OnPart(uint64_t, const PieceReport&, uint64_t) override {}
  void OnFetchDone(uint64_t tag, Status status) override {
    text += std::to_string(tag) + (status.ok() ? " done; " : " failed; ");
    last = std::move(status);
  }
  std::string text;
  Status last;
};

Extent At(uint64_t offset) { return {0, {offset, offset + 100}}; }

struct Shared {
  HandTier tier;
  Log log;
  Fetcher fetcher{SlabPool::Make(), {&tier}, &log, {.share = true}};
  void Start(uint64_t tag, const std::vector<Extent>& extents) {
    EXPECT_TRUE(fetcher.Start(tag, extents, Priority::kSoon, kNever).running);
  }
};

const Status kGivenUp(Code::kCancelled, "given up");

TEST(Fetcher, extents_in_common_are_fetched_once) {
  Shared s;
  s.Start(1, {At(0), At(1000)});
  s.Start(2, {At(1000), At(2000)});
  EXPECT_EQ(s.tier.Asked(), "0 1000 | 2000 ");
  s.tier.Answer(1);
  EXPECT_EQ(s.log.text, "2 has 1; ");
  s.tier.Answer(0);
  EXPECT_EQ(s.log.text, "2 has 1; 1 has 0; 1 has 1; 2 has 0; 2 done; 1 done; ");
}

TEST(Fetcher, what_another_item_gave_up_is_asked_for_again) {
  for (const bool own_first : {true, false}) {
    Shared s;
    s.Start(1, {At(0), At(1000)});
    s.Start(2, {At(1000), At(2000)});
    s.Start(3, {At(1000)});
    if (own_first) s.tier.Answer(1);
    s.fetcher.Cancel(1);
    EXPECT_TRUE(s.tier.reads[0].cancelled);
    s.tier.Answer(0, kGivenUp);
    if (!own_first) s.tier.Answer(1);
    // Once, by whichever of them.
    EXPECT_EQ(s.tier.Asked(), "0 1000 | 2000 | 1000 ");
    s.tier.Answer(2);
    EXPECT_EQ(s.log.last.code(), Code::kOk) << s.log.last.ToString();
    for (const char* expected : {"1 failed; ", "2 has 0; ", "2 done; ", "3 has 0; ", "3 done; "}) {
      EXPECT_NE(s.log.text.find(expected), std::string::npos) << s.log.text;
    }
    EXPECT_TRUE(s.fetcher.idle());
  }
}

TEST(Fetcher, a_failure_that_is_one_is_told_to_all_who_wait) {
  Shared s;
  s.Start(1, {At(0)});
  s.Start(2, {At(0)});
  s.tier.Answer(0, Status(Code::kUnavailable, "503"));
  EXPECT_EQ(s.log.text, "2 failed; 1 failed; ");
  EXPECT_EQ(s.log.last.code(), Code::kUnavailable);
  EXPECT_EQ(s.tier.reads.size(), 1U);
  EXPECT_TRUE(s.fetcher.Retry(2, Priority::kDemand, kNever).running);
  s.tier.Answer(1);
  EXPECT_EQ(s.log.text, "2 failed; 1 failed; 2 has 0; 2 done; ");
}

TEST(Fetcher, who_is_cancelled_asks_for_nothing_more) {
  Shared s;
  s.Start(1, {At(0)});
  s.Start(2, {At(0)});
  s.fetcher.Cancel(2);
  s.fetcher.Cancel(1);
  s.tier.Answer(0, kGivenUp);
  EXPECT_EQ(s.tier.reads.size(), 1U);
  EXPECT_EQ(s.log.text, "2 failed; 1 failed; ");
  EXPECT_TRUE(s.fetcher.idle());
}

}  // namespace
}  // namespace forebay::fetch
