#include "store/s3/sigv4.h"

#include <openssl/evp.h>

#include <algorithm>
#include <cctype>
#include <ctime>
#include <utility>

#include "base/assert.h"

namespace forebay::store::s3 {
namespace {

std::string Hex(ByteView bytes) {
  std::string text;
  text.reserve(bytes.size() * 2);
  AppendHex(bytes, text);
  return text;
}

bool IsBlank(char c) { return c == ' ' || c == '\t'; }

// Appended trimmed, and with every run of blanks one space.
void AppendValue(std::string_view value, std::string& text) {
  if (std::ranges::none_of(value, IsBlank)) {  // as most do
    text += value;
    return;
  }
  const size_t begin = text.size();
  for (const char c : value) {
    const bool blank = IsBlank(c);
    if (blank && (text.size() == begin || text.back() == ' ')) continue;
    text += blank ? ' ' : c;
  }
  if (text.size() > begin && text.back() == ' ') text.pop_back();
}

bool IsLower(std::string_view name) {
  return std::ranges::none_of(name, [](char c) { return c >= 'A' && c <= 'Z'; });
}

std::string Lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

void AppendNumber(int number, int digits, std::string& text) {
  const size_t at = text.size();
  text.resize(at + static_cast<size_t>(digits));
  for (int i = digits; i-- > 0; number /= 10) {
    text[at + static_cast<size_t>(i)] = static_cast<char>('0' + number % 10);
  }
}

// "20261130T024721Z"
std::string FormatUtc(int64_t unix_time_s) {
  const time_t seconds = unix_time_s;
  std::tm utc{};
  gmtime_r(&seconds, &utc);
  std::string text;
  AppendNumber(utc.tm_year + 1900, 4, text);
  AppendNumber(utc.tm_mon + 1, 2, text);
  AppendNumber(utc.tm_mday, 2, text);
  text += 'T';
  AppendNumber(utc.tm_hour, 2, text);
  AppendNumber(utc.tm_min, 2, text);
  AppendNumber(utc.tm_sec, 2, text);
  return text += 'Z';
}

// Sorted by lower-case name; those of one name stay in their order.
struct Fields {
  using Field = std::pair<std::string_view, std::string_view>;

  Fields(std::string_view host, const net::HeaderList& headers) {
    fields.reserve(headers.size() + 1);
    fields.emplace_back("host", host);
    lowered.reserve(headers.size());  // views into it must stay
    for (const auto& [name, value] : headers) {
      if (IsLower(name)) {
        fields.emplace_back(name, value);
      } else {
        fields.emplace_back(lowered.emplace_back(Lower(name)), value);
      }
    }
    for (size_t i = 1; i < fields.size(); ++i) {
      for (size_t k = i; k > 0 && fields[k].first < fields[k - 1].first; --k) {
        std::swap(fields[k], fields[k - 1]);
      }
    }
  }

  std::vector<Field> fields;
  std::vector<std::string> lowered;
};

void BuildCanonical(const SignRequest& request, const net::HeaderList& headers, std::string& text,
                    std::string& signed_headers) {
  const Fields sorted(request.host, headers);
  text.assign(request.method).append(1, '\n');
  text.append(request.path.empty() ? "/" : request.path).append(1, '\n');
  text.append(request.query);
  signed_headers.clear();
  std::string_view before;
  for (const auto& [name, value] : sorted.fields) {
    if (name == before) {
      text += ',';
    } else {
      text.append(1, '\n').append(name).append(1, ':');
      if (!signed_headers.empty()) signed_headers += ';';
      signed_headers += name;
      before = name;
    }
    AppendValue(value, text);
  }
  text.append("\n\n").append(signed_headers).append(1, '\n').append(request.payload_sha256);
}

}  // namespace

const std::string kEmptySha256 = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

std::string HexSha256(const std::vector<ByteView>& pieces) {
  Hash256 hash;
  hash.Begin();
  for (const ByteView piece : pieces) hash.Add(piece);
  return Hex(hash.End());
}

std::string HexMd5(std::string_view text) {
  std::array<std::byte, 16> digest;
  const int done =
      EVP_Digest(text.data(), text.size(), reinterpret_cast<unsigned char*>(digest.data()), nullptr,
                 EVP_md5(), nullptr);
  return done == 1 ? Hex(digest) : "";
}

std::string CanonicalRequest(const SignRequest& request, const net::HeaderList& headers,
                             std::string& signed_headers) {
  std::string text;
  BuildCanonical(request, headers, text, signed_headers);
  return text;
}

void Signer::Prepare(const Credentials& credentials, int64_t unix_time_s) {
  if (unix_time_s != time_s_ || time_.empty()) {
    time_s_ = unix_time_s;
    time_ = FormatUtc(unix_time_s);
  }
  const std::string_view day = std::string_view(time_).substr(0, 8);
  if (day_ == day && secret_ == credentials.secret_access_key &&
      key_id_ == credentials.access_key_id) {
    return;
  }
  day_ = day;
  secret_ = credentials.secret_access_key;
  key_id_ = credentials.access_key_id;
  scope_ = day_ + '/' + region_ + '/' + service_ + "/aws4_request";
  opening_ = "AWS4-HMAC-SHA256 Credential=" + key_id_ + '/' + scope_ + ", SignedHeaders=";
  // The key of one day, region and service takes four HMACs.
  hmac_.SetKey(AsBytes("AWS4" + secret_));
  Sha256 key = hmac_.Of(day_);
  for (const std::string_view step :
       {std::string_view(region_), std::string_view(service_), std::string_view("aws4_request")}) {
    hmac_.SetKey(key);
    key = hmac_.Of(step);
  }
  hmac_.SetKey(key);
}

void Signer::Sign(const Credentials& credentials, const SignRequest& request,
                  net::HeaderList& headers) {
  if (credentials.anonymous) return;
  Prepare(credentials, request.unix_time_s);
  headers.emplace_back("x-amz-date", time_);
  if (request.add_content_sha256) {
    headers.emplace_back("x-amz-content-sha256", request.payload_sha256);
  }
  if (!credentials.session_token.empty()) {
    headers.emplace_back(request.token_header, credentials.session_token);
  }
  BuildCanonical(request, headers, text_, signed_headers_);
  hash_.Begin();
  hash_.Add(AsBytes(text_));
  text_.assign("AWS4-HMAC-SHA256\n").append(time_).append(1, '\n').append(scope_).append(1, '\n');
  AppendHex(hash_.End(), text_);
  std::string value;
  value.reserve(opening_.size() + signed_headers_.size() + 12 + 64);
  value.append(opening_).append(signed_headers_).append(", Signature=");
  AppendHex(hmac_.Of(text_), value);
  headers.emplace_back("authorization", std::move(value));
}

}  // namespace forebay::store::s3
