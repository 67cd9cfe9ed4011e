// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/run/block/slot_memory.hpp>

#include <penstock/device/host.hpp>

#include "support/catch.hpp"
#include "support/collect.hpp"

#include <cstdint>
#include <utility>

namespace ps = penstock;
using namespace penstock_test;

TEST_CASE("run/slot_memory: grows, keeps what it is told to keep, and is accounted for") {
  ps::host::session session;
  ps::memory_account account;
  {
    ps::slot_memory memory(session, account);
    CHECK(memory.data() == nullptr);
    memory.reserve(100);
    CHECK(account.bytes == 100);
    CHECK(reinterpret_cast<std::uintptr_t>(memory.data()) % 64 == 0);
    memory.data()[99] = std::byte{7};
    memory.reserve(50);
    CHECK(account.bytes == 100);
    memory.reserve(1000, 100);
    CHECK(memory.data()[99] == std::byte{7});
    CHECK(account.bytes == memory.capacity());
    ps::slot_memory other(std::move(memory));
    CHECK(memory.data() == nullptr);
    CHECK(other.capacity() == account.bytes);
  }
  CHECK(account.bytes == 0);
}
