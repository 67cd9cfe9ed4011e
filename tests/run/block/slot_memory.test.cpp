// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/run/block/slot_memory.hpp>

#include <penstock/core/destination.hpp>
#include <penstock/device/host.hpp>

#include "support/catch.hpp"
#include "support/collect.hpp"

#include <cstdint>
#include <utility>

namespace slot_memory_test {

namespace ps = penstock;
using namespace penstock_test;

namespace {

/// A device that reads host memory directly.
struct pinning : ps::host::session {
  static constexpr ps::memory_space space = ps::memory_space::pinned;
};

}  // namespace

TEST_CASE("run/slot_memory: a device declares whose memory it gives; by default the host's") {
  ps::host::session host;
  pinning device;
  ps::memory_account account;
  CHECK(ps::slot_memory(host, account).space() == ps::memory_space::host);
  ps::slot_memory pinned(device, account), other;
  CHECK(pinned.space() == ps::memory_space::pinned);
  other = std::move(pinned);
  CHECK(other.space() == ps::memory_space::pinned);
  CHECK(ps::slot_memory(std::move(other)).space() == ps::memory_space::pinned);
}

TEST_CASE("run/slot_memory: grows, keeps the bytes it should, and is accounted for") {
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

}  // namespace slot_memory_test
