// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/error.hpp>
#include <penstock/core/tensor.hpp>
#include <penstock/integration/dlpack_abi.hpp>

#include <memory>
#include <utility>

namespace penstock::inline v0_1 {

/// Owns a tensor of DLPack: `to_dlpack(batch)` returns one. Its destructor calls the tensor's deleter, unless
/// `release` gave the tensor away.
///
/// `release()` is what a capsule of Python named `dltensor_versioned` holds, and `release_legacy()` what one
/// named `dltensor` holds, for libraries that do not know version 1.0. Whoever receives the pointer calls its
/// deleter once, in any thread, also after the run has ended.
class dlpack_tensor {
 public:
  dlpack_tensor() = default;
  /// Takes ownership of a tensor, of any producer.
  explicit dlpack_tensor(dlpack::managed_tensor_versioned* owned) noexcept : owned_(owned) {}
  dlpack_tensor(dlpack_tensor&& other) noexcept : owned_(std::exchange(other.owned_, nullptr)) {}
  dlpack_tensor& operator=(dlpack_tensor&& other) noexcept {
    std::swap(owned_, other.owned_);
    return *this;
  }
  ~dlpack_tensor() {
    if (owned_ != nullptr && owned_->deleter != nullptr) owned_->deleter(owned_);
  }

  [[nodiscard]] explicit operator bool() const noexcept { return owned_ != nullptr; }
  /// The tensor, which must be there.
  [[nodiscard]] const dlpack::tensor& operator*() const noexcept { return owned_->dl_tensor; }
  [[nodiscard]] const dlpack::tensor* operator->() const noexcept { return &owned_->dl_tensor; }
  /// With version and flags; null if there is none.
  [[nodiscard]] const dlpack::managed_tensor_versioned* get() const noexcept { return owned_; }
  /// The shape, for up to eight dimensions.
  [[nodiscard]] extents shape() const noexcept {
    extents all;
    for (std::int32_t i = 0; i < owned_->dl_tensor.ndim; ++i)
      all.push_back(static_cast<std::uint64_t>(owned_->dl_tensor.shape[i]));
    return all;
  }

  /// Gives the tensor to the caller, who calls its deleter.
  [[nodiscard]] dlpack::managed_tensor_versioned* release() noexcept {
    return std::exchange(owned_, nullptr);
  }
  /// As `release`, in the form of before version 1.0, which cannot say that a tensor is read-only: throws
  /// errc::argument for one that is, and keeps it. One small allocation.
  [[nodiscard]] dlpack::managed_tensor* release_legacy() {
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

 private:
  dlpack::managed_tensor_versioned* owned_ = nullptr;
};

}  // namespace penstock::inline v0_1
