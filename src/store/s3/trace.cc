#include "store/s3/trace.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/log.h"
#include "store/s3/error.h"

namespace forebay::store::s3 {
namespace {

double Milliseconds(Duration time) { return static_cast<double>(time.count()) * 1e-6; }

}  // namespace

void TraceExchange(const Exchange& exchange) {
  const ErrorDetail& detail = exchange.detail;
  const net::HttpTiming& timing = exchange.timing;
  std::string line =
      fmt::format("{}{} {}", exchange.verb, exchange.own ? "" : " (asking why)", detail.uri);
  if (detail.offset >= 0) line += fmt::format(" [{}, {})", detail.offset, detail.end);
  line += exchange.head.status == 0 ? " -> no answer" : fmt::format(" -> {}", exchange.head.status);
  const std::string code = ParseErrorBody(exchange.text).code;
  if (!code.empty()) line += " " + code.substr(0, 80);
  if (!exchange.status.ok()) line += fmt::format(" {}", CodeName(exchange.status.code()));
  line += fmt::format(", {} bytes in {:.1f} ms, first after {:.1f} ms, ", timing.body_bytes,
                      Milliseconds(timing.total), Milliseconds(timing.first_byte));
  line += timing.reused_connection
              ? std::string("connection reused")
              : fmt::format("connected in {:.1f} ms", Milliseconds(timing.connect));
  const std::string_view id = net::FindHeader(exchange.head.headers, "x-amz-request-id");
  if (!id.empty()) line += fmt::format(", id {}", id.substr(0, 120));
  // A key may hold anything, a line feed too.
  std::ranges::replace_if(line, [](unsigned char c) { return c < 0x20 || c == 0x7f; }, '?');
  Log(LogLevel::kTrace, line);
}

}  // namespace forebay::store::s3
