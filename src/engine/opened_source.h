// A data set of a run, opened: its catalog read, its samples numbered, its objects known.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/object_table.h"
#include "catalog/files_catalog.h"
#include "engine/store_set.h"
#include "feed/dataset.h"
#include "feed/record_samples.h"
#include "feed/table_samples.h"
#include "feed/video_clips.h"
#include "forebay/dataset.h"
#include "order/block_table.h"
#include "store/uri.h"

namespace forebay::engine {

struct OpenedSource {
  std::string name;
  std::string spec;  // what a sample is, as "kind/version field=value ..."
  std::string catalog_hash;
  // What it was before each time that it was appended to, and last what it is.
  std::vector<catalog::Generation> generations;
  store::Uri root;  // its bucket
  std::shared_ptr<const ObjectTable> objects;
  std::shared_ptr<const catalog::FilesCatalog> files;  // where it is that
  std::unique_ptr<feed::Dataset> dataset;
  const feed::VideoClips* clips = nullptr;       // `dataset`, where it is that
  const feed::RecordSamples* records = nullptr;  // the same
  feed::TableSamples* tables = nullptr;          // the same
};

// Reads catalogs with a store set of its own, gone when this returns: no thread is left.
// `neighbours`: samples that come one after the other lie side by side, and may be read together.
// Errors carry the source's URI.
Result<std::vector<OpenedSource>> OpenSources(const std::vector<SourceOptions>& sources,
                                              const StoreOptions& store, bool neighbours);

// Of the first `samples` of a source: how many lie in each block, for a block shuffle.
std::shared_ptr<const order::BlockTable> BlocksOf(const OpenedSource& source, uint64_t samples);

}  // namespace forebay::engine
