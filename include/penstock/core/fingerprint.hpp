// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/random.hpp>

#include <concepts>
#include <string_view>
#include <type_traits>

namespace penstock::inline v0_1 {

/// A 64-bit hash of everything that determines a sequence of samples: texts and numbers, in order. Not
/// cryptographic: it detects accidental differences. Identical on every machine.
class fingerprint {
 public:
  template <class... Ts>
  constexpr fingerprint& add(const Ts&... values) {
    (add_one(values), ...);
    return *this;
  }
  [[nodiscard]] constexpr std::uint64_t value() const noexcept { return state_; }

 private:
  constexpr void word(std::uint64_t w) noexcept { state_ = mix64(state_ ^ mix64(w + 0x9e3779b97f4a7c15u)); }

  template <class T>
  constexpr void add_one(const T& value) {
    if constexpr (std::is_enum_v<T>) {
      word(static_cast<std::uint64_t>(value));
    } else if constexpr (std::integral<T>) {
      word(static_cast<std::uint64_t>(value));
    } else {
      add_text(std::string_view(value));
    }
  }
  constexpr void add_text(std::string_view text) noexcept {
    word(text.size());
    std::uint64_t packed = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
      packed = packed << 8 | static_cast<unsigned char>(text[i]);
      if (i % 8 == 7) {
        word(packed);
        packed = 0;
      }
    }
    word(packed);
  }

  std::uint64_t state_ = 0x70656e73746f636bu;
};

}  // namespace penstock::inline v0_1
