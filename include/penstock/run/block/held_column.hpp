// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/compiled.hpp>
#include <penstock/run/block/block.hpp>

#include <cstdint>
#include <utility>

namespace penstock::inline v0_1 {

namespace detail {

/// One share of a block: its memory is not used again, and its pool not destroyed, while there is one.
class block_share {
 public:
  using give_back = void (*)(block&, std::uint32_t shares) noexcept;

  block_share() noexcept = default;
  /// Takes a share of a block of which the caller has one.
  block_share(block& of, give_back how) noexcept;
  block_share(const block_share& other) noexcept;
  block_share(block_share&& other) noexcept
      : block_(std::exchange(other.block_, nullptr)), give_back_(other.give_back_) {}
  block_share& operator=(block_share other) noexcept {
    std::swap(block_, other.block_);
    std::swap(give_back_, other.give_back_);
    return *this;
  }
  ~block_share() {
    if (block_ != nullptr) give_back_(*block_, 1);
  }

  [[nodiscard]] explicit operator bool() const noexcept { return block_ != nullptr; }

 private:
  block* block_ = nullptr;
  give_back give_back_ = nullptr;
};

}  // namespace detail

/// One field of a batch, held: what `hold<"x">(batch)` gives. It keeps the batch's memory as the batch itself
/// does, and may outlive batch, run and plan: what tensors of other libraries stand on. Copies hold too; one
/// that was moved from holds nothing, and its view must not be used.
///
/// It counts as a batch that the consumer holds: the memory comes back to the run when the last holder lets
/// go, in any thread. Cost: one atomic addition, and one when it ends; no allocation.
template <class View>
class held_column {
 public:
  held_column() = default;
  held_column(detail::block_share share, const View& view, const void* device_data) noexcept
      : share_(std::move(share)), view_(view), device_data_(device_data) {}

  /// As `get<"x">(batch)`; valid while anybody holds the column.
  [[nodiscard]] const View& view() const& noexcept { return view_; }
  const View& view() const&& = delete;
  /// As `batch.device_data()`. For a device with streams: call `batch.on(stream)` for each stream that will
  /// use it before the batch is dropped.
  [[nodiscard]] const void* device_data() const noexcept { return device_data_; }
  [[nodiscard]] explicit operator bool() const noexcept { return static_cast<bool>(share_); }
  /// Lets go.
  void reset() noexcept { *this = held_column(); }

 private:
  detail::block_share share_;
  View view_{};
  const void* device_data_ = nullptr;
};

}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/run/block/held_column.ipp>
#endif
