// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/base/owned.hpp>
#include <penstock/device/detail/cuda_calls.hpp>
#include <penstock/device/numa.hpp>

#include <cuda_runtime_api.h>

#include <algorithm>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace penstock::inline v0_1::detail {

/// Pinned memory of one run: a few large pieces, each registered with CUDA once, and the gaps in them. What
/// is returned is used again; pinning, which takes milliseconds, happens only while a run finds its size.
///
/// A piece begins as huge pages where it has room for them, on the node that is given. It is pinned, and
/// given back while the run goes on, by a thread of its own: a device that a worker makes current would stay
/// so, and changing back would make CUDA initialise the device that was current before, which the process may
/// not use at all.
/// Threads: any.
class pinned_arena : unmovable {
 public:
  static constexpr std::size_t page = 4096, huge_page = std::size_t{2} << 20;

  pinned_arena(int device, std::optional<numa_node> node) : device_(device), node_(std::move(node)) {}
  ~pinned_arena() {
    if (pieces_.empty()) return;
    const cuda_on_device here(device_);
    for (const piece& one : pieces_) unpin(one);
  }

  /// Takes no more for what is to come than leaves all pieces within so many bytes.
  void bound(std::uint64_t bytes) noexcept {
    const std::lock_guard guard(lock_);
    maximum_ = bytes;
  }
  /// Says that all that is in use now will be needed so many times more, so that one piece can hold it.
  void expect(std::size_t times) noexcept {
    const std::lock_guard guard(lock_);
    expected_ = in_use_ * times;
  }

  /// Memory at a multiple of a page.
  [[nodiscard]] void* allocate(std::size_t bytes) {
    const std::size_t size = in_pages(std::max<std::size_t>(1, bytes), page);
    const std::lock_guard guard(lock_);
    // At worst a gap follows everything that is in use; returning memory must not allocate.
    if (const std::size_t gaps = live_ + pieces_.size() + 3; gaps_.capacity() < gaps) gaps_.reserve(2 * gaps);
    auto found = fitting(size);
    if (found == gaps_.end()) {
      add_piece(size);
      found = fitting(size);
    }
    std::byte* const memory = found->begin;
    found->begin += size;
    found->size -= size;
    if (found->size == 0) gaps_.erase(found);
    in_use_ += size;
    ++live_;
    return memory;
  }
  void deallocate(void* memory, std::size_t bytes) noexcept {
    const std::size_t size = in_pages(std::max<std::size_t>(1, bytes), page);
    const std::lock_guard guard(lock_);
    in_use_ -= size;
    --live_;
    add_gap({static_cast<std::byte*>(memory), size});
  }

  /// Bytes that are pinned.
  [[nodiscard]] std::size_t pinned() const noexcept {
    const std::lock_guard guard(lock_);
    return total_;
  }

 private:
  struct stretch {
    std::byte* begin = nullptr;
    std::size_t size = 0;
    [[nodiscard]] std::byte* end() const noexcept { return begin + size; }
  };
  struct piece : stretch {
    bool mapped = false;  // by this class, otherwise by CUDA
  };

  [[nodiscard]] static constexpr std::size_t in_pages(std::size_t bytes, std::size_t size) noexcept {
    return (bytes + size - 1) / size * size;
  }

  /// The smallest gap that is large enough.
  [[nodiscard]] std::vector<stretch>::iterator fitting(std::size_t size) noexcept {
    auto best = gaps_.end();
    for (auto at = gaps_.begin(); at != gaps_.end(); ++at)
      if (at->size >= size && (best == gaps_.end() || at->size < best->size)) best = at;
    return best;
  }

  /// Gaps of two pieces stay two, even side by side: what spans both is registered as neither.
  void add_gap(stretch gap) noexcept {
    auto after = std::ranges::lower_bound(gaps_, gap.begin, {}, &stretch::begin);
    if (after != gaps_.end() && after->begin == gap.end() && !begins_piece(after->begin)) {
      after->begin = gap.begin;
      after->size += gap.size;
    } else {
      after = gaps_.insert(after, gap);
    }
    if (after == gaps_.begin() || begins_piece(after->begin)) return;
    const auto before = after - 1;
    if (before->end() != after->begin) return;
    before->size += after->size;
    gaps_.erase(after);
  }
  [[nodiscard]] bool begins_piece(const std::byte* memory) const noexcept {
    return std::ranges::find(pieces_, memory, &piece::begin) != pieces_.end();
  }

  void add_piece(std::size_t size) {
    cudaError_t code = cudaSuccess;
    if (std::ranges::any_of(pieces_, [&](const piece& one) { return is_idle(one); }))
      on_thread([&] { return give_back_idle(), cudaSuccess; }, code);  // if not now, when the run is gone
    // A fourth more than needed keeps pieces few where nobody knows what is to come.
    std::size_t more = std::max(expected_, std::min(total_ / 4, max_without_reason));
    if (maximum_) more = std::min<std::uint64_t>(more, *maximum_ > total_ ? *maximum_ - total_ : 0);
    expected_ = 0;
    const auto rounded = [](std::size_t bytes) {
      return in_pages(bytes, bytes >= 2 * huge_page ? huge_page : page);
    };
    pieces_.reserve(pieces_.size() + 1);
    std::optional<piece> made;
    if (more > size) made = pinned(rounded(more), code);
    if (!made) made = pinned(rounded(size), code);
    if (!made)
      cuda_fail(
          code, text({"pinning ", size, " bytes of host memory for batches"}),
          code == cudaErrorMemoryAllocation
              ? "lower prefetch(n) after batch, bound the run with memory(bytes), or raise the limit of "
                "locked memory (ulimit -l)"
              : "");
    pieces_.push_back(*made);
    total_ += made->size;
    add_gap(*made);
  }

  /// Whether all of it is free.
  [[nodiscard]] bool is_idle(const piece& one) const noexcept {
    const auto gap = std::ranges::find(gaps_, one.begin, &stretch::begin);
    return gap != gaps_.end() && gap->size == one.size;
  }
  /// Returns to the system what is whole, and too small: all of it is free, and no gap was large enough.
  void give_back_idle() noexcept {
    std::erase_if(pieces_, [&](const piece& one) {
      if (!is_idle(one)) return false;
      gaps_.erase(std::ranges::find(gaps_, one.begin, &stretch::begin));
      total_ -= one.size;
      unpin(one);
      return true;
    });
  }

  /// A piece of so many bytes; `code` says why there is none.
  [[nodiscard]] std::optional<piece> pinned(std::size_t size, cudaError_t& code) const {
    piece one{{nullptr, size}};
    if (map(one)) {
      on_thread([&] { return cudaHostRegister(one.begin, size, cudaHostRegisterPortable); }, code);
      if (code == cudaSuccess) return one;
      unmap(one);
      if (code != cudaErrorNotSupported && code != cudaErrorNotPermitted) return std::nullopt;
      one = {{nullptr, size}};
    }
    void* memory = nullptr;
    on_thread([&] { return cudaHostAlloc(&memory, size, cudaHostAllocPortable); }, code);
    if (code != cudaSuccess) return std::nullopt;
    one.begin = static_cast<std::byte*>(memory);
    return one;
  }
  static void unpin(const piece& one) noexcept {
    if (!one.mapped) {
      static_cast<void>(cudaFreeHost(one.begin));
      return;
    }
    static_cast<void>(cudaHostUnregister(one.begin));
    unmap(one);
  }

  /// Calls a function in a thread where the device is current and that is near it.
  template <class F>
  void on_thread(F call, cudaError_t& code) const {
    const auto work = [&] {
      if (node_) run_on(node_->processors);
      code = cudaSetDevice(device_);
      if (code == cudaSuccess) code = call();
      if (code != cudaSuccess) static_cast<void>(cudaGetLastError());
    };
    try {
      std::thread(work).join();
    } catch (const std::system_error&) {
      code = cudaErrorMemoryAllocation;
    }
  }

  /// Maps memory that is not pinned yet, on the node; false where that is not possible.
  [[nodiscard]] bool map([[maybe_unused]] piece& one) const noexcept {
#if defined(__linux__)
    const bool huge = one.size >= 2 * huge_page;
    const std::size_t whole = one.size + (huge ? huge_page : 0);
    void* const found = ::mmap(nullptr, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (found == MAP_FAILED) return false;
    one.begin = static_cast<std::byte*>(found);
    one.mapped = true;
    if (huge) {
      const std::size_t ahead = in_pages(reinterpret_cast<std::uintptr_t>(found), huge_page) -
                                reinterpret_cast<std::uintptr_t>(found);
      if (ahead != 0) ::munmap(found, ahead);
      one.begin += ahead;
      if (ahead != huge_page) ::munmap(one.end(), huge_page - ahead);
      ::madvise(one.begin, one.size, MADV_HUGEPAGE);  // a refusal leaves memory in small pages
    }
    if (node_) prefer_node(one.begin, one.size, node_->number);
    return true;
#else
    return false;
#endif
  }
  static void unmap([[maybe_unused]] const piece& one) noexcept {
#if defined(__linux__)
    ::munmap(one.begin, one.size);
#endif
  }

  static constexpr std::size_t max_without_reason = std::size_t{64} << 20;

  int device_;
  std::optional<numa_node> node_;
  mutable std::mutex lock_;
  std::vector<piece> pieces_;
  std::vector<stretch> gaps_;  // in order
  std::size_t total_ = 0, in_use_ = 0, expected_ = 0, live_ = 0;
  std::optional<std::uint64_t> maximum_;
};

}  // namespace penstock::inline v0_1::detail
