// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/storage/concepts.hpp>

#include <cstdint>
#include <span>

namespace penstock::inline v0_1 {
namespace detail {

/// The background reads of a session, type-erased; empty for a session that has none. The session must
/// outlive it.
class background_view {
 public:
  background_view() = default;
  template <storage_session S>
  explicit background_view(S& session) noexcept : session_(&session), calls_(calls_of<S>()) {}

  [[nodiscard]] explicit operator bool() const noexcept { return calls_ != nullptr; }
  void read_many(std::span<const read_request> requests, read_listener listener) const {
    calls_->read_many(session_, requests, listener);
  }
  void cancel() const noexcept { calls_->cancel(session_); }
  /// Whether it is an `abandoning_session`; only those may use `abandon`.
  [[nodiscard]] bool abandons() const noexcept { return calls_->abandon != nullptr; }
  void abandon(std::uint64_t tag) const noexcept { calls_->abandon(session_, tag); }

 private:
  struct calls {
    void (*read_many)(void*, std::span<const read_request>, read_listener);
    void (*cancel)(void*) noexcept;
    void (*abandon)(void*, std::uint64_t tag) noexcept;
  };
  template <class S>
  [[nodiscard]] static constexpr auto abandon_of() noexcept -> void (*)(void*, std::uint64_t) noexcept {
    if constexpr (abandoning_session<S>)
      return [](void* s, std::uint64_t tag) noexcept { static_cast<S*>(s)->abandon(tag); };
    else
      return nullptr;
  }
  template <class S>
  [[nodiscard]] static const calls* calls_of() noexcept {
    if constexpr (background_session<S>) {
      static constexpr calls made{
          [](void* s, std::span<const read_request> requests, read_listener listener) {
            static_cast<S*>(s)->read_many(requests, listener);
          },
          [](void* s) noexcept { static_cast<S*>(s)->cancel(); }, abandon_of<S>()};
      return &made;
    } else {
      return nullptr;
    }
  }

  void* session_ = nullptr;
  const calls* calls_ = nullptr;
};

}  // namespace detail
}  // namespace penstock::inline v0_1
