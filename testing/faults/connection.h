// One client connection: reads a request, asks the origin at once, holds the answer until the drawn
// instant, and sends it with the faults that the plan has for it. One request at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/executor.h"
#include "testing/faults/answer.h"
#include "testing/faults/body_source.h"
#include "testing/faults/decision.h"
#include "testing/faults/http_head.h"
#include "testing/faults/shard.h"
#include "testing/faults/stats.h"

namespace forebay::faults {

// The shard's loop thread only.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(Shard& shard, Fd client);
  ~Connection();

  void Start();
  void CheckDeadline(Time now);
  // Closes both sockets at once. `outcome` goes to the log when a request was under way.
  void Close(const char* outcome);

 private:
  enum class State : uint8_t { kHead, kExchange, kLinger, kClosed };
  struct Want {
    bool client_in = false;
    bool client_out = false;
    bool upstream_in = false;
    bool upstream_out = false;
  };

  // Each does what can be done without waiting; true when anything moved. What it waits for goes
  // into want_.
  bool ReadHead();
  bool PumpExchange();
  bool PumpOut();
  bool PumpRequestBody();
  bool PumpUpstreamSend();
  bool PumpUpstreamHead();
  bool PumpAnswer();
  bool PumpLinger();

  void Pump();
  void OnClientEvents(uint32_t events);
  void OnUpstreamEvents(uint32_t events);
  void UpdateWatches();
  void UpdateWatch(int fd, uint32_t events, uint32_t& watched, bool client);
  // The timer calls Pump at `at`; one at a time.
  void WakeAt(Time at);
  void CancelWake();
  void Touch() { touched_at_ = shard_.loop().Now(); }

  void StartExchange(size_t head_bytes);
  void RefuseHead(const Status& why);
  void AskOrigin();
  void StartUpstream(bool fresh);
  void DropUpstream();
  void UpstreamFailed(const char* what);
  void TakeUpstreamHead(size_t head_bytes);
  // Takes request body from in_ through the framer. False when the framing is broken.
  bool TakeRequestBody();

  void SetAnswer(Answer answer, bool keep_alive);
  void QueueHead();
  bool MoveBody();
  // What the next event at the present offset asks for.
  bool RunEvent();
  bool RunReset();
  // True when the body may go on; otherwise a timer is set or everything is over.
  bool HandleMove(const BodySource::Moved& moved);
  // Payload bytes allowed now; 0: a timer is set.
  uint64_t DripAllowance();
  void FinishExchange(const char* outcome);
  void AbortAnswer(const char* outcome);
  void Record(const char* outcome);
  void StartLinger();

  Shard& shard_;
  Fd client_;
  State state_ = State::kHead;
  Want want_;
  uint32_t client_watched_ = 0;
  uint32_t upstream_watched_ = 0;
  Executor::TimerId timer_ = 0;
  Time timer_at_ = kNever;
  Time touched_at_;
  bool pump_posted_ = false;

  std::string in_;   // received from the client, not yet used
  std::string out_;  // heads on their way to the client
  size_t out_sent_ = 0;

  // The exchange.
  RequestHead request_;
  Decision decision_;
  RequestRecord record_;
  Time head_at_;
  Time release_at_;
  BodyFramer request_framer_;
  bool request_body_taken_ = false;
  bool discard_request_body_ = false;

  Fd upstream_;
  bool upstream_reused_ = false;
  bool upstream_write_broken_ = false;
  std::string upstream_out_;
  size_t upstream_sent_ = 0;
  std::string upstream_in_;

  bool has_answer_ = false;
  bool head_queued_ = false;
  bool keep_alive_ = false;  // the client's connection, after this answer
  bool upstream_keep_alive_ = false;
  ResponseHead answer_head_;
  std::unique_ptr<BodySource> body_;
  UpstreamBody* upstream_body_ = nullptr;  // body_, when that is one
  uint64_t body_sent_ = 0;
  size_t next_event_ = 0;
  Time body_at_;
  Time event_until_ = kNever;  // of the stall or reset under way
};

}  // namespace forebay::faults
