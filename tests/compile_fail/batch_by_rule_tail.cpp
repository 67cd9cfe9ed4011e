// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: this rule has no tail

#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch_by.hpp>

#include <string>

namespace {

struct fours {
  template <class Orders>
  penstock::cut make(const Orders& orders, const penstock::cut_input& in) const {
    return {.size = orders.size(), .global = 4 * in.world, .world = in.world, .rank = in.rank};
  }
  std::string describe() const { return "fours"; }
  template <class Hash>
  void fingerprint(Hash& h) const {
    h.add("fours");
  }
};

}  // namespace

int main() {
#ifdef PENSTOCK_WRONG
  auto loader = penstock::from({1, 2, 3, 4}) | penstock::batch_by(fours{}, penstock::tail::drop);
#else
  auto loader = penstock::from({1, 2, 3, 4}) | penstock::batch_by(fours{});
#endif
  int sum = 0;
  for (auto&& b : loader)
    for (const int x : b.values()) sum += x;
  return sum == 0;
}
