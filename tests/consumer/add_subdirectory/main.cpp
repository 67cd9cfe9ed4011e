// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/core/version.hpp>

#include <iostream>

int main() { std::cout << "penstock " << penstock::version << '\n'; }
