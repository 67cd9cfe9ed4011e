// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/guarantee.hpp>
#include <penstock/core/name.hpp>
#include <penstock/core/part.hpp>

#include <span>

namespace penstock::inline v0_1 {

/// What a wrong expression yields after its one error: it swallows the rest of the statement and of the loops
/// over it.
struct ill_formed {
  using penstock_part = poison_tag;
  /// In the place of a view of a batch.
  struct view : std::span<int> {
    [[nodiscard]] std::span<int> flat() const { return {}; }
    template <class... Is>
    [[nodiscard]] int& operator()(Is...) const {
      return *data();
    }
  };
  /// In the place of a batch; and, in a loop without batches, of a number.
  struct batch {
    [[nodiscard]] std::size_t size() const { return 0; }
    [[nodiscard]] std::size_t valid_size() const { return 0; }
    [[nodiscard]] int* begin() const { return nullptr; }
    [[nodiscard]] int* end() const { return nullptr; }
    [[nodiscard]] view values() const { return {}; }
    template <std::size_t I = 0>
    [[nodiscard]] view device_view() const {
      return {};
    }
    operator int() const { return 0; }  // NOLINT: implicit, so that a sum over samples compiles
  };
  struct epoch_range {
    [[nodiscard]] ill_formed* begin() const { return nullptr; }
    [[nodiscard]] ill_formed* end() const { return nullptr; }
  };
  template <guarantee>
  static constexpr bool keeps = true;
  template <class... Ts>
  [[nodiscard]] ill_formed open(Ts&&...) const {
    return {};
  }
  template <class... Ts>
  [[nodiscard]] epoch_range epochs(Ts&&...) const {
    return {};
  }
  template <class... Ts>
  [[nodiscard]] ill_formed epoch(Ts&&...) const {
    return {};
  }
  [[nodiscard]] batch* next() const { return nullptr; }
  [[nodiscard]] batch* begin() const { return nullptr; }
  [[nodiscard]] batch* end() const { return nullptr; }
};

template <fixed_string Name>
[[nodiscard]] ill_formed::view device_view(const ill_formed::batch&) {
  return {};
}
template <fixed_string Name>
[[nodiscard]] const void* device_data(const ill_formed::batch&) {
  return nullptr;
}
template <fixed_string Name>
[[nodiscard]] ill_formed::view get(const ill_formed::batch&) {
  return {};
}
template <std::size_t I>
[[nodiscard]] ill_formed::view get(const ill_formed::batch&) {
  return {};
}

}  // namespace penstock::inline v0_1
