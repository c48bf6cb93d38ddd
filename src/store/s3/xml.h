// The XML of S3: answers parsed, requests written. Nothing here trusts what it reads.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "store/object_store.h"
#include "store/s3/credentials.h"

namespace forebay::store::s3 {

struct ErrorBody {
  std::string code;  // "" when `body` is no S3 error
  std::string message;
  std::string region;
  std::string request_id;
};

// Of a directory bucket's session.
struct SessionKeys {
  Credentials credentials;
  int64_t expires_unix_s = 0;
};

ErrorBody ParseErrorBody(std::string_view body);

// Without the quotes and the weak mark: the form in which etags are kept and compared.
std::string BareEtag(std::string_view text);
// As conditions are sent, whether it has its quotes or not.
std::string QuotedEtag(std::string_view text);

// All of these: kDataLoss when the document is not whole and of the kind expected.
Result<ListPage> ParseListPage(std::string_view body);
Result<std::string> ParseUploadId(std::string_view body);
// An <Error> inside a 200 is that error: the caller passes it to ParseErrorBody first.
Result<std::string> ParseCompletedEtag(std::string_view body);
Result<SessionKeys> ParseSession(std::string_view body);

// The etag that an upload of parts with these gets wherever it is the MD5 of theirs; "" when they
// are no MD5s.
std::string CompletedEtag(const std::vector<std::string>& part_etags);

std::string CompleteUploadBody(const std::vector<std::string>& part_etags);

}  // namespace forebay::store::s3
