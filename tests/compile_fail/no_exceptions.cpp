// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: penstock reports errors with exceptions, which -fno-exceptions disables: compile without it
// wrong with: -fno-exceptions -Wfatal-errors

// Only the first error: without the second flag compilers report every throw.
#include <penstock/penstock.hpp>

int main() {}
