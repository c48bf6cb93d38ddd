// The log's line for each exchange with the server, at level trace.
#pragma once

#include <string>

#include "net/http.h"

namespace forebay::store::s3 {

struct Exchange {
  const std::string& verb;
  bool own;                   // else a question asked on the way
  const ErrorDetail& detail;  // uri and range
  const net::HttpHead& head;  // status 0: none came
  const std::string& text;    // the answer's body, when that is no data
  const Status& status;
  const net::HttpTiming& timing;
};

// Never a header of the request, never a query: those hold what signs.
void TraceExchange(const Exchange& exchange);

}  // namespace forebay::store::s3
