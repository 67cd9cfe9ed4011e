// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: this source does not say what its samples are

#include <penstock/run/run.hpp>
#include <penstock/source/concepts.hpp>
#include <penstock/stage/batch.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

struct tens {
  using penstock_part = penstock::source_tag;
#ifdef PENSTOCK_WRONG
  using value_type = int;
#else
  using element = int;
#endif
  static constexpr std::string_view source_name = "tens";
  struct reader {
    struct worker {};
    template <class Sink>
    void evaluate(penstock::position p, worker&, Sink&& sink) const {
      sink(static_cast<int>(10 * p.index));
    }
  };
  [[nodiscard]] std::uint64_t size() const { return 4; }
  [[nodiscard]] std::shared_ptr<const std::vector<std::uint64_t>> starts() const { return nullptr; }
  [[nodiscard]] std::string describe() const { return "tens"; }
  [[nodiscard]] std::uint64_t fingerprint() const { return 10; }
  [[nodiscard]] reader connect() const { return {}; }
};

int main() {
  auto loader = tens{} | penstock::batch(2);
  int sum = 0;
  for (auto&& b : loader)
    for (const int x : b.values()) sum += x;
  return sum == 0;
}
