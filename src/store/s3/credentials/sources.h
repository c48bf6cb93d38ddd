// The kinds of Source, one a file. Private to credentials/.
#pragma once

#include <memory>

#include "store/s3/credentials/source.h"
#include "store/s3/credentials/spec.h"

namespace forebay::store::s3 {

std::unique_ptr<Source> MakeMetadataSource(const CredentialSpec& spec, SourceContext& context);
std::unique_ptr<Source> MakeContainerSource(const CredentialSpec& spec, SourceContext& context);
std::unique_ptr<Source> MakeProcessSource(const CredentialSpec& spec, SourceContext& context);
std::unique_ptr<Source> MakeSsoSource(const CredentialSpec& spec, SourceContext& context);
// Both of a role: with a web identity's token, or with the keys of spec.base.
std::unique_ptr<Source> MakeStsSource(const CredentialSpec& spec, SourceContext& context);

}  // namespace forebay::store::s3
