#include "format/archive/tar_reader.h"

#include <archive.h>
#include <archive_entry.h>
#include <fmt/core.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace forebay::format::archive {

TarReader::~TarReader() { Close(); }

void TarReader::Close() {
  if (archive_ != nullptr) archive_read_free(archive_);
  archive_ = nullptr;
}

la_ssize_t TarReader::ReadPiece(::archive* a, void* data, const void** bytes) {
  auto* self = static_cast<TarReader*>(data);
  const auto found = self->window_->From(self->position_);
  if (!found.ok()) {
    self->read_error_ = found.status();
    archive_set_error(a, EIO, "the shard cannot be read");
    return -1;
  }
  const size_t size = std::min(found->size(), self->piece_.size());
  if (size > 0) std::memcpy(self->piece_.data(), found->data(), size);
  self->position_ += size;
  *bytes = self->piece_.data();
  return static_cast<la_ssize_t>(size);
}

la_int64_t TarReader::SkipBytes(::archive*, void* data, la_int64_t bytes) {
  auto* self = static_cast<TarReader*>(data);
  const uint64_t left = self->window_->Left(self->position_);
  const uint64_t skipped = std::min(left, static_cast<uint64_t>(std::max<la_int64_t>(bytes, 0)));
  self->position_ += skipped;
  return static_cast<la_int64_t>(skipped);
}

Status TarReader::OpenAt(uint64_t offset) {
  Close();
  archive_ = archive_read_new();
  if (archive_ == nullptr) return {Code::kResourceExhausted, "no memory for reading a tar file"};
  base_ = offset;
  expected_ = offset;
  position_ = offset;
  const bool ready = archive_read_support_format_tar(archive_) == ARCHIVE_OK &&
                     archive_read_set_callback_data(archive_, this) == ARCHIVE_OK &&
                     archive_read_set_read_callback(archive_, &ReadPiece) == ARCHIVE_OK &&
                     archive_read_set_skip_callback(archive_, &SkipBytes) == ARCHIVE_OK &&
                     archive_read_open1(archive_) == ARCHIVE_OK;
  return ready ? Status() : Failure(offset);
}

Status TarReader::Failure(uint64_t offset) {
  if (!read_error_.ok()) return read_error_;
  const char* why = archive_error_string(archive_);
  return Damaged(window_->PlaceAt(offset), "a member of a tar file",
                 fmt::format("damage ({})", why != nullptr ? why : "no reason is given"));
}

Status TarReader::NextHeader(uint64_t offset, archive_entry** entry) {
  warning_.clear();
  if (archive_ == nullptr || expected_ != offset) FB_RETURN_IF_ERROR(OpenAt(offset));
  const int code = archive_read_next_header(archive_, entry);
  if (code == ARCHIVE_EOF) {
    return Damaged(window_->PlaceAt(offset), "a member of a tar file", "the end of the archive");
  }
  // A damaged header in mid-archive is a "retry", which is less than a warning.
  if (code != ARCHIVE_OK && code != ARCHIVE_WARN) return Failure(offset);
  if (code == ARCHIVE_WARN) {
    const char* why = archive_error_string(archive_);
    const std::string_view text = why != nullptr ? why : "";
    // Names are taken as bytes, whatever the locale makes of them.
    if (text.find("current locale") == std::string_view::npos) warning_ = text;
  }
  return {};
}

Status TarReader::WhyDamaged(uint64_t offset) {
  archive_entry* entry = nullptr;
  FB_RETURN_IF_ERROR(NextHeader(offset, &entry));
  return Damaged(window_->PlaceAt(offset), "a tar header with its checksum", "another block");
}

Result<TarMember> TarReader::Read(uint64_t offset, const MemberHeader& header) {
  archive_entry* entry = nullptr;
  FB_RETURN_IF_ERROR(NextHeader(offset, &entry));
  const Place place = window_->PlaceAt(header.offset);
  const uint64_t data = base_ + static_cast<uint64_t>(archive_filter_bytes(archive_, 0));
  if (data != header.offset + kBlock) {
    return Damaged(place, fmt::format("data behind the header, at {}", header.offset + kBlock),
                   fmt::format("it at {}", data));
  }
  TarMember member;
  if (header.name) {
    member.name = *header.name;
  } else {
    const char* name = archive_entry_pathname(entry);
    if (name == nullptr) return Damaged(place, "a member's name", "none");
    member.name = name;
  }
  const bool is_file = header.type == '0' || header.type == '\0' || header.type == '7';
  member.is_file = is_file && archive_entry_filetype(entry) == AE_IFREG &&
                   archive_entry_hardlink(entry) == nullptr;
  if (!member.is_file) return member;
  if (archive_entry_sparse_count(entry) > 0) {
    return Refused(place, "a sparse member: its bytes do not lie in one piece; pack it anew");
  }
  const int64_t size = archive_entry_size(entry);
  if (size < 0) return Damaged(place, "a size of at least 0", fmt::format("{}", size));
  const auto range = RangeWithin(data, static_cast<uint64_t>(size), window_->size());
  member.cut = !range;
  // Of a cut one, the size as it is declared; an end that wraps is no end.
  member.data =
      range ? *range : ByteRange{data, data + std::min<uint64_t>(size, UINT64_MAX - data)};
  return member;
}

Result<uint64_t> TarReader::End() {
  const int code = archive_read_data_skip(archive_);
  const uint64_t end = base_ + static_cast<uint64_t>(archive_filter_bytes(archive_, 0));
  if (code != ARCHIVE_OK && code != ARCHIVE_WARN) return Failure(end);
  expected_ = end;
  return end;
}

}  // namespace forebay::format::archive
