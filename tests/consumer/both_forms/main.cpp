// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "half.hpp"

#include <iostream>

/// Both halves use one definition of each function and type, and each catches the other's errors.
int main() {
  const half a = with_bodies(), b = with_library();
  const std::string said = a.caught(b.fail);
  std::cout << a.text << ' ' << b.text << ' ' << a.sum() << ' ' << b.sum() << ' ' << said << '\n';
  const bool one_definition = a.text == b.text && a.error == b.error;
  const bool same_sums = a.sum() == 356 && b.sum() == 356;
  const bool same_errors = said == "penstock: half of 2 [offset 7]" && said == b.caught(a.fail);
  return a.has_bodies && !b.has_bodies && one_definition && same_sums && same_errors ? 0 : 1;
}
