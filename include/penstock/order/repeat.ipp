// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/order/repeat.hpp>

#include <penstock/core/error.hpp>
#include <penstock/core/message.hpp>

namespace penstock::inline v0_1 {

PENSTOCK_INLINE repeat_order::repeat_order(order_input in, std::optional<std::uint64_t> times)
    : inner_(in.size), times_(times.value_or(0)), by_(in.size == 0 ? 1 : in.size) {
  if (inner_ == 0) return;
  endless_ = !times || *times > endless_size / inner_;
  size_ = endless_ ? endless_size : inner_ * times_;
  if (in.starts && !endless_ && (in.starts->size() - 1) <= shards_kept / (times_ == 0 ? 1 : times_)) {
    shared<std::vector<std::uint64_t>> all(new std::vector<std::uint64_t>(1, 0));
    for (std::uint64_t time = 0; time < times_; ++time) {
      for (std::size_t i = 1; i < in.starts->size(); ++i) all->push_back(time * inner_ + (*in.starts)[i]);
    }
    starts_ = std::move(all);
  }
}

PENSTOCK_INLINE std::uint64_t repeat_order::first_epoch(std::uint64_t epoch) const {
  if (epoch == 0 || size_ == 0) return 0;
  if (endless_) {
    throw error(errc::argument, {"repeat() without end has only epoch 0, not ", epoch,
                                 "; write repeat(k) if you need epochs"})
        .in_stage("repeat");
  }
  if (epoch > (std::numeric_limits<std::uint64_t>::max() - (times_ - 1)) / times_) {
    throw error(errc::argument, {"epoch ", epoch, " of repeat(", times_, ") is beyond 64 bits"})
        .in_stage("repeat");
  }
  return epoch * times_;
}

PENSTOCK_INLINE std::string repeat_stage::describe() const {
  return times ? detail::text({"repeat(", *times, ")"}) : std::string("repeat()");
}

}  // namespace penstock::inline v0_1
