#include "store/s3/credentials/source.h"

#include "base/assert.h"
#include "store/s3/credentials/sources.h"

namespace forebay::store::s3 {

std::unique_ptr<Source> MakeSource(const CredentialSpec& spec, SourceContext& context) {
  switch (spec.kind) {
    case CredentialSpec::Kind::kFixed:
      break;
    case CredentialSpec::Kind::kProcess:
      return MakeProcessSource(spec, context);
    case CredentialSpec::Kind::kContainer:
      return MakeContainerSource(spec, context);
    case CredentialSpec::Kind::kMetadata:
      return MakeMetadataSource(spec, context);
    case CredentialSpec::Kind::kWebIdentity:
    case CredentialSpec::Kind::kAssumeRole:
      return MakeStsSource(spec, context);
    case CredentialSpec::Kind::kSso:
      return MakeSsoSource(spec, context);
  }
  FB_ASSERT(false);
  return nullptr;
}

}  // namespace forebay::store::s3
