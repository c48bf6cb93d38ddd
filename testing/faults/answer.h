// A response on its way to the client: a head, changed by the faults, and where its body is.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "testing/faults/body_source.h"
#include "testing/faults/decision.h"
#include "testing/faults/http_head.h"

namespace forebay::faults {

struct Answer {
  ResponseHead head;
  std::unique_ptr<BodySource> body;  // never null
};

std::string_view ReasonOf(int status);
std::string EscapeXml(std::string_view text);

// S3's error document. A HEAD gets its headers without the body.
Answer MakeErrorAnswer(int status, std::string_view code, std::string_view message,
                       const RequestHead& request, uint64_t number);
Answer MakeTextAnswer(int status, std::string_view content_type, std::string text,
                      const RequestHead& request);

// The faults that show in the head.
void ApplyHeadFaults(const Decision& decision, ResponseHead& head);

// A 206 as the 200 of an origin that ignored the range, when only the range's bytes are at hand:
// the whole length, with zeros where the object's other bytes would be. Other answers stay.
void WidenPartialAnswer(Answer& answer);

// Whether the request's signature covers this header, so that it cannot be taken away.
bool IsSignedHeader(const RequestHead& request, std::string_view name);

}  // namespace forebay::faults
