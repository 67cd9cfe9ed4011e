// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/base/owned.hpp>
#include <penstock/storage/concepts.hpp>
#include <penstock/storage/session_adaptor.hpp>
#include <penstock/storage/session_report.hpp>
#include <penstock/storage/session_view.hpp>
#include <penstock/storage/threaded_reads.hpp>

#include <cstddef>
#include <memory>
#include <span>
#include <utility>

namespace penstock::inline v0_1::detail {

/// A session whose reads in the background are those of threads; everything else is that of the session
/// inside, which has `names()` for errors.
template <class Inner>
class threaded_session : public session_adaptor<threaded_session<Inner>, Inner> {
  struct state : unmovable {
    template <class... Args>
    explicit state(std::size_t max_threads, Args&&... args)
        : inner(std::forward<Args>(args)...), threads(session_view(inner), inner.names(), max_threads) {}
    ~state() { end(); }
    void end() noexcept {
      threads.cancel();
      penstock::end_reads(inner);
    }

    Inner inner;
    threaded_reads threads;
  };

 public:
  template <class... Args>
  explicit threaded_session(std::size_t max_threads, Args&&... args)
      : state_(std::make_unique<state>(max_threads, std::forward<Args>(args)...)) {}

  void read_many(std::span<const read_request> requests, read_listener listener) const noexcept {
    state_->threads.read_many(requests, listener);
  }
  void cancel() const noexcept {
    state_->threads.cancel();
    cancel_reads(state_->inner);
  }
  void end_reads() const noexcept { state_->end(); }
  [[nodiscard]] session_report limits() const { return limits_of(state_->inner); }
  [[nodiscard]] Inner& inside() const noexcept { return state_->inner; }

 private:
  std::unique_ptr<state> state_;
};

}  // namespace penstock::inline v0_1::detail
