// The keys of a directory bucket's session (S3 Express One Zone): made of the credentials, valid
// for five minutes, for that bucket alone. Private to s3/.
#pragma once

#include <memory>

#include "store/s3/core.h"
#include "store/s3/credentials_provider.h"

namespace forebay::store::s3 {

// One session at a time, however many ask; it is renewed a minute before it ends, and kept as long
// as it is valid when that fails. `iam` signs CreateSession. Used on its executor alone.
std::shared_ptr<CredentialsProvider> MakeSessionProvider(std::shared_ptr<Core> iam);

}  // namespace forebay::store::s3
