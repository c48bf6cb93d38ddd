#include "store/s3/xml.h"

#include <fmt/core.h>

#include <charconv>
#include <cstdio>
#include <ctime>
#include <pugixml.hpp>

#include "store/s3/endpoint.h"
#include "store/s3/sigv4.h"

namespace forebay::store::s3 {
namespace {

// The root element, if the document is whole and its root has that name. Leading blanks are what S3
// sends to keep a slow answer alive; pugixml wants the declaration first.
pugi::xml_node Parse(pugi::xml_document& document, std::string_view body, const char* root) {
  const size_t begin = body.find_first_not_of(" \t\r\n");
  if (begin == body.npos) return {};
  body.remove_prefix(begin);
  const auto parsed =
      document.load_buffer(body.data(), body.size(), pugi::parse_default, pugi::encoding_utf8);
  if (!parsed) return {};
  return document.child(root);
}

Status NotWhole(const char* root) {
  return Status(Code::kDataLoss, fmt::format("the answer is no whole <{}>", root));
}

bool ParseNumber(std::string_view text, uint64_t& number) {
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
  return parsed.ec == std::errc() && parsed.ptr == text.data() + text.size();
}

// "2026-11-30T02:47:21.000Z"
int64_t ParseIsoTime(const char* text) {
  std::tm utc{};
  if (::strptime(text, "%Y-%m-%dT%H:%M:%S", &utc) == nullptr) return 0;
  return ::timegm(&utc);
}

Result<ObjectInfo> ParseObject(const pugi::xml_node& node, bool encoded) {
  ObjectInfo info;
  info.key = node.child_value("Key");
  if (encoded) {
    FB_ASSIGN_OR_RETURN(info.key, FormDecode(info.key));
  }
  if (info.key.empty() || !ParseNumber(node.child_value("Size"), info.size)) {
    return Status(Code::kDataLoss, "a listed object has no key or no size");
  }
  info.etag = BareEtag(node.child_value("ETag"));
  info.modified_unix_s = ParseIsoTime(node.child_value("LastModified"));
  return info;
}

}  // namespace

ErrorBody ParseErrorBody(std::string_view body) {
  pugi::xml_document document;
  const pugi::xml_node root = Parse(document, body, "Error");
  if (!root) return {};
  return {.code = root.child_value("Code"),
          .message = root.child_value("Message"),
          .region = root.child_value("Region"),
          .request_id = root.child_value("RequestId")};
}

std::string BareEtag(std::string_view text) {
  if (text.starts_with("W/")) text.remove_prefix(2);
  if (text.size() >= 2 && text.front() == '"' && text.back() == '"') {
    text = text.substr(1, text.size() - 2);
  }
  return std::string(text);
}

std::string QuotedEtag(std::string_view text) {
  std::string quoted = "\"";
  return quoted.append(BareEtag(text)).append(1, '"');
}

Result<ListPage> ParseListPage(std::string_view body) {
  static constexpr char kRoot[] = "ListBucketResult";
  pugi::xml_document document;
  const pugi::xml_node root = Parse(document, body, kRoot);
  if (!root) return NotWhole(kRoot);
  const bool encoded = std::string_view(root.child_value("EncodingType")) == "url";
  ListPage page;
  for (const pugi::xml_node node : root.children("Contents")) {
    FB_ASSIGN_OR_RETURN(ObjectInfo info, ParseObject(node, encoded));
    page.objects.push_back(std::move(info));
  }
  for (const pugi::xml_node node : root.children("CommonPrefixes")) {
    std::string prefix = node.child_value("Prefix");
    if (encoded) {
      FB_ASSIGN_OR_RETURN(prefix, FormDecode(prefix));
    }
    page.common_prefixes.push_back(std::move(prefix));
  }
  const std::string_view truncated = root.child_value("IsTruncated");
  if (truncated == "true") {
    page.next_token = root.child_value("NextContinuationToken");
    if (page.next_token.empty()) {
      return Status(Code::kDataLoss, "a truncated listing has no continuation token");
    }
  } else if (truncated != "false") {
    return Status(Code::kDataLoss, "a listing does not say whether it is truncated");
  }
  return page;
}

Result<std::string> ParseUploadId(std::string_view body) {
  static constexpr char kRoot[] = "InitiateMultipartUploadResult";
  pugi::xml_document document;
  std::string id = Parse(document, body, kRoot).child_value("UploadId");
  if (id.empty()) return NotWhole(kRoot);
  return id;
}

Result<std::string> ParseCompletedEtag(std::string_view body) {
  static constexpr char kRoot[] = "CompleteMultipartUploadResult";
  pugi::xml_document document;
  const pugi::xml_node root = Parse(document, body, kRoot);
  if (!root) return NotWhole(kRoot);
  std::string etag = BareEtag(root.child_value("ETag"));
  if (etag.empty()) return Status(Code::kDataLoss, "the answer names no etag");
  return etag;
}

Result<SessionKeys> ParseSession(std::string_view body) {
  static constexpr char kRoot[] = "CreateSessionResult";
  pugi::xml_document document;
  const pugi::xml_node keys = Parse(document, body, kRoot).child("Credentials");
  SessionKeys session{.credentials = {.access_key_id = keys.child_value("AccessKeyId"),
                                      .secret_access_key = keys.child_value("SecretAccessKey"),
                                      .session_token = keys.child_value("SessionToken")},
                      .expires_unix_s = ParseIsoTime(keys.child_value("Expiration"))};
  const Credentials& got = session.credentials;
  if (got.access_key_id.empty() || got.secret_access_key.empty() || got.session_token.empty() ||
      session.expires_unix_s <= 0) {
    return NotWhole(kRoot);
  }
  return session;
}

std::string CompletedEtag(const std::vector<std::string>& part_etags) {
  std::string digests;
  for (const std::string& etag : part_etags) {
    if (etag.size() != 32) return "";
    for (size_t i = 0; i < etag.size(); i += 2) {
      unsigned byte = 0;
      const auto parsed = std::from_chars(&etag[i], &etag[i] + 2, byte, 16);
      if (parsed.ec != std::errc() || parsed.ptr != &etag[i] + 2) return "";
      digests += static_cast<char>(byte);
    }
  }
  return fmt::format("{}-{}", HexMd5(digests), part_etags.size());
}

std::string CompleteUploadBody(const std::vector<std::string>& part_etags) {
  std::string text = "<CompleteMultipartUpload xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">";
  for (size_t i = 0; i < part_etags.size(); ++i) {
    text += fmt::format("<Part><PartNumber>{}</PartNumber><ETag>", i + 1);
    for (const char c : '"' + part_etags[i] + '"') {
      switch (c) {
        case '"':
          text += "&quot;";
          break;
        case '&':
          text += "&amp;";
          break;
        case '<':
          text += "&lt;";
          break;
        case '>':
          text += "&gt;";
          break;
        default:
          text += c;
      }
    }
    text += "</ETag></Part>";
  }
  return text + "</CompleteMultipartUpload>";
}

}  // namespace forebay::store::s3
