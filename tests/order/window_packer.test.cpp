// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/order/window_packer.hpp>

#include "support/catch.hpp"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace window_packer_test {

namespace ps = penstock;

namespace {

ps::packed_window packed(const std::vector<std::uint64_t>& lengths, std::uint64_t capacity,
                         const ps::pack_options& options, std::uint64_t key = 1) {
  ps::window_packer packer(options);
  REQUIRE(packer.pack(lengths, capacity) == lengths.size());
  ps::packed_window made;
  packer.write(made, lengths, key);
  REQUIRE(made.rows() == packer.rows());
  REQUIRE(made.pieces.size() == packer.pieces());
  ps::window_packer counter(options);
  REQUIRE(counter.count(lengths, capacity) == lengths.size());
  REQUIRE(counter.rows() == made.rows());
  REQUIRE(counter.pieces() == made.pieces.size());
  return made;
}

}  // namespace

TEST_CASE("order/window_packer: the rows of a key are those of another in another order") {
  std::vector<std::uint64_t> lengths;
  for (std::uint64_t i = 0; i < 200; ++i) lengths.push_back(i % 23);
  const auto rows = [&](std::uint64_t key) {
    const ps::packed_window window = packed(lengths, 32, {}, key);
    std::vector<std::vector<std::uint32_t>> all;
    for (std::size_t r = 0; r < window.rows(); ++r) {
      all.emplace_back();
      for (std::size_t i = window.ends[r]; i < window.ends[r + 1]; ++i)
        all.back().push_back(window.pieces[i].place);
    }
    return all;
  };
  auto one = rows(1), two = rows(2);
  CHECK(one == rows(1));
  CHECK(one != two);
  std::sort(one.begin(), one.end());
  std::sort(two.begin(), two.end());
  CHECK(one == two);
  CHECK(ps::row_order_key(1, 2, 3) == ps::row_order_key(1, 2, 3));
  CHECK(ps::row_order_key(1, 2, 3) != ps::row_order_key(1, 2, 4));
}

TEST_CASE("order/window_packer: documents stand one behind the other, each aligned") {
  const ps::packed_window window = packed({5, 3, 8, 1}, 16, {.how = ps::packing::in_order, .align = 4});
  const auto all_of = [&](const ps::packed_facts& facts) {
    std::vector<ps::packed_document> all;
    for (std::size_t r = 0; r < window.rows(); ++r)
      window.each_document(r, static_cast<std::uint32_t>(10 + r), facts, 16,
                           [&](const ps::packed_piece&, const ps::packed_document& d) { all.push_back(d); });
    return all;
  };
  ps::packed_facts facts{16, {.align = 4}, {}, {}};
  CHECK(all_of(facts) ==
        std::vector<ps::packed_document>{
            {10, 0, 5, 8, 0, 5}, {10, 8, 3, 4, 0, 3}, {11, 0, 8, 8, 0, 8}, {11, 8, 1, 4, 0, 1}});
  // The end of a row that is sliced is its last document's.
  facts.slices = 2;
  CHECK(all_of(facts) ==
        std::vector<ps::packed_document>{
            {10, 0, 5, 8, 0, 5}, {10, 8, 3, 8, 0, 3}, {11, 0, 8, 8, 0, 8}, {11, 8, 1, 8, 0, 1}});
}

TEST_CASE("order/window_packer: long samples") {
  const std::vector<std::uint64_t> lengths{3, 25, 10};
  ps::window_packer refusing(ps::pack_options{});
  CHECK(refusing.pack(lengths, 10) == 1);
  CHECK(refusing.count(lengths, 10) == 1);
  CHECK(packed(lengths, 10, {.overlong = ps::overlong::drop}).pieces.size() == 2);
  const auto cut = packed(lengths, 10, {.how = ps::packing::in_order, .overlong = ps::overlong::truncate});
  REQUIRE(cut.pieces.size() == 3);
  CHECK(cut.pieces[1].length == 10);
  const auto split = packed(lengths, 10, {.how = ps::packing::in_order, .overlong = ps::overlong::split});
  REQUIRE(split.pieces.size() == 5);
  CHECK(split.pieces[3].first == 20);
  CHECK(split.pieces[3].length == 5);
  CHECK(split.pieces[3].whole == 25);
}

TEST_CASE("order/window_packer: a window without samples has no rows") {
  CHECK(packed({}, 10, {}).rows() == 0);
  CHECK(packed({11, 12}, 10, {.overlong = ps::overlong::drop}).rows() == 0);
}

}  // namespace window_packer_test
