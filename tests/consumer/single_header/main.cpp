// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/penstock.hpp>

#include <iostream>

std::string_view version_seen_by_other();

int main() {
  std::cout << "penstock " << penstock::version << '\n';
  return version_seen_by_other() == penstock::version ? 0 : 1;
}
