// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/storage/cache/staging_reads.hpp>

#include <penstock/core/error.hpp>
#include <penstock/core/to_size.hpp>

#include <algorithm>
#include <utility>

namespace penstock::inline v0_1 {
namespace detail::staging {

PENSTOCK_INLINE staging_reads::staging_reads(const far_storage& far, std::size_t max_in_flight,
                                             std::size_t part)
    : far_(far), max_in_flight_(max_in_flight), part_(part) {
  if (!far.session.in_background()) threads_.emplace(far.session, far.names, max_in_flight);
}

PENSTOCK_INLINE void staging_reads::stop() noexcept { fail(nullptr); }
PENSTOCK_INLINE void staging_reads::fail(std::exception_ptr why) noexcept {
  {
    const std::scoped_lock lock(begin_mutex_);
    if (stopped_.exchange(true)) return;
    failed_ = std::move(why);
  }
  if (threads_) threads_->cancel();
  far_.session.end_reads();
}
PENSTOCK_INLINE void staging_reads::check_stop(std::string_view name) const {
  if (stopped_) throw error(errc::stopped, "staging was stopped").in_file(name);
}
PENSTOCK_INLINE void staging_reads::check_end() {
  const std::scoped_lock lock(begin_mutex_);
  if (failed_) std::rethrow_exception(failed_);
  if (stopped_)
    throw error(errc::stopped,
                "staging was stopped; what is there stays, and the next call of stage_to goes on");
}

PENSTOCK_INLINE staging_reads::memory staging_reads::take(bool waits) {
  std::unique_lock lock(mutex_);
  if (!waits && waiting_ != 0) return nullptr;
  if (waits) {
    ++waiting_;
    changed_.wait(lock, [this] { return !free_.empty() || made_ < max_in_flight_; });
    --waiting_;
  }
  if (!free_.empty()) {
    memory taken = std::move(free_.back());
    free_.pop_back();
    return taken;
  }
  if (made_ == max_in_flight_) return nullptr;
  memory made(new std::byte[part_]);
  ++made_;
  free_.reserve(max_in_flight_);  // so that giving back does not throw
  return made;
}
PENSTOCK_INLINE void staging_reads::give_back(memory room) noexcept {
  if (!room) return;
  const std::scoped_lock lock(mutex_);
  free_.push_back(std::move(room));
  changed_.notify_all();
}

PENSTOCK_INLINE void staging_reads::begin(const read_request& request, read_listener listener,
                                          std::string_view name) {
  // After `stop` has set the word no read begins, so it ends all of them.
  const std::scoped_lock lock(begin_mutex_);
  check_stop(name);
  if (threads_)
    threads_->read_many({&request, 1}, listener);
  else
    far_.session.read_many({&request, 1}, listener);
}

PENSTOCK_INLINE reads_in_order::~reads_in_order() {
  for (flight& one : flights_) {
    (void)wait(one);
    all_.give_back(std::move(one.room));
  }
  all_.give_back(std::move(given_out_));
}

PENSTOCK_INLINE bool reads_in_order::wait(const flight& one) const {
  std::unique_lock lock(all_.mutex_);
  all_.changed_.wait(lock, [&one] { return one.done; });
  return !one.failed;
}

PENSTOCK_INLINE void reads_in_order::begin_some() {
  while (next_ < end_) {
    staging_reads::memory room = all_.take(flights_.empty());
    if (!room) return;
    const std::size_t size = to_size(std::min<std::uint64_t>(all_.part(), end_ - next_));
    flight& one = flights_.emplace_back();
    one.all = &all_;
    one.room = std::move(room);
    one.size = size;
    const read_listener listener{&one, [](void* self, std::uint64_t, std::exception_ptr failed) noexcept {
                                   auto& ended = *static_cast<flight*>(self);
                                   staging_reads& all = *ended.all;
                                   const std::scoped_lock lock(all.mutex_);
                                   ended.failed = std::move(failed);
                                   ended.done = true;
                                   all.changed_.notify_all();
                                 }};
    try {
      all_.begin({id_, next_, {one.room.get(), size}, next_}, listener, name_);
    } catch (...) {
      all_.give_back(std::move(one.room));
      flights_.pop_back();
      throw;
    }
    next_ += size;
  }
}

PENSTOCK_INLINE std::optional<bytes_view> reads_in_order::next() {
  all_.give_back(std::exchange(given_out_, nullptr));
  begin_some();
  if (flights_.empty()) return std::nullopt;
  flight& first = flights_.front();
  if (!wait(first)) std::rethrow_exception(first.failed);
  given_out_ = std::move(first.room);
  const std::size_t size = first.size;
  flights_.pop_front();
  all_.count(size);
  return bytes_view(given_out_.get(), size);
}

}  // namespace detail::staging
}  // namespace penstock::inline v0_1
