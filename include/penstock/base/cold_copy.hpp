// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/bytes.hpp>

#include <algorithm>
#include <cstring>

namespace penstock::inline v0_1::detail {

/// Copies ranges that follow each other in memory, but are mostly not in the processor's cache, as those of a
/// mapped file that is read in order.
///
/// While a KiB is copied, the lines that stand 6 KiB further on are prefetched, also those behind the range:
/// the processor's own prefetching begins anew at each range and each page, so that copies of 1 or 10 KiB
/// mostly wait for the first lines. Where no memory is mapped, a prefetch does nothing.
class cold_copy {
 public:
  void operator()(mutable_bytes into, const std::byte* from) noexcept {
    const auto begin = reinterpret_cast<std::uintptr_t>(from);
    std::uintptr_t next = next_ > begin && next_ - begin <= ahead + piece ? next_ : begin;
    for (std::size_t done = 0; done < into.size();) {
      const std::size_t n = std::min(piece, into.size() - done);
      for (const std::uintptr_t end = begin + done + n + ahead; next < end; next += line)
        __builtin_prefetch(reinterpret_cast<const void*>(next));
      std::memcpy(into.data() + done, from + done, n);
      done += n;
    }
    next_ = next;
  }

 private:
  static constexpr std::size_t line = 64, piece = 1024, ahead = 6144;

  std::uintptr_t next_ = 0;  // the first line that has not been prefetched
};

}  // namespace penstock::inline v0_1::detail
