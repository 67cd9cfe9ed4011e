// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// An order stage of your own: which sample is next, by arithmetic that can be inverted.

#include <penstock/order/concepts.hpp>
#include <penstock/order/shard.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/generated.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/require.hpp>

#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>

namespace ps = penstock;

namespace mine {

/// The last position first.
struct reversed_order {
  /// One epoch of it: position from index.
  struct bound {
    std::uint64_t epoch = 0, size = 0;
    ps::position operator()(std::uint64_t index) const { return {epoch, size - 1 - index}; }
  };

  std::uint64_t positions = 0;

  [[nodiscard]] std::uint64_t size() const { return positions; }
  [[nodiscard]] ps::order_input output() const { return {positions, nullptr}; }
  [[nodiscard]] bound bind(std::uint64_t epoch) const { return {epoch, positions}; }
  [[nodiscard]] std::optional<ps::position> position_of(ps::position p) const {
    return ps::position{p.epoch, positions - 1 - p.index};
  }
};

/// The stage in a plan. It makes the order once the number of positions is known.
struct reversed_stage {
  using penstock_part = ps::order_tag;
  static constexpr std::string_view stage_name = "reversed";

  [[nodiscard]] reversed_order make(ps::order_input in) const { return {in.size}; }
  [[nodiscard]] std::string describe() const { return "reversed"; }
  template <class Hash>
  void fingerprint(Hash& h) const {
    h.add(stage_name);  // so that a state of another order is refused
  }
};
static_assert(ps::order_stage<reversed_stage>, "reversed is an order stage");

inline constexpr reversed_stage reversed{};

}  // namespace mine

int main() {
  const auto numbers = ps::generated(1000, [](std::uint64_t i) { return i; });
  const auto backward = numbers | mine::reversed | ps::shard(0, 2) | ps::batch(10) |
                        ps::require<ps::guarantee::elastic, ps::guarantee::lockstep>;  // nothing is lost
  std::uint64_t wanted = 1000, wrong = 0;
  for (auto&& b : backward) {
    for (const std::uint64_t x : b) wrong += x != --wanted;
    wanted -= 10;  // the other rank's
  }
  for (auto&& b :
       (numbers | mine::reversed | ps::shuffle(ps::seed(3)) | mine::reversed | ps::batch(1000)).epoch(0))
    wrong += b.positions().size() != 1000 || b.keys().size() != 1000;
  std::puts(wrong == 0 ? "reversed: as computed" : "reversed: wrong");
  return wrong == 0 ? 0 : 1;
}
