// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/integration/dlpack_tensor.hpp>

#include <penstock/core/error.hpp>

#include <cstdint>
#include <memory>

namespace penstock::inline v0_1 {

PENSTOCK_INLINE dlpack_tensor::~dlpack_tensor() {
  if (owned_ != nullptr && owned_->deleter != nullptr) owned_->deleter(owned_);
}

PENSTOCK_INLINE extents dlpack_tensor::shape() const noexcept {
  extents all;
  for (std::int32_t i = 0; i < owned_->dl_tensor.ndim; ++i)
    all.push_back(static_cast<std::uint64_t>(owned_->dl_tensor.shape[i]));
  return all;
}

PENSTOCK_INLINE dlpack::managed_tensor* dlpack_tensor::release_legacy() {
  if (owned_ == nullptr) return nullptr;
  if ((owned_->flags & dlpack::read_only) != 0)
    throw error(errc::argument,
                "this tensor is read-only, which DLPack can say since version 1.0 only; give its consumer "
                "release(), or copy it");
  auto made = std::make_unique<dlpack::managed_tensor>();
  made->dl_tensor = owned_->dl_tensor;
  made->manager_ctx = release();
  made->deleter = [](dlpack::managed_tensor* self) {
    const dlpack_tensor kept(static_cast<dlpack::managed_tensor_versioned*>(self->manager_ctx));
    delete self;
  };
  return made.release();
}

}  // namespace penstock::inline v0_1
