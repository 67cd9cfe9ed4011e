// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: the batch has no field of that name

#include <penstock/stage/batch_columns.hpp>

#include <span>

int main() {
  int values[] = {1, 2};
  const penstock::detail::batch_facts facts{2, 2, 0, 2, {}, {}};
  using views = penstock::record<penstock::field<"a", std::span<int>>>;
  const penstock::batch_columns<views> columns(views(std::span<int>(values)), facts);
#ifdef PENSTOCK_WRONG
  int sum = 0;
  for (const int x : penstock::get<"b">(columns)) sum += x;
#else
  int sum = 0;
  for (const int x : penstock::get<"a">(columns)) sum += x;
#endif
  return sum == 0;
}
