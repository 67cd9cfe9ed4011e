// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/message.hpp>
#include <penstock/storage/concepts.hpp>
#include <penstock/storage/session_view.hpp>
#include <penstock/storage/storage_counters.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

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
  /// How many reads it allows in flight now; 0: any number, or it does not say.
  [[nodiscard]] std::size_t max_in_flight() const;
  /// What it counted; zeros if it does not count.
  [[nodiscard]] storage_counters counters() const;
  /// The oldest of its reads, if it is an `observant_session` and has one.
  [[nodiscard]] std::optional<open_read> oldest_read() const;
  /// The name of an object, if it is a `naming_session`; otherwise its number.
  [[nodiscard]] std::string name(object_id id) const;
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
    std::size_t (*max_in_flight)(const void*) = nullptr;
    storage_counters (*counters)(const void*) = nullptr;
    std::optional<open_read> (*oldest_read)(const void*) = nullptr;
    std::string (*name)(const void*, object_id) = nullptr;
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
    if constexpr (limiting_session<S>)
      made.max_in_flight = [](const void* s) { return static_cast<std::size_t>(at<S>(s).max_in_flight()); };
    if constexpr (counting_session<S>) made.counters = [](const void* s) { return at<S>(s).counters(); };
    if constexpr (observant_session<S>)
      made.oldest_read = [](const void* s) { return at<S>(s).oldest_read(); };
    if constexpr (naming_session<S>)
      made.name = [](const void* s, object_id id) { return std::string(at<S>(s).name(id)); };
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

inline std::size_t fetched_session::max_in_flight() const {
  return calls_->max_in_flight == nullptr ? 0 : calls_->max_in_flight(self_);
}

inline storage_counters fetched_session::counters() const {
  return calls_->counters == nullptr ? storage_counters() : calls_->counters(self_);
}

inline std::optional<open_read> fetched_session::oldest_read() const {
  return calls_->oldest_read == nullptr ? std::nullopt : calls_->oldest_read(self_);
}

inline std::string fetched_session::name(object_id id) const {
  return calls_->name == nullptr ? detail::text({"object ", id}) : calls_->name(self_, id);
}

}  // namespace penstock::inline v0_1
