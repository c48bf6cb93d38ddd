// What all operations of one store share: where its bucket is, what the time is there, and what
// earlier answers have taught. Private to s3/; one thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "net/http.h"
#include "store/object_store.h"
#include "store/s3/checksum.h"
#include "store/s3/credentials_provider.h"
#include "store/s3/endpoint.h"
#include "store/s3/s3_store.h"
#include "store/s3/sigv4.h"

namespace forebay::store::s3 {

class Operation;

// A few facts about keys or uploads, by name. When it is full it forgets them all: each can be
// found out again.
class Facts {
 public:
  void Keep(const std::string& name, std::string fact);
  // "" when it is not known.
  const std::string& Find(const std::string& name) const;
  void Drop(const std::string& name) { facts_.erase(name); }

 private:
  static constexpr size_t kMost = 4096;
  std::unordered_map<std::string, std::string> facts_;
};

class Core {
 public:
  // `signs`: who does. The keys of a directory bucket's session have a header of their own for
  // their token.
  Core(S3StoreOptions options, Endpoint endpoint, net::HttpTransport& transport,
       std::shared_ptr<CredentialsProvider> signs,
       std::string_view token_header = "x-amz-security-token");
  ~Core();

  ObjectStore::OpId Start(std::unique_ptr<Operation> operation);
  void Cancel(ObjectStore::OpId id);
  // Takes the operation out, so that it may end.
  std::unique_ptr<Operation> Take(ObjectStore::OpId id);

  const Endpoint& endpoint() const { return endpoint_; }
  // Another number after each MoveTo.
  int moves() const { return moves_; }
  // A server has told the bucket's region. False when that changes nothing or cannot be used.
  bool MoveTo(const std::string& region);

  // Unix seconds by the server's clock, as far as it is known.
  int64_t ServerTime() const { return LocalTime() + options.clock->offset_s(); }
  // A server has told its time, now.
  void SetServerTime(int64_t unix_s) { options.clock->Set(unix_s - LocalTime()); }

  // As Signer::Sign, for the bucket's region and service.
  void Sign(const Credentials& keys, const SignRequest& request, net::HeaderList& headers) {
    signer_->Sign(keys, request, headers);
  }
  // The header that carries the token of temporary credentials.
  std::string_view token_header() const { return token_header_; }
  // The checksum that writes carry: when the configuration says so; when it says nothing, to Amazon
  // only, because others often know no such header. A trailer, which some of them store inside the
  // object, is never sent.
  ChecksumKind checksum() const;
  // ... the parts of this upload: what it was created for.
  ChecksumKind ChecksumOfUpload(const std::string& id) const;
  // The store refuses this kind: the next is taken, in the end none.
  void RefuseChecksum(ChecksumKind kind);
  // Whether reads ask for the object's checksum; the same rule.
  bool AsksForChecksums() const;

  const S3StoreOptions options;
  const std::string root_uri;
  net::HttpTransport& transport;
  CredentialsClient credentials;
  Facts encodings;         // by key: the content-encoding that the object's metadata names
  Facts others;            // by key: the etag of an answer that if-match should have prevented
  Facts uploads;           // by upload id: the write id that it was created with
  Facts upload_checksums;  // by upload id: the name of its kind of checksum, or "none"

 private:
  int64_t LocalTime() const;
  bool SaysSupported(const std::string& setting) const;

  Endpoint endpoint_;
  const std::string_view token_header_;
  std::optional<Signer> signer_;
  int moves_ = 0;
  size_t refused_checksums_ = 0;
  // An id is a place here and how often it has been used, so that an old one finds nothing.
  struct Place {
    uint32_t uses = 0;
    std::unique_ptr<Operation> operation;
  };
  Place* Find(ObjectStore::OpId id);
  std::vector<Place> operations_;
  std::vector<uint32_t> free_places_;
};

}  // namespace forebay::store::s3
