// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/device/pin_and_copy_stage.hpp>

#include <penstock/device/host.hpp>
#include <penstock/device/simulated.hpp>
#include <penstock/inspection/describe.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>

#include "support/catch.hpp"

#include <string>
#include <type_traits>

namespace pin_and_copy_stage_test {

namespace ps = penstock;

namespace {

/// A device with a spelling of its own, which is declared before the device is complete.
struct own_device {
  static const ps::pin_and_copy_stage<own_device> pin_and_copy;
  using session = ps::host::session;
  [[nodiscard]] session connect() const { return {}; }
  [[nodiscard]] std::string describe() const { return "device " + std::to_string(number); }
  int number = 7;
};
inline constexpr ps::pin_and_copy_stage<own_device> own_device::pin_and_copy{};

}  // namespace

TEST_CASE("device/pin_and_copy_stage: a device has a spelling of its own, with and without options") {
  const auto batches = ps::from({1, 2, 3, 4}) | ps::batch(2);
  const auto plain = batches | own_device::pin_and_copy;
  const auto given = batches | own_device::pin_and_copy(own_device{9});
  static_assert(std::is_same_v<decltype(plain), decltype(given)>);
  CHECK(ps::describe(plain).find("\ndevice: device 7\n") != std::string::npos);
  CHECK(ps::describe(given).find("\ndevice: device 9\n") != std::string::npos);
  int sum = 0;
  for (auto&& b : given)
    for (const int x : b) sum += x;
  CHECK(sum == 10);
}

TEST_CASE("device/pin_and_copy_stage: another device can be given to any of them") {
  const auto stage = own_device::pin_and_copy(ps::host{});
  static_assert(std::is_same_v<std::remove_const_t<decltype(stage)>, ps::pin_and_copy_stage<ps::host>>);
  CHECK(stage.describe() == "pin_and_copy(host)");
  CHECK(own_device::pin_and_copy(ps::simulated()).describe().starts_with("pin_and_copy(simulated"));
}

}  // namespace pin_and_copy_stage_test
