// Which fields of a sample are written, under which names and as what.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "engine/pack_source.h"

namespace forebay::engine {

class PackColumns {
 public:
  // Errors: kInvalidArgument (a column that cannot be read as one).
  static Result<PackColumns> Make(const PackOptions& options);

  // With labels of folders: of every sample, before the first Select.
  void SeeFolder(const PackSample& sample);
  // Called when all folders have been seen.
  void CloseFolders();
  const std::vector<std::string>& folders() const { return folders_; }
  // Makes it what is written. Errors: kInvalidArgument (a field that it has not).
  Status Select(PackSample* sample) const;

 private:
  struct Column {
    std::string name;
    std::vector<std::string> of;  // the first of these that there is
    std::string type;             // "": as it is
  };
  PackColumns() = default;
  static Result<Column> Parse(const std::string& text);
  Status AddLabel(PackSample* sample) const;
  Status SetType(const std::string& type, PackField* field) const;
  void InferType(PackField* field) const;

  bool mds_ = false;
  bool infers_ = false;  // numbers kept as text, by their fields' names
  bool folder_labels_ = false;
  std::string keys_;
  std::vector<Column> columns_;
  std::set<std::string> seen_;
  std::vector<std::string> folders_;
};

// The bytes of a number that is kept as text. kInvalidArgument: it is none of the type.
Result<std::string> NumberFromText(std::string_view text, std::string_view dtype);

// Whether a field of this name is the label, where a format has a place for it.
bool IsLabelField(std::string_view name);

std::string LowerAscii(std::string_view text);

// Whether WebDataset reads a field of this name as an integer.
bool IsClassField(std::string_view name);

}  // namespace forebay::engine
