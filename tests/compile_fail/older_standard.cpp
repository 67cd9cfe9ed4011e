// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: penstock needs C++20: compile with -std=c++20
// wrong with: -std=c++17

#include <penstock/penstock.hpp>

int main() {}
