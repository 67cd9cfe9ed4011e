// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The code of both halves, which differ in nothing but how they were compiled.

#include "half.hpp"

#include <penstock/penstock.hpp>

#include <string>
#include <typeinfo>
#include <vector>

namespace ps = penstock;

namespace {

long sum() {
  long result = 0;
  const std::vector<std::string> words = {"1", "22", "333"};
  for (auto&& b : ps::from(words) | ps::decode<ps::integer> | ps::shuffle(7) | ps::batch(2) | ps::workers(1))
    for (const auto x : b) result += x;
  return result;
}

void fail() { throw ps::error(ps::errc::format, {"half of ", 2}).at_offset(7); }

std::string caught(void (*f)()) {
  try {
    f();
  } catch (const ps::error& e) {
    return e.what();
  }
  return "nothing";
}

half this_half() {
#ifdef PENSTOCK_COMPILED
  const bool has_bodies = false;
#else
  const bool has_bodies = true;
#endif
  const void* const text = reinterpret_cast<const void*>(&ps::detail::text);
  return {has_bodies, text, &typeid(ps::error), &sum, &fail, &caught};
}

}  // namespace
