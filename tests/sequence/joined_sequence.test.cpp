// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/sequence/joined_sequence.hpp>

#include "support/catch.hpp"
#include "support/token_documents.hpp"

#include <array>

namespace joined_sequence_test {

namespace ps = penstock;
using namespace penstock_test;

namespace {

using tokens = std::vector<std::int32_t>;

template <class... Vs>
auto joined(ps::buffer& memory, Vs&&... parts) {
  return ps::joined_sequence<std::int32_t, ps::detail::joined_part<Vs&&>...>(
      {}, {}, memory, ps::detail::joined_part<Vs&&>(std::forward<Vs>(parts))...);
}

}  // namespace

TEST_CASE("sequence/joined_sequence: what is about to go is moved, and what stays is referred to") {
  ps::buffer memory;
  tokens stays{1, 2}, goes{3};
  const std::array<std::int32_t, 2> fixed{4, 5};
  const auto all = joined(memory, stays, std::move(goes), std::array<std::int32_t, 2>{6, 7}, fixed);
  CHECK(goes.empty());
  stays[0] = 9;
  CHECK(all.shape() == ps::extents(7));
  CHECK(tokens_of(all) == token_list{9, 2, 3, 6, 7, 4, 5});
  // It can be moved with what it owns.
  const auto moved = std::move(all);
  CHECK(tokens_of(moved) == token_list{9, 2, 3, 6, 7, 4, 5});
  CHECK(memory.size() == 7 * sizeof(std::int32_t));
}

TEST_CASE("sequence/joined_sequence: a mask of runs, some of them empty, to places of every kind") {
  ps::buffer memory;
  using mask = ps::joined_mask<5>;
  const mask runs(std::array<mask::run, 5>{{{0, 1}, {2, 0}, {0, 1}, {3, 1}, {0, 0}}}, memory);
  CHECK(runs.shape() == ps::extents(5));
  CHECK(tokens_of(runs) == token_list{0, 0, 1, 1, 1});
  std::vector<std::uint8_t> room(15, 7);
  runs.write_to(ps::destination<std::uint8_t>(room.data(), ps::extents(5), ps::element_strides{3}));
  CHECK(room == std::vector<std::uint8_t>{0, 7, 7, 0, 7, 7, 1, 7, 7, 1, 7, 7, 1, 7, 7});
  const mask none(std::array<mask::run, 5>{}, memory);
  CHECK(tokens_of(none).empty());
}

}  // namespace joined_sequence_test
