// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/compiled.hpp>
#include <penstock/core/tensor.hpp>
#include <penstock/integration/dlpack_abi.hpp>

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
  ~dlpack_tensor();

  [[nodiscard]] explicit operator bool() const noexcept { return owned_ != nullptr; }
  /// The tensor, which must be there.
  [[nodiscard]] const dlpack::tensor& operator*() const noexcept { return owned_->dl_tensor; }
  [[nodiscard]] const dlpack::tensor* operator->() const noexcept { return &owned_->dl_tensor; }
  /// With version and flags; null if there is none.
  [[nodiscard]] const dlpack::managed_tensor_versioned* get() const noexcept { return owned_; }
  /// The shape, for up to eight dimensions.
  [[nodiscard]] extents shape() const noexcept;

  /// Gives the tensor to the caller, who calls its deleter.
  [[nodiscard]] dlpack::managed_tensor_versioned* release() noexcept {
    return std::exchange(owned_, nullptr);
  }
  /// As `release`, in the form of before version 1.0, which cannot say that a tensor is read-only: throws
  /// errc::argument for one that is, and keeps it. One small allocation.
  [[nodiscard]] dlpack::managed_tensor* release_legacy();

 private:
  dlpack::managed_tensor_versioned* owned_ = nullptr;
};

}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/integration/dlpack_tensor.ipp>
#endif
