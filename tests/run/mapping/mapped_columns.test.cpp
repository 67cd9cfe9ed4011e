// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/run/mapping/batch_maps.hpp>

#include <penstock/device/host.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/map_batch.hpp>

#include "support/catch.hpp"

#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

namespace mapped_columns_test {

namespace ps = penstock;

namespace {

[[maybe_unused]] const auto in_place = [](auto& columns) {
  for (auto& x : columns.values()) ++x;
};
[[maybe_unused]] const auto doubles = [](auto& columns) { return std::vector<double>(columns.size()); };
[[maybe_unused]] const auto named = [](auto& columns) {
  return ps::record<ps::field<"a", std::vector<int>>, ps::field<"b", ps::tensor_view<double>>>(
      std::vector<int>(columns.size()), ps::tensor_view<double>());
};

}  // namespace

TEST_CASE("run/mapped_columns: a returned column keeps its memory, and can be viewed and changed") {
  ps::host::session session;
  ps::memory_account account;
  ps::returned_column<ps::tensor_view<int>> column(session, account);
  CHECK(column.bytes().empty());
  const std::vector<int> values{1, 2, 3, 4, 5, 6};
  column.assign(ps::tensor_view<const int>(values.data(), ps::extents(2, 3)));
  CHECK(column.view()[1].data()[2] == 6);
  column.edit().data()[0] = 10;
  CHECK(column.view().data()[0] == 10);
  CHECK(column.bytes().size() == 24);
  const std::uint64_t held = column.held();
  column.clear();
  CHECK(column.view().size() == 0);
  CHECK(column.held() == held);
  CHECK(account.bytes.load() == held);
  column.release();
  CHECK(account.bytes.load() == 0);
  ps::returned_column<std::span<int>> list(session, account);
  list.assign(values);
  STATIC_REQUIRE(std::is_same_v<decltype(list.view()), std::span<const int>>);
  CHECK(list.view()[5] == 6);
}

TEST_CASE("run/mapped_columns: a block has a set for each function that returns columns") {
  const auto plan = ps::from(std::vector<int>{}) | ps::batch(2);
  using gathered = ps::columns_of<decltype(plan)>;
  STATIC_REQUIRE(std::is_same_v<ps::block_columns_of<decltype(plan)>, gathered>);
  STATIC_REQUIRE(std::is_same_v<ps::block_columns_of<decltype(plan | ps::map_batch(in_place))>, gathered>);
  STATIC_REQUIRE(std::is_same_v<ps::batch_element_of<decltype(plan | ps::map_batch(in_place))>, int>);
  using one = decltype(plan | ps::map_batch(doubles) | ps::map_batch(in_place));
  STATIC_REQUIRE(std::is_same_v<ps::block_columns_of<one>,
                                ps::mapped_columns<gathered, ps::returned_set<std::span<double>>>>);
  STATIC_REQUIRE(std::is_same_v<ps::batch_element_of<one>, std::span<const double>>);

  using two = decltype(plan | ps::map_batch(doubles) | ps::map_batch(named));
  ps::host::session session;
  ps::memory_account account;
  ps::block_columns_of<two> columns(session, account);
  columns.begin(2);
  const std::uint64_t before = columns.held();
  columns.returned<0>().assign(std::vector<double>{1, 2});
  columns.returned<1>().assign(
      ps::record<ps::field<"a", std::vector<int>>, ps::field<"b", ps::tensor_view<double>>>(
          std::vector<int>{7},
          ps::tensor_view<double>(columns.returned<0>().edit().data(), ps::extents(1, 2))));
  CHECK(columns.held() > before);
  CHECK(columns.view<0>(0, 2)[0] == 7);
  CHECK(columns.view<1>(0, 2).shape() == ps::extents(1, 2));
  CHECK(columns.view<1>(0, 2).data()[1] == 2);
  CHECK(columns.bytes(0, 2)[1].size() == 16);
  columns.clear_returned();
  CHECK(columns.view<0>(0, 2).empty());
  columns.release();
  CHECK(columns.held() == 0);
}

}  // namespace mapped_columns_test
