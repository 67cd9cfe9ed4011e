// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/bytes.hpp>

#include <concepts>
#include <memory>
#include <string_view>
#include <utility>

namespace penstock::inline v0_1 {

/// Finds out from an object's bytes whether it is the right one, such as by a list of hashes. Any number of
/// threads may call `begin` at once, and each check that it begins is used by one thread.
///   begin(name)    a check of the object with this name; may throw, such as for a name that it does not know
///   add(bytes)   the object's next bytes
///   finish()     all bytes were added; throws if they, or their number, are wrong
///
///     struct even_bytes {
///       struct running {
///         std::uint64_t size = 0;
///         void add(bytes_view bytes) { size += bytes.size(); }
///         void finish() const {
///           if (size % 2 != 0) throw error(errc::checksum, "an odd number of bytes");
///         }
///       };
///       [[nodiscard]] running begin(std::string_view) const { return {}; }
///     };
///     static_assert(object_check<even_bytes>, "begin, add and finish are there");
template <class C>
concept object_check = requires(const C& check, std::string_view name, bytes_view bytes) {
  requires std::movable<decltype(check.begin(name))>;
  requires requires(decltype(check.begin(name))& running) {
    running.add(bytes);
    running.finish();
  };
};

namespace detail {

/// An `object_check` whose type is erased; empty without one. The check must outlive it.
class check_view {
  using owned_state = std::unique_ptr<void, void (*)(void*) noexcept>;
  struct calls {
    owned_state (*begin)(const void* check, std::string_view name);
    void (*add)(void* running, bytes_view bytes);
    void (*finish)(void* running);
  };

 public:
  check_view() = default;
  template <object_check C>
  explicit check_view(const C& check) noexcept : check_(&check), calls_(&calls_of<C>) {}
  [[nodiscard]] explicit operator bool() const noexcept { return calls_ != nullptr; }

  /// The check of one object; that of an empty view accepts all bytes.
  class running {
   public:
    running(const check_view& all, std::string_view name) : calls_(all.calls_) {
      if (calls_ != nullptr) state_ = calls_->begin(all.check_, name);
    }
    void add(bytes_view bytes) {
      if (calls_ != nullptr) calls_->add(state_.get(), bytes);
    }
    void finish() {
      if (calls_ != nullptr) calls_->finish(state_.get());
    }

   private:
    const calls* calls_;
    owned_state state_{nullptr, nullptr};
  };

 private:
  template <class C>
  [[nodiscard]] static constexpr calls made_for() noexcept {
    using state = decltype(std::declval<const C&>().begin(std::string_view()));
    return {[](const void* check, std::string_view name) {
              return owned_state(new state(static_cast<const C*>(check)->begin(name)),
                                 [](void* running) noexcept { delete static_cast<state*>(running); });
            },
            [](void* running, bytes_view bytes) { static_cast<state*>(running)->add(bytes); },
            [](void* running) { static_cast<state*>(running)->finish(); }};
  }
  template <class C>
  static constexpr calls calls_of = made_for<C>();

  const void* check_ = nullptr;
  const calls* calls_ = nullptr;
};

}  // namespace detail
}  // namespace penstock::inline v0_1
