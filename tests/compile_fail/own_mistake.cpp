// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: halve: the element is no number; write map(f) before it

#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/map.hpp>

#include <concepts>
#include <string>
#include <vector>

// A user's stage, with a mistake of its own.
struct needs_a_number {
  using penstock_mistake = penstock::about_element_tag;
  static consteval void explain(auto reached) {
    static_assert(penstock::never<decltype(reached)>,
                  "halve: the element is no number; write map(f) before it");
  }
};
struct halve_stage {
  using penstock_part = penstock::pointwise_tag;
  template <class Call>
  double apply(double value, const Call&) const {
    return value / 2;
  }
  template <class Context>
  static consteval auto diagnose() {
    if constexpr (std::convertible_to<typename Context::element, double>)
      return penstock::mistakes::none{};
    else
      return needs_a_number{};
  }
};

int main() {
  const auto texts = penstock::from(std::vector<std::string>{"one", "two"});
#ifdef PENSTOCK_WRONG
  auto loader = texts | halve_stage{} | penstock::batch(2);
#else
  const auto length = [](const std::string& s) { return static_cast<double>(s.size()); };
  auto loader = texts | penstock::map(length) | halve_stage{} | penstock::batch(2);
#endif
  double sum = 0;
  for (auto&& b : loader)
    for (const auto x : b.values()) sum += x;
  return sum < 0;
}
