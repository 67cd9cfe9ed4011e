// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/core/contiguous_values.hpp>

#include <penstock/device/host.hpp>
#include <penstock/run/block/column.hpp>

#include "support/catch.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace ps = penstock;

TEST_CASE("core/contiguous_values: numbers at any address are written to rows of a column") {
  CHECK(ps::detail::contiguous_values<int>().first == nullptr);
  alignas(std::int32_t) std::byte raw[13]{};
  const std::int32_t numbers[] = {7, -8, 9};
  std::memcpy(raw + 1, numbers, sizeof(numbers));
  ps::host::session session;
  ps::memory_account account;
  ps::fixed_column<std::int32_t> column(session, account);
  column.begin(4);
  column.blank(0);
  column.write_contiguous(1, 3, {raw + 1});
  column.finish(0, 4, 4);
  CHECK(column.view(0, 4)[0] == 0);
  CHECK(column.view(0, 4)[1] == 7);
  CHECK(column.view(0, 4)[3] == 9);
}
