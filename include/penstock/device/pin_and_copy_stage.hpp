// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/light_tuple.hpp>
#include <penstock/core/message.hpp>
#include <penstock/core/mistake.hpp>
#include <penstock/core/pipe.hpp>
#include <penstock/device/concepts.hpp>

namespace penstock::inline v0_1 {

namespace mistakes {

struct copy_without_batch : about_expression {
  static consteval void explain(auto reached) {
    static_assert(never<decltype(reached)>,
                  "penstock: pin_and_copy copies batches; write batch(n) before it");
  }
};

}  // namespace mistakes

/// Delivers batches where they will be used. Plain `pin_and_copy` is for the host: slots come from its memory
/// and nothing is copied; `pin_and_copy(device)` takes slot memory from the device's session (pinned for
/// CUDA) and copies each batch ahead of the consumer.
///
/// Keeps all five guarantees. Write it after `batch`. `describe` names the device.
template <class Device>
struct pin_and_copy_stage {
  static_assert(device<Device>, "penstock: pin_and_copy is given a device, see device/concepts.hpp");
  using penstock_part = device_tag;
  static constexpr std::string_view stage_name = "pin_and_copy";
  using device_type = Device;
  /// Whether `on_device` can stand behind it.
  static constexpr bool computes = computing_session<typename Device::session>;
  Device device_value{};

  template <device Other>
  [[nodiscard]] constexpr pin_and_copy_stage<Other> operator()(Other other) const {
    return {other};
  }
  /// A mistake, which gets a sentence.
  template <class... Given>
    requires(sizeof...(Given) != 1 || !(device<std::remove_cvref_t<Given>> && ...))
  [[nodiscard]] constexpr pin_and_copy_stage operator()(Given&&...) const {
    static_assert(never<light_tuple<Given...>>,
                  "penstock: pin_and_copy is given a device, or nothing and no parentheses; write "
                  "pin_and_copy for batches in host memory, or pin_and_copy(cuda{.device = 0})");
    return *this;
  }
  [[nodiscard]] std::string describe() const {
    return detail::text({"pin_and_copy(", device_value.describe(), ")"});
  }
  template <class Context>
  static consteval auto diagnose() {
    return mistakes::unless<Context::facts.batched, mistakes::copy_without_batch>{};
  }
};

}  // namespace penstock::inline v0_1
