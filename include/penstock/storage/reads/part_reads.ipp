// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/storage/reads/part_reads.hpp>

#include <penstock/core/to_size.hpp>

#include <algorithm>
#include <array>
#include <utility>

namespace penstock::inline v0_1 {
namespace detail {

PENSTOCK_INLINE part_reads::part_reads(void* line, begin_type begin, const read_request& whole) noexcept
    : line_(line),
      begin_(begin),
      whole_(whole),
      parts_(std::max<std::uint64_t>(1, (whole.into.size() + longest - 1) / longest)) {}

PENSTOCK_INLINE read_request part_reads::take_next() noexcept {
  const std::uint64_t size = whole_.into.size(), part = size / parts_;
  const std::uint64_t first = part * next_, last = next_ + 1 == parts_ ? size : first + part;
  ++in_flight_;
  return {whole_.object, whole_.offset + first, whole_.into.subspan(to_size(first), to_size(last - first)),
          next_++};
}

PENSTOCK_INLINE read_listener part_reads::listener() noexcept {
  return {this, [](void* self, std::uint64_t part, std::exception_ptr failed) noexcept {
            static_cast<part_reads*>(self)->ended(part, std::move(failed));
          }};
}

PENSTOCK_INLINE void part_reads::read() {
  std::array<read_request, max_in_flight> first;
  std::size_t count = 0;
  while (count < first.size() && next_ < parts_) first[count++] = take_next();
  begin_(line_, {first.data(), count}, listener());
  std::unique_lock held(lock_);
  over_.wait(held, [this] { return in_flight_ == 0; });
  if (failed_) std::rethrow_exception(failed_);
}

PENSTOCK_INLINE void part_reads::ended(std::uint64_t part, std::exception_ptr failed) noexcept {
  read_request next;
  {
    const std::lock_guard guard(lock_);  // also while notifying: the waiter ends at once
    if (failed && (!failed_ || part < failed_part_)) {
      failed_ = std::move(failed);
      failed_part_ = part;
    }
    const bool goes_on = !failed_ && next_ < parts_;
    if (goes_on) next = take_next();
    if (--in_flight_ == 0) over_.notify_one();
    if (!goes_on) return;
  }
  begin_(line_, {&next, 1}, listener());
}

}  // namespace detail
}  // namespace penstock::inline v0_1
