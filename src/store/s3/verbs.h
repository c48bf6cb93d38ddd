// All operations but the ranged GET. Private to s3/.
#pragma once

#include <memory>
#include <string>

#include "store/s3/operation.h"

namespace forebay::store::s3 {

using OperationPtr = std::unique_ptr<Operation>;

OperationPtr MakeHead(Core& core, HeadRequest request, Callback<ObjectInfo> on_done);
OperationPtr MakeList(Core& core, ListRequest request, Callback<ListPage> on_done);
OperationPtr MakePut(Core& core, PutRequest request, Callback<PutResult> on_done);
OperationPtr MakeCreateUpload(Core& core, UploadRequest request, Callback<std::string> on_done);
OperationPtr MakePutPart(Core& core, PartRequest request, Callback<PutResult> on_done);
OperationPtr MakeCompleteUpload(Core& core, UploadRequest request, Callback<PutResult> on_done);
OperationPtr MakeAbortUpload(Core& core, UploadRequest request, Callback<Unit> on_done);
OperationPtr MakeDelete(Core& core, HeadRequest request, Callback<Unit> on_done);

}  // namespace forebay::store::s3
