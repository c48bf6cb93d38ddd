// Status and Result<T>: how every part of Forebay reports failure. No exception leaves src/.
#pragma once

#include <cassert>
#include <concepts>
#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#define FOREBAY_API [[gnu::visibility("default")]]

namespace forebay {

// What the caller can do about a failure.
enum class Code : uint8_t {
  kOk = 0,
  kCancelled,           // the caller, or a close, asked for it
  kInvalidArgument,     // the request can never succeed as it stands
  kNotFound,            // no such object, bucket, camera, frame
  kPermissionDenied,    // credentials are missing, wrong or not allowed
  kPreconditionFailed,  // the object changed since it was indexed
  kUnavailable,         // try again
  kDeadlineExceeded,    // the wait was bounded, and the bound was reached
  kResourceExhausted,   // back off, or give more memory
  kDataLoss,            // bytes are missing, damaged, or not what was promised
  kUnimplemented,       // valid, and not supported
  kInternal,            // a bug in Forebay
};

// "not_found" and so on: stable, used in texts, metrics and exception names.
FOREBAY_API std::string_view CodeName(Code code);

// Where and in which request a failure happened. Unset fields keep their defaults.
struct ErrorDetail {
  std::string uri;
  int64_t offset = -1;  // first byte of the range, -1: no range
  int64_t end = -1;     // one past the last byte
  int attempt = 0;      // 1-based, 0: not a store request
  int http_status = 0;
  std::string request_id;
  // A flag, a variable, a profile or a credential is at fault, not what was asked for.
  bool from_settings = false;
};

// One pointer; null means OK. Copyable (a copy duplicates the error, which is rare).
class [[nodiscard, gnu::visibility("default")]] Status {
 public:
  Status() = default;
  Status(Code code, std::string message);
  Status(Code code, std::string message, ErrorDetail detail);
  Status(const Status& other);
  Status& operator=(const Status& other);
  Status(Status&& other) noexcept : rep_(std::exchange(other.rep_, nullptr)) {}
  Status& operator=(Status&& other) noexcept {
    std::swap(rep_, other.rep_);
    return *this;
  }
  ~Status() {
    if (rep_ != nullptr) Destroy();
  }

  static Status Ok() { return {}; }

  bool ok() const { return rep_ == nullptr; }
  Code code() const;
  // The innermost message, without context and detail.
  const std::string& message() const;
  const ErrorDetail& detail() const;
  // "data_loss: context: inner context: message [uri=... range=... attempt=2 request_id=...]"
  std::string ToString() const;

  // Puts `context` in front ("reading sample 7"). No effect on OK.
  Status WithContext(std::string_view context) &&;
  // Fills those fields of the detail that are still unset. No effect on OK.
  Status WithDetail(const ErrorDetail& detail) &&;

 private:
  struct Rep;
  void Destroy();
  Rep* rep_ = nullptr;
};

template <class T>
class Result;

template <class T>
inline constexpr bool kIsResult = false;
template <class T>
inline constexpr bool kIsResult<Result<T>> = true;

// A value or the Status that explains its absence. Constructed from a value, or from a Status
// that is not OK; never from another Result, so that an error cannot turn into a value.
template <class T>
class [[nodiscard]] Result {
 public:
  using value_type = T;

  template <class U = T>
    requires(!kIsResult<std::remove_cvref_t<U>> && !std::same_as<std::remove_cvref_t<U>, Status> &&
             std::is_constructible_v<T, U &&> && std::is_convertible_v<U &&, T>)
  Result(U&& value) : state_(std::in_place, std::forward<U>(value)) {}  // NOLINT
  Result(Status status) : state_(std::unexpect, std::move(status)) {    // NOLINT
    assert(!state_.error().ok());
  }

  bool ok() const { return state_.has_value(); }
  T& operator*() & { return *state_; }
  const T& operator*() const& { return *state_; }
  T&& operator*() && { return *std::move(state_); }
  T* operator->() { return &*state_; }
  const T* operator->() const { return &*state_; }
  // OK when there is a value.
  Status status() const& { return ok() ? Status() : state_.error(); }
  Status status() && { return ok() ? Status() : std::move(state_).error(); }
  Code code() const { return ok() ? Code::kOk : state_.error().code(); }

 private:
  std::expected<T, Status> state_;
};

#define FOREBAY_CONCAT_(a, b) a##b
#define FOREBAY_CONCAT(a, b) FOREBAY_CONCAT_(a, b)

#define FB_RETURN_IF_ERROR(expr)                      \
  do {                                                \
    if (auto fb_status_ = (expr); !fb_status_.ok()) { \
      return fb_status_;                              \
    }                                                 \
  } while (0)

// FB_ASSIGN_OR_RETURN(auto x, MakeX());
#define FB_ASSIGN_OR_RETURN(lhs, expr) \
  FB_ASSIGN_OR_RETURN_(FOREBAY_CONCAT(fb_result_, __LINE__), lhs, expr)
#define FB_ASSIGN_OR_RETURN_(result, lhs, expr)        \
  auto result = (expr);                                \
  if (!result.ok()) return std::move(result).status(); \
  lhs = *std::move(result)

}  // namespace forebay
