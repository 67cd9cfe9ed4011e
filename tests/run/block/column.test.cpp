// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/run/block/column.hpp>

#include <penstock/core/collate.hpp>
#include <penstock/device/host.hpp>

#include "support/catch.hpp"
#include "support/collect.hpp"
#include "support/deadline.hpp"

#include <array>
#include <vector>

namespace ps = penstock;
using namespace penstock_test;

namespace {

using session = ps::host::session;
using stacked = ps::flexible_column<int, ps::stack_policy>;

struct fixture {
  session device;
  ps::memory_account account;
};

}  // namespace

TEST_CASE("run/column: fixed values are written in place, and padding is zero") {
  fixture f;
  ps::fixed_column<int> column(f.device, f.account);
  column.begin(4);
  for (std::size_t i = 0; i < 3; ++i) column.write(i, static_cast<int>(i) + 5);
  column.finish(0, 4, 3);
  const auto view = column.view(0, 4);
  CHECK(std::vector<int>(view.begin(), view.end()) == std::vector<int>{5, 6, 7, 0});
  CHECK(column.bytes(1, 2).size() == 8);
  ps::fixed_column<std::array<short, 3>> arrays(f.device, f.account);
  arrays.begin(2);
  arrays.write(1, std::array<short, 3>{1, 2, 3});
  CHECK(arrays.view(0, 2).shape() == ps::extents(2, 3));
  CHECK(arrays.view(0, 2)[1].data()[2] == 3);
}

TEST_CASE("run/column: stacked values go aside until the shape is known, then in place") {
  fixture f;
  stacked column(f.device, f.account);
  for (int round = 0; round < 3; ++round) {
    column.begin(3);
    for (int i = 0; i < 3; ++i)
      column.write(static_cast<std::size_t>(i), std::vector<int>(4, round * 10 + i));
    column.finish(0, 3, 3);
    const auto view = column.view(0, 3);
    CHECK(view.shape() == ps::extents(3, 4));
    for (int i = 0; i < 3; ++i) CHECK(view[static_cast<std::size_t>(i)].data()[3] == round * 10 + i);
  }
  column.begin(2);
  column.write(0, std::vector<int>(4));
  column.write(1, std::vector<int>(5));
  try {
    column.finish(0, 2, 2);
    FAIL("unequal shapes were stacked");
  } catch (const ps::slot_error& e) {
    CHECK(e.slot == 1);
    CHECK(e.what.code() == ps::errc::shape);
  }
}

TEST_CASE("run/column: the shape that most slots have is the measure, found soon among many") {
  const deadline guard("the lead of many shapes");
  fixture f;
  stacked column(f.device, f.account);
  const auto odd_one = [&](std::size_t slots) {
    column.choose_lead(slots);
    try {
      column.finish(0, slots, slots, true);
    } catch (const ps::slot_error& e) {
      return e.slot;
    }
    return std::uint64_t{slots};
  };
  column.begin(100);
  for (std::size_t i = 0; i < 100; ++i)
    column.write(i, std::vector<int>(i < 70 && i >= 40 ? 5 : i < 30 ? 4 : 6));
  CHECK(odd_one(100) == 0);  // forty are of six
  column.begin(300'000);
  for (std::size_t i = 0; i < 300'000; ++i)
    column.write(i, ps::tensor_view<const int>(nullptr, ps::extents(i, std::uint64_t{0})));
  CHECK(odd_one(300'000) == 1);  // all differ
}

TEST_CASE("run/column: rows are moved between blocks, in place or aside") {
  fixture f;
  stacked source(f.device, f.account), target(f.device, f.account);
  source.expect(ps::extents(2));
  source.begin(2);
  source.write(0, std::vector<int>{1, 2});     // in place
  source.write(1, std::vector<int>{3, 4, 5});  // aside
  target.begin(2);
  target.copy(0, source, 1, 1);
  target.copy(1, source, 1, 1);
  target.finish(0, 2, 2);
  CHECK(target.view(0, 2)[1].data()[2] == 5);
  ps::flexible_column<int, ps::ragged_policy> list(f.device, f.account);
  list.begin(2);
  list.write(0, std::vector<int>{7});
  list.write(1, std::vector<int>{});
  list.finish(0, 2, 2);
  CHECK(list.view(0, 2)[0][0] == 7);
  CHECK(list.view(0, 2)[1].empty());
}
