// One S3 request from signing to its callback: the part common to all verbs. Private to s3/.
//
// An operation is one attempt. What a refusal teaches is put right inside it, each thing once: the
// bucket's region, the server's clock, credentials that have expired, a checksum that the store
// does not know. It may also ask a question of
// its own, when an answer leaves open what has happened. Everything else is for the retry layer.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "net/http.h"
#include "store/object_store.h"
#include "store/s3/core.h"
#include "store/s3/endpoint.h"
#include "store/s3/xml.h"

namespace forebay::store::s3 {

// What goes to the wire, before it is signed.
struct WireRequest {
  std::string method;
  std::string key;  // "": the bucket
  Query query;
  net::HeaderList headers;
  std::vector<ByteView> body;
  uint64_t* body_sent = nullptr;  // see net::HttpRequest, all four
  uint64_t body_hint = 0;
  std::span<const MutableBytes> body_place;
  size_t head_digits = 0;
  // What it is sent with, or speaks of; of a PUT it is computed when that is sent.
  ChecksumKind checksum = ChecksumKind::kNone;
};

// The content-encoding that an answer's object is stored with; "" when with none. "aws-chunked"
// only says how it was once uploaded; some servers repeat it.
std::string StoredEncoding(const net::HttpHead& head);

// The header in which a write says who it is, to know itself again.
inline constexpr char kWriteIdHeader[] = "x-amz-meta-forebay-write";

class Operation : public net::HttpHandler {
 public:
  Operation(Core& core, std::string verb, const RequestOptions& options)
      : core_(core), verb_(std::move(verb)), request_options_(options) {}

 protected:
  // kInvalidArgument when the request can never be sent. Called again when it is sent again.
  virtual Result<WireRequest> Build() = 0;
  // The status is one of `Accepts`: where its body goes, or why it must not be used.
  virtual bool Accepts(int status) const { return status == 200; }
  virtual Result<net::BodyTarget> OnAccepted(const net::HttpHead& head) = 0;
  // Whether the fields of an accepted head are needed after OnAccepted.
  virtual bool KeepsHead() const { return true; }
  // Exactly one of the two runs, exactly once.
  virtual void Succeed(const net::HttpTiming& timing) = 0;
  virtual void Fail(Status status) = 0;
  // Of a whole answer with an accepted status and its text: whether that is what it seems.
  virtual Status Judge() { return {}; }
  // May turn an error answer into success (then Succeed runs).
  virtual bool Forgives(const net::HttpHead&) { return false; }

  // The store takes no checksum of this kind; Build then chooses another, or none.
  virtual void OnChecksumRefused(ChecksumKind kind) { core_.RefuseChecksum(kind); }

  // A request whose answer tells what `failure` means; asked once. None: it is the result.
  virtual std::optional<WireRequest> Question(const Status& failure) {
    (void)failure;
    return {};
  }
  struct Verdict {
    enum class Next : uint8_t { kFail, kSucceed, kSendAgain };
    Next next = Next::kFail;
    Status failure;  // of kFail
  };
  // The answer to it; only whole ones come here, of whatever status.
  virtual Verdict Settle(const net::HttpHead& answer, Status failure) {
    (void)answer;
    return {.failure = std::move(failure)};
  }
  // A HEAD of the operation's own key, as most questions are.
  static WireRequest HeadOf(const std::string& key, const std::string& version_id);

  Core& core_;
  net::HttpHead head_;
  std::string text_;    // the body of an answer that is no data
  ErrorDetail detail_;  // uri and range; filled by Build
  // For verbs whose 200 may hold an error.
  Status ErrorInText() const;

 private:
  friend class Core;
  // What is out: the operation's own request, or a question.
  enum class Asking : uint8_t {
    kNothing,
    kRegion,     // HEAD of the bucket: its region
    kDiagnosis,  // GET of a byte: why a HEAD was refused, which cannot say it
    kVerdict,    // what Question wants
  };
  // Corrections that are made once.
  struct Tried {
    bool region = false;
    bool redirect = false;
    bool clock = false;
    bool credentials = false;
    bool region_question = false;
    bool diagnosis = false;
    bool question = false;
    int checksums = 0;
  };

  void Launch(ObjectStore::OpId id);
  // Sends the operation's request, or `wire` as the question `asking`.
  void SendOwn();
  void Ask(Asking asking, WireRequest wire);
  // The question to follow a refusal that cannot say all, if there is one.
  bool AskAboutRefusal(Status& status);
  void Begin(WireRequest wire);
  // Signs with the credentials of the moment and sends.
  void Send(WireRequest wire, const CredentialsSnapshot& snapshot);
  void WaitForCredentials(WireRequest wire);
  std::string PayloadHash(const WireRequest& wire) const;

  Result<net::BodyTarget> OnHead(const net::HttpHead& head) override;
  void OnBody(ByteView) override {}
  void OnDone(Status status, const net::HttpTiming& timing) override;
  void OnOwnDone(Status status, const net::HttpTiming& timing);
  void OnAnswer(Status status, const net::HttpTiming& timing);
  void OnDiagnosis(Status status, const net::HttpTiming& timing);

  // Learns from a refusal. True: the request is worth sending again.
  bool Correct(const net::HttpHead& head, const std::string& text);
  bool CorrectRegion(std::string_view told);
  bool FollowRedirect(const net::HttpHead& head, const WireRequest& own);
  bool CorrectChecksum(const ErrorBody& error);
  bool CorrectClock(const net::HttpHead& head, const ErrorBody& error);
  bool RenewCredentials();
  Status ErrorOf(const net::HttpHead& head, const std::string& text,
                 bool answered_200 = false) const;

  void FinishLater(Status status);
  // Takes the operation out of the core and ends it.
  void End(Status status, const net::HttpTiming& timing);
  void Finish(Status status, const net::HttpTiming& timing);

  const std::string verb_;
  const RequestOptions request_options_;
  ObjectStore::OpId id_ = 0;
  CredentialsClient::Ticket ticket_ = 0;  // while it waits for credentials
  net::HttpTransport::RequestId request_id_ = 0;
  int64_t signed_at_ = 0;
  uint64_t signed_epoch_ = 0;  // of the credentials; for CredentialsClient::Invalidate
  int signed_moves_ = 0;       // of the core, when it was signed
  ChecksumKind sent_checksum_ = ChecksumKind::kNone;
  bool is_error_ = false;  // the answer's status is none of those accepted
  Tried tried_;
  std::unique_ptr<Endpoint> redirected_;  // where a redirect has led to
  Asking asking_ = Asking::kNothing;
  // While a question is out: why, and its answer.
  Status failure_;
  net::HttpHead answer_;
  std::string answer_text_;
};

inline constexpr size_t kErrorTextLimit = 256 * 1024;
inline constexpr size_t kListTextLimit = 16 * 1024 * 1024;

}  // namespace forebay::store::s3
