// One fetch for all processes of a user on a machine: the first that needs credentials fetches them
// under a lock and leaves them in a file of the user's own; the others wait for that and read it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "store/s3/credentials/source.h"
#include "sys/shared_file.h"

namespace forebay::store::s3 {

// On the context's executor. Outlived by nothing it has called: destroy it once the executor has
// stopped.
class Broker {
 public:
  // `file` none: every Fetch asks the source.
  Broker(SourceContext& context, std::unique_ptr<Source> source,
         std::optional<sys::SharedFile> file);

  // Credentials other than those whose access key id is `rejected` ("": none is), from the file
  // when they are fresh, else from the source. One at a time. When the source fails and those in
  // the file have not ended yet, they are the answer; a failure is an answer for the others too,
  // a refusal for 1 s, anything else for a while that doubles from 1 s to 60 s.
  void Fetch(std::string rejected, OnFetched on_fetched);
  // Times the source was asked, by this process.
  int fetches() const { return fetches_; }

 private:
  struct Record {
    Fetched fetched;
    int64_t fetched_at = 0;
    int failures = 0;  // in a row
    int64_t not_before = 0;
    Code code = Code::kOk;  // of the last failure
    std::string message;
  };
  Record ReadRecord() const;
  void WriteRecord(const Record& record);
  // What the file says is enough: the fetch has ended.
  bool EndFromRecord(const Record& record);
  void Look();
  void Ask();
  void OnAsked(Result<Fetched> fetched);
  bool Usable(const Record& record) const;  // there, not rejected
  bool Fresh(const Record& record) const;
  void End(Result<Fetched> result);

  SourceContext& context_;
  const std::unique_ptr<Source> source_;
  const std::optional<sys::SharedFile> file_;
  std::optional<sys::FileLock> lock_;
  std::string rejected_;
  OnFetched on_fetched_;
  Time give_up_{};  // waiting for the lock
  Duration pause_{};
  int fetches_ = 0;
};

}  // namespace forebay::store::s3
