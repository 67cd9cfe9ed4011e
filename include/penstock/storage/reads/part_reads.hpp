// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/bytes.hpp>
#include <penstock/core/compiled.hpp>
#include <penstock/storage/concepts.hpp>

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <mutex>
#include <span>

namespace penstock::inline v0_1 {
namespace detail {

/// A read of a thread that waits, made of reads in the background: a range of more than 16 MiB comes in parts
/// of equal size, side by side, each straight to its place. After a failure no further part begins; the error
/// is that of the first part, by offset, that failed.
///
/// Cost: no allocation; a lock per part.
class part_reads {
 public:
  static constexpr std::uint64_t longest = 16_MiB;
  static constexpr std::size_t max_in_flight = 8;
  using begin_type = void (*)(void* line, std::span<const read_request> requests,
                              read_listener listener) noexcept;

  /// `begin` is called by this thread, and by those that report reads.
  part_reads(void* line, begin_type begin, const read_request& whole) noexcept;
  part_reads(const part_reads&) = delete;
  part_reads& operator=(const part_reads&) = delete;

  /// Reads, and waits for the end.
  void read();

 private:
  [[nodiscard]] read_request take_next() noexcept;
  [[nodiscard]] read_listener listener() noexcept;
  void ended(std::uint64_t part, std::exception_ptr failed) noexcept;

  void* line_;
  begin_type begin_;
  read_request whole_;
  std::uint64_t parts_, next_ = 0;
  std::mutex lock_;
  std::condition_variable over_;
  std::size_t in_flight_ = 0;
  std::exception_ptr failed_;
  std::uint64_t failed_part_ = 0;
};

/// Reads a range by `line.read_many`, and waits for it. Any number of threads may call `line.read_many`.
template <class Line>
void read_by_parts(Line& line, object_id id, std::uint64_t offset, mutable_bytes into) {
  part_reads(&line,
             [](void* self, std::span<const read_request> requests, read_listener listener) noexcept {
               static_cast<Line*>(self)->read_many(requests, listener);
             },
             {id, offset, into})
      .read();
}

}  // namespace detail
}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/storage/reads/part_reads.ipp>
#endif
