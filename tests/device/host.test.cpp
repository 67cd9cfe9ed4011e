// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/device/host.hpp>

#include "support/catch.hpp"

#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/pin_and_copy.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace ps = penstock;

static_assert(ps::device<ps::host> && !ps::host::session::copies, "the host is a device that copies nothing");
static_assert(ps::device_session<ps::host::session> && !ps::device<int>, "its session is a device session");

TEST_CASE("device/host: memory is aligned") {
  auto session = ps::host{}.connect();
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{64}, std::size_t{1000}}) {
    void* const memory = session.allocate(bytes);
    CHECK(reinterpret_cast<std::uintptr_t>(memory) % 64 == 0);
    session.deallocate(memory, bytes);
  }
  CHECK(ps::host{}.describe() == "host");
}

TEST_CASE("device/host: large memory begins at a huge page, and all of it can be written") {
  auto session = ps::host{}.connect();
  for (const std::size_t bytes :
       {(std::size_t{4} << 20) - 1, std::size_t{4} << 20, (std::size_t{6} << 20) + 5}) {
    void* const memory = session.allocate(bytes);
    const std::uintptr_t alignment = bytes < std::size_t{4} << 20 ? 64 : std::uintptr_t{2} << 20;
    CHECK(reinterpret_cast<std::uintptr_t>(memory) % alignment == 0);
    std::memset(memory, 1, bytes);
    session.deallocate(memory, bytes);
  }
}

TEST_CASE("device/host: batches are used where they were written") {
  const auto loader = ps::from({1, 2, 3, 4}) | ps::batch(2) | ps::pin_and_copy;
  std::vector<int> all;
  for (auto&& b : loader) {
    CHECK(b.device_data() == static_cast<const void*>(b.values().data()));
    for (const int x : b.values()) all.push_back(x);
  }
  CHECK(all == std::vector<int>{1, 2, 3, 4});
}
