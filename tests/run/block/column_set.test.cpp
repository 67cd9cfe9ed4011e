// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/run/block/column_set.hpp>

#include <penstock/device/host.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>

#include "support/catch.hpp"
#include "support/collect.hpp"

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

namespace column_set_test {

namespace ps = penstock;
using namespace penstock_test;

TEST_CASE("run/column_set: a record has a column per field, written and copied together") {
  using sample = ps::record<ps::field<"a", int>, ps::field<"b", double>>;
  using plan = decltype(ps::from(std::vector<sample>{}) | ps::batch(2));
  using columns = ps::columns_of<plan>;
  static_assert(columns::size == 2);
  ps::host::session session;
  ps::memory_account account;
  columns one(session, account), two(session, account);
  one.begin(2);
  two.begin(2);
  one.write(0, sample(1, 0.5));
  one.write(1, sample(2, 1.5));
  one.finish(0, 2, 2);
  two.copy(0, one, 1, 1);
  two.copy(1, one, 0, 1);
  CHECK(two.column<0>().view(0, 2)[0] == 2);
  CHECK(two.column<1>().view(0, 2)[1] == 0.5);
  CHECK(one.bytes(0, 2)[1].size() == 16);
}

TEST_CASE("run/column_set: numbers that lie one behind the other are written at once") {
  using sample = ps::record<ps::field<"a", int>, ps::field<"b", double>>;
  using columns = ps::columns_of<decltype(ps::from(std::vector<sample>{}) | ps::batch(2))>;
  ps::host::session session;
  ps::memory_account account;
  columns rows(session, account);
  rows.begin(5);
  const int a[] = {1, 2, 3};
  const double b[] = {0.5, 1.5, 2.5};
  using ints = ps::field<"a", ps::detail::contiguous_values<int>>;
  using runs = ps::record<ints, ps::field<"b", ps::detail::contiguous_values<double>>>;
  const ps::detail::contiguous_values<int> as{reinterpret_cast<const std::byte*>(a)};
  const ps::detail::contiguous_values<double> bs{reinterpret_cast<const std::byte*>(b)};
  rows.write_contiguous(2, 3, runs(as, bs));
  CHECK(std::ranges::equal(rows.column<0>().view(2, 3), a));
  CHECK(std::ranges::equal(rows.column<1>().view(2, 3), b));
  using others = ps::record<ints, ps::field<"b", ps::detail::contiguous_values<float>>>;
  static_assert(
      ps::detail::take_runs<ps::light_tuple<ps::fixed_column<int>, ps::fixed_column<double>>, runs>);
  static_assert(
      !ps::detail::take_runs<ps::light_tuple<ps::fixed_column<int>, ps::fixed_column<double>>, others>);
}

TEST_CASE("run/column_set: a loop without batches holds whole samples") {
  using plan = ps::plan<ps::from_source<std::vector<std::string>>>;
  using columns = ps::columns_of<plan>;
  ps::host::session session;
  ps::memory_account account;
  columns rows(session, account);
  rows.begin(1);
  rows.write(0, std::string("abc"));
  rows.grow(5, 1);
  CHECK(rows.column<0>()[0] == "abc");
}

}  // namespace column_set_test
