// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// A forward source of your own: words of a stream, one after another. One thread at a time reads; all workers
// evaluate.

#include <penstock/core/fingerprint.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/concepts.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/map.hpp>
#include <penstock/stage/shuffle_buffer.hpp>
#include <penstock/stage/workers.hpp>

#include <cstdint>
#include <cstdio>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <string_view>

namespace ps = penstock;

namespace mine {

class words {
 public:
  using penstock_part = ps::source_tag;
  using element = std::string;  // owns what it needs; its memory is reused
  static constexpr std::string_view source_name = "words";

  struct reader {
    std::shared_ptr<const std::string> text;
    std::istringstream stream;
    /// The next word; false at the end.
    bool next(std::string& word) { return static_cast<bool>(stream >> word); }
    /// Goes back to the beginning, for another epoch.
    void rewind(std::uint64_t) { stream = std::istringstream(*text); }
  };

  explicit words(std::string text) : text_(std::make_shared<const std::string>(std::move(text))) {}
  [[nodiscard]] std::string describe() const { return "words"; }
  [[nodiscard]] std::uint64_t fingerprint() const { return ps::fingerprint().add(*text_).value(); }
  [[nodiscard]] reader connect() const { return {text_, std::istringstream(*text_)}; }

 private:
  std::shared_ptr<const std::string> text_;
};
static_assert(ps::forward_source<words> && !ps::indexed_source<words>, "words can only be read forward");

}  // namespace mine

int main() {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += "word" + std::to_string(i) + " ";
  const auto number = [](std::string_view word) { return std::stoi(std::string(word.substr(4))); };
  const auto plan = mine::words(text) | ps::shuffle_buffer(100, ps::seed(7)) | ps::map(number) |
                    ps::batch(64) | ps::workers(3);
  static_assert(ps::deterministic<decltype(plan)> && !ps::resumable<decltype(plan)>,
                "the same sequence always, but it cannot be entered in the middle");

  auto run = plan.open();
  bool works = true;
  int first[2] = {-1, -1};
  for (auto epoch : run.epochs(2)) {
    std::set<int> seen;
    for (auto&& b : epoch) {
      if (seen.empty()) first[epoch.number()] = b.values()[0];
      seen.insert(b.begin(), b.end());
    }
    works = works && seen.size() == 1000;
  }
  std::printf("epoch 0 begins with word %d, epoch 1 with word %d\n", first[0], first[1]);
  return works && first[0] != first[1] ? 0 : 1;
}
