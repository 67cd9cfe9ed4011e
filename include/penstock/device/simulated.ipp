// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/device/simulated.hpp>

#include <penstock/core/message.hpp>

#include <algorithm>
#include <cstring>
#include <thread>

namespace penstock::inline v0_1 {

PENSTOCK_INLINE simulated::simulated(options given) : options_(given), account_(new account()) {}

PENSTOCK_INLINE void simulated::session::start(transfer& t, std::span<const bytes_view> columns) {
  const auto begin = std::max(clock::now(), link_free_);
  if (t.columns.size() < columns.size()) t.columns.resize(columns.size());
  double bytes = 0;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    t.columns[i].resize_for_overwrite(whole_lines(columns[i].size()));
    if (!columns[i].empty()) std::memcpy(t.columns[i].data(), columns[i].data(), columns[i].size());
    bytes += static_cast<double>(columns[i].size());
  }
  t.done = begin;
  if (options_.bytes_per_second > 0)
    t.done += std::chrono::duration_cast<clock::duration>(
        std::chrono::duration<double>(bytes / options_.bytes_per_second));
  link_free_ = t.done;
}

PENSTOCK_INLINE void simulated::session::make_room(transfer& t, std::size_t columns,
                                                   std::span<const std::size_t> rooms) {
  if (t.columns.size() < columns + rooms.size()) t.columns.resize(columns + rooms.size());
  for (std::size_t i = 0; i < rooms.size(); ++i)
    t.columns[columns + i].resize_for_overwrite(whole_lines(rooms[i]));
}

PENSTOCK_INLINE void simulated::session::wait(transfer& t) { std::this_thread::sleep_until(t.done); }

PENSTOCK_INLINE std::string simulated::describe() const {
  return detail::text({"simulated accelerator (", options_.step.count(), " us a step)"});
}

PENSTOCK_INLINE void simulated::step() const {
  const auto now = clock::now();
  if (account_->steps++ == 0) account_->first = now;
  account_->busy += options_.step;
  account_->free_at = now + options_.step;
  std::this_thread::sleep_until(account_->free_at);
}

PENSTOCK_INLINE double simulated::stall() const {
  if (account_->steps == 0) return 0;
  const auto whole_time = account_->free_at - account_->first;
  if (whole_time <= clock::duration::zero()) return 0;
  return 1.0 - std::chrono::duration<double>(account_->busy) / std::chrono::duration<double>(whole_time);
}

}  // namespace penstock::inline v0_1
