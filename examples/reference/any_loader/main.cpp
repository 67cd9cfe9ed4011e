// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// A loader as a member of a class that does not know its plan.

#include "loader.hpp"

#include <cstdint>
#include <cstdio>
#include <utility>

class trainer {
 public:
  explicit trainer(penstock::any_loader<my_batch> loader) : loader_(std::move(loader)) {}

  bool epoch(std::uint64_t number) {
    std::uint64_t sum = 0;
    bool agree = true;
    for (const my_batch& b : loader_.epoch(number))
      for (std::size_t i = 0; i < b.labels.size(); ++i) {
        sum += b.labels[i];
        agree = agree && b.values[i] * 2 == static_cast<float>(b.labels[i]);
      }
    return agree && sum == 99 * 100 / 2;
  }
  [[nodiscard]] std::uint64_t at_epoch() const { return loader_.state().epoch; }

 private:
  penstock::any_loader<my_batch> loader_;
};

int main() {
  trainer mine(make_loader(100));
  const bool works = mine.epoch(0) && mine.epoch(1) && mine.at_epoch() == 2;
  std::puts(works ? "two epochs through any_loader" : "any_loader: wrong");
  return works ? 0 : 1;
}
