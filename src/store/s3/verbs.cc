#include "store/s3/verbs.h"

#include <fmt/core.h>

#include <utility>

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
      Fail(std::move(result).status().WithDetail(detail_));
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

  const Request request_;
  Callback<T> on_done_;
};

template <class Request>
void AddConditions(const Request& request, WireRequest& wire) {
  if (request.if_none_match) wire.headers.emplace_back("if-none-match", "*");
  if (!request.if_match.empty()) {
    wire.headers.emplace_back("if-match", fmt::format("\"{}\"", request.if_match));
  }
}

class Head final : public TextOperation<HeadRequest, ObjectInfo> {
  using TextOperation::TextOperation;
  Result<WireRequest> Build() override { return OfKey("HEAD"); }
  Result<ObjectInfo> Parse() override {
    if (head_.content_length < 0) return Status(Code::kDataLoss, "the answer tells no length");
    FB_ASSIGN_OR_RETURN(std::string etag, EtagHeader());
    ObjectInfo info{.key = request_.key,
                    .size = static_cast<uint64_t>(head_.content_length),
                    .etag = std::move(etag)};
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
    add("prefix", request_.prefix);
    add("delimiter", request_.delimiter);
    add("continuation-token", request_.continuation_token);
    add("start-after", request_.start_after);
    return wire;
  }
  Result<ListPage> Parse() override {
    FB_ASSIGN_OR_RETURN(ListPage page, ParseListPage(text_));
    if (!page.next_token.empty() && page.next_token == request_.continuation_token) {
      return Status(Code::kDataLoss, "the listing repeats its continuation token");
    }
    return page;
  }
};

class Put final : public TextOperation<PutRequest, PutResult> {
  using TextOperation::TextOperation;
  Result<WireRequest> Build() override {
    FB_ASSIGN_OR_RETURN(WireRequest wire, OfKey("PUT"));
    wire.body = request_.body;
    wire.headers.emplace_back("content-type", request_.content_type);
    AddConditions(request_, wire);
    return wire;
  }
  Result<PutResult> Parse() override {
    FB_ASSIGN_OR_RETURN(std::string etag, EtagHeader());
    return PutResult{.etag = std::move(etag)};
  }
};

class CreateUpload final : public TextOperation<UploadRequest, std::string> {
  using TextOperation::TextOperation;
  Result<WireRequest> Build() override {
    FB_ASSIGN_OR_RETURN(WireRequest wire, OfKey("POST"));
    wire.query = {{"uploads", ""}};
    wire.headers.emplace_back("content-type", request_.content_type);
    return wire;
  }
  Result<std::string> Parse() override { return ParseUploadId(text_); }
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
    wire.body = request_.body;
    return wire;
  }
  Result<PutResult> Parse() override {
    FB_ASSIGN_OR_RETURN(std::string etag, EtagHeader());
    return PutResult{.etag = std::move(etag)};
  }
};

class CompleteUpload final : public TextOperation<UploadRequest, PutResult> {
  using TextOperation::TextOperation;
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
  Result<PutResult> Parse() override {
    FB_RETURN_IF_ERROR(ErrorInText());
    FB_ASSIGN_OR_RETURN(std::string etag, ParseCompletedEtag(text_));
    return PutResult{.etag = std::move(etag)};
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
  return std::make_unique<Removal<HeadRequest>>(core, "DELETE", std::move(request),
                                                std::move(on_done), Query{});
}

}  // namespace forebay::store::s3
