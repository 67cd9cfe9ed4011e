// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/penstock.hpp>

#include <iostream>
#include <vector>

long sum_of_other();

/// Half of a program whose files include different components: the same inline functions in both must be the
/// same.
int main() {
  long sum = 0;
  for (auto&& b : penstock::from(std::vector<int>{1, 2, 3}) | penstock::batch(2) | penstock::workers(1))
    for (const int x : b) sum += x;
  std::cout << "penstock " << penstock::version << ": " << sum << " and " << sum_of_other() << '\n';
  return sum == 6 && sum_of_other() == 6 ? 0 : 1;
}
