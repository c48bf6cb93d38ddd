#include "store/s3/verbs.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "base/ascii.h"
#include "store/s3/error.h"
#include "store/s3/xml.h"

namespace forebay::store::s3 {
namespace {

constexpr int kMaxParts = 10'000;

// The shape all of these share: a text answer turned into a T.
template <class Request, class T>
class TextOperation : public Operation {
 public:
  TextOperation(Core& core, const char* verb, Request request, Callback<T> on_done)
      : Operation(core, verb, request.options),
        request_(std::move(request)),
        on_done_(std::move(on_done)) {}

 protected:
  // From text_ and head_, of a whole answer with an accepted status.
  virtual Result<T> Parse() = 0;

  Result<net::BodyTarget> OnAccepted(const net::HttpHead&) override {
    return net::BodyTarget{.text = &text_, .text_limit = kListTextLimit};
  }
  void Succeed(const net::HttpTiming&) override {
    Result<T> result = Parse();
    if (result.ok()) {
      on_done_(std::move(result));
    } else {
      // An error that came with a success's status says more than what is missing.
      Status told = ErrorInText();
      Fail((told.ok() ? std::move(result).status() : std::move(told)).WithDetail(detail_));
    }
  }
  void Fail(Status status) override { on_done_(std::move(status)); }

  // Starts the wire request of a key.
  Result<WireRequest> OfKey(const char* method) {
    detail_.uri = core_.root_uri + "/" + request_.key;
    if (request_.key.empty()) return Status(Code::kInvalidArgument, "the key is empty");
    return WireRequest{.method = method, .key = request_.key};
  }
  Result<std::string> EtagHeader() const {
    std::string etag = BareEtag(net::FindHeader(head_.headers, "etag"));
    if (etag.empty()) return Status(Code::kDataLoss, "the answer has no etag");
    return etag;
  }

  // Of the body's progress, from its beginning; null where nobody asks.
  uint64_t* SentCounter() const {
    if (request_.progress == nullptr) return nullptr;
    request_.progress->bytes = 0;
    return &request_.progress->bytes;
  }
  std::string VersionId() const {
    return std::string(net::FindHeader(head_.headers, "x-amz-version-id"));
  }
  PutResult Written(std::string etag) const {
    return {.etag = std::move(etag), .version_id = VersionId()};
  }

  const Request request_;
  Callback<T> on_done_;
};

// A write that a condition guards, or that can happen only once. When its answer was lost, the next
// attempt is refused by what the first has done: whether it was, the object itself tells.
template <class Request>
class OnceOnly : public TextOperation<Request, PutResult> {
 public:
  using TextOperation<Request, PutResult>::TextOperation;

 protected:
  // Whether such a refusal may be of our own making.
  virtual bool MayBeOurs(const Status& failure) const = 0;
  virtual bool IsOurs(const net::HttpHead& object) const = 0;
  // Instead of Parse.
  virtual Result<PutResult> ParseAnswer() = 0;

 private:
  std::optional<WireRequest> Question(const Status& failure) override {
    if (!MayBeOurs(failure)) return {};
    return Operation::HeadOf(this->request_.key, "");
  }
  Operation::Verdict Settle(const net::HttpHead& answer, Status failure) override {
    if (answer.status != 200 || !IsOurs(answer)) return {.failure = std::move(failure)};
    this->head_ = answer;
    settled_ = true;
    return {.next = Operation::Verdict::Next::kSucceed};
  }
  Result<PutResult> Parse() final {
    if (!settled_) return ParseAnswer();
    FB_ASSIGN_OR_RETURN(std::string etag, this->EtagHeader());
    return this->Written(std::move(etag));
  }

  bool settled_ = false;
};

void AddVersion(const std::string& version_id, WireRequest& wire) {
  if (!version_id.empty()) wire.query.emplace_back("versionId", version_id);
}

template <class Request>
void AddConditions(const Request& request, WireRequest& wire) {
  if (request.if_none_match) wire.headers.emplace_back("if-none-match", "*");
  if (!request.if_match.empty()) {
    wire.headers.emplace_back("if-match", QuotedEtag(request.if_match));
  }
}

class Head final : public TextOperation<HeadRequest, ObjectInfo> {
  using TextOperation::TextOperation;
  Result<WireRequest> Build() override {
    FB_ASSIGN_OR_RETURN(WireRequest wire, OfKey("HEAD"));
    AddVersion(request_.version_id, wire);
    return wire;
  }
  Result<ObjectInfo> Parse() override {
    if (head_.content_length < 0) return Status(Code::kDataLoss, "the answer tells no length");
    FB_ASSIGN_OR_RETURN(std::string etag, EtagHeader());
    ObjectInfo info{.key = request_.key,
                    .size = static_cast<uint64_t>(head_.content_length),
                    .etag = std::move(etag),
                    .version_id = VersionId()};
    std::string encoding = StoredEncoding(head_);
    if (encoding.empty()) {
      core_.encodings.Drop(request_.key);
    } else {
      core_.encodings.Keep(request_.key, std::move(encoding));
    }
    const int64_t modified = ParseHttpDate(net::FindHeader(head_.headers, "last-modified"));
    if (modified > 0) info.modified_unix_s = modified;
    return info;
  }
};

class List final : public TextOperation<ListRequest, ListPage> {
  using TextOperation::TextOperation;
  Result<WireRequest> Build() override {
    detail_.uri = core_.root_uri + "/" + request_.prefix;
    WireRequest wire{.method = "GET"};
    wire.query = {{"list-type", "2"},
                  {"encoding-type", "url"},
                  {"max-keys", fmt::format("{}", request_.max_keys)}};
    const auto add = [&wire](const char* name, const std::string& value) {
      if (!value.empty()) wire.query.emplace_back(name, value);
    };
    add("prefix", WirePrefix());
    add("delimiter", request_.delimiter);
    add("continuation-token", request_.continuation_token);
    add("start-after", request_.start_after);
    return wire;
  }
  // A directory bucket lists whole folders only.
  std::string WirePrefix() const {
    if (!core_.endpoint().directory_bucket) return request_.prefix;
    return request_.prefix.substr(0, request_.prefix.rfind('/') + 1);
  }
  Result<ListPage> Parse() override {
    FB_ASSIGN_OR_RETURN(ListPage page, ParseListPage(text_));
    const auto outside = [this](const std::string& name) {
      return !name.starts_with(request_.prefix);
    };
    const auto is_outside = [&](const ObjectInfo& info) { return outside(info.key); };
    if (core_.endpoint().directory_bucket) {
      std::erase_if(page.objects, is_outside);
      std::erase_if(page.common_prefixes, outside);
    }
    const auto object = std::ranges::find_if(page.objects, is_outside);
    const auto folder = std::ranges::find_if(page.common_prefixes, outside);
    if (object != page.objects.end() || folder != page.common_prefixes.end()) {
      return Status(
          Code::kDataLoss,
          fmt::format("the listing holds '{}', which does not begin with '{}'",
                      Printable(object != page.objects.end() ? object->key : *folder, 200),
                      Printable(request_.prefix, 200)));
    }
    if (!page.next_token.empty() && page.next_token == request_.continuation_token) {
      return Status(Code::kDataLoss, "the listing repeats its continuation token");
    }
    return page;
  }
};

class Put final : public OnceOnly<PutRequest> {
  using OnceOnly::OnceOnly;
  Result<WireRequest> Build() override {
    FB_ASSIGN_OR_RETURN(WireRequest wire, OfKey("PUT"));
    wire.checksum = core_.checksum();
    wire.body = request_.body;
    wire.body_sent = SentCounter();
    wire.headers.emplace_back("content-type", request_.content_type);
    AddConditions(request_, wire);
    if (IsConditional() && !request_.write_id.empty()) {
      wire.headers.emplace_back(kWriteIdHeader, request_.write_id);
    }
    return wire;
  }
  bool IsConditional() const { return request_.if_none_match || !request_.if_match.empty(); }
  bool MayBeOurs(const Status& failure) const override {
    return failure.code() == Code::kPreconditionFailed && !request_.write_id.empty();
  }
  bool IsOurs(const net::HttpHead& object) const override {
    return net::FindHeader(object.headers, kWriteIdHeader) == request_.write_id;
  }
  Result<PutResult> ParseAnswer() override {
    FB_ASSIGN_OR_RETURN(std::string etag, EtagHeader());
    return Written(std::move(etag));
  }
};

class CreateUpload final : public TextOperation<UploadRequest, std::string> {
  using TextOperation::TextOperation;
  Result<WireRequest> Build() override {
    FB_ASSIGN_OR_RETURN(WireRequest wire, OfKey("POST"));
    wire.query = {{"uploads", ""}};
    wire.headers.emplace_back("content-type", request_.content_type);
    if (!request_.write_id.empty()) {
      wire.headers.emplace_back(kWriteIdHeader, request_.write_id);
    }
    wire.checksum = checksum_ = core_.checksum();
    if (checksum_ != ChecksumKind::kNone) {
      wire.headers.emplace_back("x-amz-checksum-algorithm", ChecksumName(checksum_));
      wire.headers.emplace_back("x-amz-checksum-type", "FULL_OBJECT");
    }
    return wire;
  }
  Result<std::string> Parse() override {
    FB_ASSIGN_OR_RETURN(std::string id, ParseUploadId(text_));
    if (!request_.write_id.empty()) core_.uploads.Keep(id, request_.write_id);
    const bool none = checksum_ == ChecksumKind::kNone;
    core_.upload_checksums.Keep(id, none ? "none" : std::string(ChecksumName(checksum_)));
    return id;
  }
  ChecksumKind checksum_ = ChecksumKind::kNone;
};

class PutPart final : public TextOperation<PartRequest, PutResult> {
  using TextOperation::TextOperation;
  Result<WireRequest> Build() override {
    FB_ASSIGN_OR_RETURN(WireRequest wire, OfKey("PUT"));
    if (request_.part_number < 1 || request_.part_number > kMaxParts) {
      return Status(Code::kInvalidArgument,
                    fmt::format("part {} is not in 1 .. {}", request_.part_number, kMaxParts));
    }
    wire.query = {{"partNumber", fmt::format("{}", request_.part_number)},
                  {"uploadId", request_.upload_id}};
    wire.checksum = core_.ChecksumOfUpload(request_.upload_id);
    wire.body = request_.body;
    wire.body_sent = SentCounter();
    return wire;
  }
  Result<PutResult> Parse() override {
    FB_ASSIGN_OR_RETURN(std::string etag, EtagHeader());
    return Written(std::move(etag));
  }
  // It was created for one kind: no other would do.
  void OnChecksumRefused(ChecksumKind) override {
    core_.upload_checksums.Keep(request_.upload_id, "none");
  }
};

class CompleteUpload final : public OnceOnly<UploadRequest> {
  using OnceOnly::OnceOnly;
  Result<WireRequest> Build() override {
    FB_ASSIGN_OR_RETURN(WireRequest wire, OfKey("POST"));
    if (request_.part_etags.empty() || request_.part_etags.size() > kMaxParts) {
      return Status(Code::kInvalidArgument,
                    fmt::format("an upload of {} parts", request_.part_etags.size()));
    }
    wire.query = {{"uploadId", request_.upload_id}};
    wire.headers.emplace_back("content-type", "application/xml");
    AddConditions(request_, wire);
    body_ = CompleteUploadBody(request_.part_etags);
    wire.body = {AsBytes(body_)};
    return wire;
  }
  // A 200 has been promised before the work was done: only its text says how it went.
  Status Judge() override {
    FB_RETURN_IF_ERROR(ErrorInText());
    return ParseCompletedEtag(text_).status();
  }
  Result<PutResult> ParseAnswer() override {
    FB_ASSIGN_OR_RETURN(std::string etag, ParseCompletedEtag(text_));
    return Written(std::move(etag));
  }
  // Also after an answer that is cut short or lacks the etag.
  bool MayBeOurs(const Status& failure) const override {
    return failure.code() == Code::kNotFound || failure.code() == Code::kPreconditionFailed ||
           failure.code() == Code::kDataLoss;
  }
  // By the id given to the upload when it was created here; else by the etag that most stores make
  // of the parts', which another upload with the same content has as well.
  bool IsOurs(const net::HttpHead& object) const override {
    const std::string& id = core_.uploads.Find(request_.upload_id);
    const std::string_view found = net::FindHeader(object.headers, kWriteIdHeader);
    if (!id.empty() && !found.empty()) return id == found;
    if (request_.if_none_match || !request_.if_match.empty()) return false;
    const std::string expected = CompletedEtag(request_.part_etags);
    return !expected.empty() && expected == BareEtag(net::FindHeader(object.headers, "etag"));
  }
  std::string body_;
};

// Both succeed without an answer's text, also when there was nothing to remove.
template <class Request>
class Removal final : public TextOperation<Request, Unit> {
 public:
  Removal(Core& core, const char* verb, Request request, Callback<Unit> on_done, Query query)
      : TextOperation<Request, Unit>(core, verb, std::move(request), std::move(on_done)),
        query_(std::move(query)) {}

 private:
  Result<WireRequest> Build() override {
    FB_ASSIGN_OR_RETURN(WireRequest wire, this->OfKey("DELETE"));
    wire.query = query_;
    return wire;
  }
  bool Accepts(int status) const override { return status == 204 || status == 200; }
  Result<Unit> Parse() override { return Unit{}; }
  const Query query_;
};

}  // namespace

OperationPtr MakeHead(Core& core, HeadRequest request, Callback<ObjectInfo> on_done) {
  return std::make_unique<Head>(core, "HEAD", std::move(request), std::move(on_done));
}
OperationPtr MakeList(Core& core, ListRequest request, Callback<ListPage> on_done) {
  return std::make_unique<List>(core, "LIST", std::move(request), std::move(on_done));
}
OperationPtr MakePut(Core& core, PutRequest request, Callback<PutResult> on_done) {
  return std::make_unique<Put>(core, "PUT", std::move(request), std::move(on_done));
}
OperationPtr MakeCreateUpload(Core& core, UploadRequest request, Callback<std::string> on_done) {
  return std::make_unique<CreateUpload>(core, "create upload", std::move(request),
                                        std::move(on_done));
}
OperationPtr MakePutPart(Core& core, PartRequest request, Callback<PutResult> on_done) {
  return std::make_unique<PutPart>(core, "put part", std::move(request), std::move(on_done));
}
OperationPtr MakeCompleteUpload(Core& core, UploadRequest request, Callback<PutResult> on_done) {
  return std::make_unique<CompleteUpload>(core, "complete upload", std::move(request),
                                          std::move(on_done));
}
OperationPtr MakeAbortUpload(Core& core, UploadRequest request, Callback<Unit> on_done) {
  Query query{{"uploadId", request.upload_id}};
  return std::make_unique<Removal<UploadRequest>>(core, "abort upload", std::move(request),
                                                  std::move(on_done), std::move(query));
}
OperationPtr MakeDelete(Core& core, HeadRequest request, Callback<Unit> on_done) {
  Query query;
  if (!request.version_id.empty()) query.emplace_back("versionId", request.version_id);
  return std::make_unique<Removal<HeadRequest>>(core, "DELETE", std::move(request),
                                                std::move(on_done), std::move(query));
}

}  // namespace forebay::store::s3
