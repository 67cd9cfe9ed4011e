// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/run/block/block.hpp>

#include <penstock/device/host.hpp>

#include "support/catch.hpp"
#include "support/collect.hpp"

#include <cstddef>
#include <exception>
#include <stdexcept>
#include <thread>
#include <vector>

namespace block_test {

namespace ps = penstock;
using namespace penstock_test;

namespace {

struct nothing {
  template <class Session>
  nothing(Session&, ps::memory_account&) {}
};
struct identity_binding {};
using block = ps::block_of<nothing, identity_binding, ps::host::session::transfer, nothing>;

}  // namespace

TEST_CASE("run/block: rows know their positions, from their part's cut or from a list") {
  ps::host::session session;
  ps::memory_account account;
  block p(session, account);
  p.batches.resize(2);
  p.batches[0].view = ps::step_view(10, 3, 1, 0, 3, 3);
  p.batches[1].view = ps::step_view(100, 2, 1, 0, 2, 2);
  p.batches[1].first = 3;
  CHECK(p.index(0) == 10);
  CHECK(p.index(2) == 12);
  CHECK(p.index(3) == 100);
  p.listed = true;
  p.indices = {9, 8, 7, 6};
  CHECK(p.index(3) == 6);
}

TEST_CASE("run/block: of several failures the lowest row's is kept") {
  ps::host::session session;
  ps::memory_account account;
  block p(session, account);
  const auto failure = [](const char* text) { return std::make_exception_ptr(std::runtime_error(text)); };
  p.fail(5, failure("five"));
  p.fail(9, failure("nine"));
  p.fail(2, failure("two"));
  CHECK(p.bad_slot == 2);
  CHECK_THROWS_WITH(std::rethrow_exception(p.what), "two");
  p.clear_failure();
  CHECK(p.what == nullptr);
}

TEST_CASE("run/block: the pool reuses the latest returned block, and respects its limit") {
  ps::host::session session;
  ps::memory_account account;
  ps::block_pool pool(2, [](ps::block* b) noexcept { delete static_cast<block*>(b); });
  CHECK(pool.take() == nullptr);
  const auto make = [&] { return new block(session, account); };
  block* const a = pool.make(make);
  block* const b = pool.make(make);
  CHECK(pool.made() == pool.maximum());
  CHECK(pool.out() == 2);
  pool.give_back(a);
  std::jthread([&] { pool.give_back(b); }).join();
  CHECK(pool.take() == b);
  CHECK(pool.take() == a);
  CHECK(pool.take() == nullptr);
  std::size_t free = 0;
  pool.see_free([&](ps::block&) { ++free; });
  CHECK(free == 0);
  a->shares = 3;
  CHECK_FALSE(a->release(2));
  CHECK(a->release(1));
}

TEST_CASE("run/block: a pool for a device takes the block that has been free for longest") {
  ps::host::session session;
  ps::memory_account account;
  ps::block_pool pool(
      3, [](ps::block* b) noexcept { delete static_cast<block*>(b); }, true);
  const auto make = [&] { return new block(session, account); };
  block* const a = pool.make(make);
  block* const b = pool.make(make);
  for (int round = 0; round < 3; ++round) {
    pool.give_back(b);
    pool.give_back(a);
    std::vector<ps::block*> free;
    pool.see_free([&](ps::block& one) { free.push_back(&one); });
    CHECK(free == std::vector<ps::block*>{b, a});
    CHECK(pool.take() == b);
    CHECK(pool.take() == a);
    CHECK(pool.take() == nullptr);
  }
}

}  // namespace block_test
