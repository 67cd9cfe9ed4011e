// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/run/block/column.hpp>

#include <penstock/core/collate.hpp>
#include <penstock/core/destination.hpp>
#include <penstock/core/strided_view.hpp>
#include <penstock/core/tensor.hpp>
#include <penstock/device/host.hpp>

#include "support/catch.hpp"
#include "support/collect.hpp"
#include "support/deadline.hpp"

#include <array>
#include <cstddef>
#include <vector>

namespace column_test {

namespace ps = penstock;
using namespace penstock_test;

namespace {

using session = ps::host::session;
using stacked = ps::flexible_column<int, ps::stack_policy>;

struct fixture {
  session device;
  ps::memory_account account;
};

/// A device that reads host memory directly.
struct pinning : session {
  static constexpr ps::memory_space space = ps::memory_space::pinned;
};
/// An expression that records its destination.
struct asking {
  using unfinished = void;
  using value_type = int;
  ps::destination<int>* told;
  [[nodiscard]] ps::extents shape() const { return ps::extents(2, 3); }
  void write_to(const ps::destination<int>& into) const { *told = into; }
};
struct asking_always : asking {
  static constexpr ps::extents static_shape{2, 3};
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

TEST_CASE("run/column: stacked values are set aside until the shape is known, then written in place") {
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

TEST_CASE("run/column: the most frequent shape is the expected one, and is found quickly") {
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
  CHECK(odd_one(100) == 0);  // forty slots have length six
  column.begin(300'000);
  for (std::size_t i = 0; i < 300'000; ++i)
    column.write(i, ps::tensor_view<const int>(nullptr, ps::extents(i, std::uint64_t{0})));
  CHECK(odd_one(300'000) == 1);  // all slots differ
}

TEST_CASE("run/column: rows are moved between blocks, in place or aside") {
  fixture f;
  stacked source(f.device, f.account), target(f.device, f.account);
  source.expect(ps::extents(2));
  source.begin(2);
  source.write(0, std::vector<int>{1, 2});     // written in place
  source.write(1, std::vector<int>{3, 4, 5});  // set aside
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

TEST_CASE("run/column: an expression knows its destination, and whose memory that is") {
  pinning device;
  ps::memory_account account;
  ps::destination<int> told;
  const auto check = [&](auto column, const auto& value, const ps::element_strides& strides, bool knows) {
    column.begin(2);
    column.write(1, value);
    CHECK(told.shape() == ps::extents(2, 3));
    CHECK(told.strides() == strides);
    CHECK(told.space() == (knows ? ps::memory_space::pinned : ps::memory_space::host));
    column.blank(0);
    column.finish(0, 2, 2, true);
    CHECK(column.view(0, 2).shape().drop_front().elements() == 6);
    column.expect(ps::extents(2, 3));
    column.begin(2);
    column.write(1, value);
    CHECK(told.space() == ps::memory_space::pinned);
    CHECK(told.strides() == strides);
    CHECK(reinterpret_cast<const std::byte*>(told.data()) - column.bytes(0, 2).data() ==
          static_cast<std::ptrdiff_t>(column.bytes(0, 2).size() / 2));
  };
  using channels = ps::channels_first_policy;
  using rows = ps::pitched_policy<32>;
  const asking some{&told};
  const asking_always fixed{{&told}};
  check(ps::flexible_column<int, ps::stack_policy>(device, account), some, {3, 1}, false);
  check(ps::flexible_column<int, rows>(device, account), some, {8, 1}, false);
  check(ps::fixed_column<asking_always>(device, account), fixed, {3, 1}, true);
  check(ps::fixed_column<asking_always, rows>(device, account), fixed, {8, 1}, true);
  ps::flexible_column<int, channels> refuses(device, account);
  refuses.begin(1);
  CHECK_THAT(error_of([&] { refuses.write(0, some); }), contains("channels_first takes"));
}

TEST_CASE("run/column: blocks of several batches, rows that move, and batches without samples have strides") {
  fixture f;
  using list = std::array<short, 3>;
  ps::fixed_column<list, ps::pitched_policy<16>> lists(f.device, f.account), other(f.device, f.account);
  lists.begin(4);
  for (std::size_t i = 0; i < 4; ++i) lists.write(i, list{static_cast<short>(i), 1, 2});
  CHECK(lists.view(2, 2)(1, 0) == 3);
  CHECK(lists.view(2, 2).strides() == ps::element_strides{8, 1});
  CHECK(lists.bytes(2, 2).size() == 32);
  other.begin(1);
  other.grow(2, 0);
  other.copy(0, lists, 1, 2);
  CHECK(other.view(0, 2)(1, 0) == 2);
  lists.finish(2, 2, 1);
  CHECK(lists.view(2, 2)(1, 1) == 0);
  ps::flexible_column<int, ps::pitched_policy<16>> none(f.device, f.account);
  none.begin(2);
  none.finish(0, 2, 0);
  CHECK(none.view(0, 2).shape() == ps::extents(2, 0));
  CHECK(none.bytes(0, 2).empty());
  ps::flexible_column<int, ps::channels_first_policy> holes(f.device, f.account);
  holes.begin(2);
  holes.blank(0);
  holes.blank(1);
  holes.finish(0, 2, 2, true);
  CHECK(holes.view(0, 2).shape() == ps::extents(2, 0));
}

TEST_CASE("run/column: a round without values has the shape of the lead, whatever was expected") {
  fixture f;
  stacked column(f.device, f.account);
  column.expect(ps::extents(7));
  column.begin(2);
  column.lead(ps::extents(2, 3));
  column.finish(0, 2, 0);
  CHECK(column.view(0, 2).shape() == ps::extents(2, 2, 3));
  CHECK(column.view(0, 2)[1].data()[5] == 0);
  CHECK(column.bytes(0, 2).size() == 48);
  column.begin(1);
  column.write(0, std::vector<int>(4, 1));
  column.finish(0, 1, 1);
  CHECK(column.known_shape() == ps::extents(4));
  column.begin(2);
  column.finish(0, 2, 0);  // nothing tells its shape
  CHECK(column.view(0, 2).shape() == ps::extents(2, 0));
  CHECK(column.bytes(0, 2).empty());
  ps::flexible_column<int, ps::pad_policy> padded(f.device, f.account);
  padded.begin(2);
  padded.lead(ps::extents(5, 3));
  padded.finish(0, 2, 0);
  CHECK(padded.view(0, 2).shape() == ps::extents(2, 0, 3));
  CHECK(padded.view(0, 2)[1].empty());
  CHECK(padded.view(0, 2).mask().shape() == ps::extents(2, 0));
}

TEST_CASE("run/column: arranged rows are moved between blocks, in place or aside") {
  fixture f;
  using pitched = ps::flexible_column<int, ps::pitched_policy<16>>;
  for (const bool source_knows : {false, true})
    for (const bool target_knows : {false, true}) {
      pitched source(f.device, f.account), target(f.device, f.account);
      const ps::extents shape(2, 3);
      if (source_knows) source.expect(shape);
      if (target_knows) target.expect(shape);
      const int values[] = {1, 2, 3, 4, 5, 6};
      source.begin(2);
      source.write(0, ps::tensor_view<const int>(values, shape));
      source.write(1, ps::tensor_view<const int>(values, shape));
      target.begin(1);
      target.copy(0, source, 1, 1);
      target.finish(0, 1, 1);
      CHECK(target.view(0, 1).shape() == ps::extents(1, 2, 3));
      CHECK(target.view(0, 1).row_pitch() == 16);
      CHECK(target.view(0, 1)(0, 1, 2) == 6);
      CHECK(target.bytes(0, 1)[12] == std::byte{0});
    }
}

}  // namespace column_test
