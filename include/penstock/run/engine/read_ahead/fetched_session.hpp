// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/message.hpp>
#include <penstock/storage/concepts.hpp>
#include <penstock/storage/session_report.hpp>
#include <penstock/storage/session_view.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>

namespace penstock::inline v0_1 {

/// A session to fetch bytes from, type-erased.
class fetched_session {
 public:
  template <storage_session S>
  explicit fetched_session(S& session) noexcept : self_(&session), view_(session), calls_(&calls_of<S>) {}

  [[nodiscard]] const void* self() const noexcept { return self_; }
  [[nodiscard]] session_view view() const noexcept { return view_; }
  /// Whether it is a `latent_session`.
  [[nodiscard]] bool has_latency() const noexcept { return calls_->has_latency; }
  [[nodiscard]] session_report report() const { return calls_->report(self_); }
  [[nodiscard]] session_report limits() const { return calls_->limits(self_); }
  /// Whether it is a `background_session`; only those may use `read_many`.
  [[nodiscard]] bool in_background() const noexcept { return calls_->read_many != nullptr; }
  void read_many(std::span<const read_request> requests, read_listener listener) const {
    calls_->read_many(self_, requests, listener);
  }
  /// Ends its reads; where they run in the calling threads, their waits for another attempt, if there are
  /// any.
  void cancel() const noexcept { calls_->cancel(self_); }

 private:
  struct calls {
    bool has_latency = false;
    session_report (*report)(const void*) = nullptr;
    session_report (*limits)(const void*) = nullptr;
    void (*read_many)(const void*, std::span<const read_request>, read_listener) = nullptr;
    void (*cancel)(const void*) noexcept = [](const void*) noexcept {};
  };
  template <class S>
  [[nodiscard]] static S& at(const void* session) noexcept {
    return *static_cast<S*>(const_cast<void*>(session));
  }
  template <class S>
  [[nodiscard]] static constexpr calls made_for() noexcept {
    calls made;
    made.has_latency = latent_session<S>;
    made.report = [](const void* s) { return report_of(at<S>(s)); };
    made.limits = [](const void* s) { return limits_of(std::as_const(at<S>(s))); };
    if constexpr (background_session<S>) {
      made.read_many = [](const void* s, std::span<const read_request> requests, read_listener listener) {
        at<S>(s).read_many(requests, listener);
      };
      made.cancel = [](const void* s) noexcept { at<S>(s).cancel(); };
    } else if constexpr (requires(S& s) { s.cancel_waits(); }) {
      made.cancel = [](const void* s) noexcept { at<S>(s).cancel_waits(); };
    }
    return made;
  }
  template <class S>
  static constexpr calls calls_of = made_for<S>();

  const void* self_;
  session_view view_;
  const calls* calls_;
};

}  // namespace penstock::inline v0_1
