// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/run/block/block.hpp>

#include <atomic>
#include <cstdint>
#include <utility>

namespace penstock::inline v0_1 {

namespace detail {

/// One share of a block: while it exists, the block's memory is not reused and its pool is not destroyed.
class block_share {
 public:
  using give_back = void (*)(block&, std::uint32_t shares) noexcept;

  block_share() noexcept = default;
  /// Adds a share of a block; the caller must already hold one.
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

/// One field of a batch, held: what `hold<"x">(batch)` returns. It keeps the batch's memory alive as the
/// batch itself does, and may outlive batch, run and plan; tensors of other libraries can be built on it.
/// Copies hold the memory too. A moved-from column holds nothing, and its view is empty.
///
/// It counts as a batch that the consumer holds: the run gets the memory back when the last holder releases
/// it, in any thread. Cost: one atomic addition to create and one to destroy; no allocation.
template <class View>
class held_column {
 public:
  held_column() = default;
  held_column(const held_column&) = default;
  held_column(held_column&& other) noexcept
      : share_(std::move(other.share_)),
        view_(std::exchange(other.view_, View{})),
        device_data_(std::exchange(other.device_data_, nullptr)) {}
  held_column& operator=(held_column other) noexcept {
    std::swap(share_, other.share_);
    std::swap(view_, other.view_);
    std::swap(device_data_, other.device_data_);
    return *this;
  }
  ~held_column() = default;
  held_column(detail::block_share share, const View& view, const void* device_data) noexcept
      : share_(std::move(share)), view_(view), device_data_(device_data) {}

  /// Like `get<"x">(batch)`; valid while any copy holds the column.
  [[nodiscard]] const View& view() const& noexcept { return view_; }
  const View& view() const&& = delete;
  /// Like `batch.device_data()`. For a device with streams: call `batch.on(stream)` for each stream that will
  /// use it before you drop the batch.
  [[nodiscard]] const void* device_data() const noexcept { return device_data_; }
  [[nodiscard]] explicit operator bool() const noexcept { return static_cast<bool>(share_); }
  /// Releases the memory.
  void reset() noexcept { *this = held_column(); }

 private:
  detail::block_share share_;
  View view_{};
  const void* device_data_ = nullptr;
};

namespace detail {

inline block_share::block_share(block& of, give_back how) noexcept : block_(&of), give_back_(how) {
  of.shares.fetch_add(1, std::memory_order_relaxed);
}
inline block_share::block_share(const block_share& other) noexcept
    : block_(other.block_), give_back_(other.give_back_) {
  if (block_ != nullptr) block_->shares.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace detail

}  // namespace penstock::inline v0_1
