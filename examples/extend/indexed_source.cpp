// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// An indexed source of your own: the lines of a text, read from any thread, in any order.

#include <penstock/codec/integer.hpp>
#include <penstock/core/fingerprint.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/concepts.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/decode.hpp>

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace ps = penstock;

namespace mine {

/// A value: copies share the text and the table of its lines.
class lines {
  struct table {
    std::string text;
    std::vector<std::size_t> begins;
    [[nodiscard]] std::string_view line(std::uint64_t i) const {
      const std::size_t* at = begins.data() + i;
      return std::string_view(text).substr(at[0], at[1] - at[0] - 1);
    }
  };

 public:
  using penstock_part = ps::source_tag;
  using element = std::string_view;
  static constexpr std::string_view source_name = "lines";

  /// What a run owns; its workers share it.
  struct reader {
    struct worker {};
    std::shared_ptr<const table> all;
    template <class Sink>
    void evaluate(ps::position p, worker&, Sink&& sink) const {
      sink(all->line(p.index));
    }
  };

  explicit lines(std::string text) {
    auto made = std::make_shared<table>(table{std::move(text), {0}});
    for (std::size_t i = 0; i < made->text.size(); ++i)
      if (made->text[i] == '\n') made->begins.push_back(i + 1);
    all_ = std::move(made);
  }
  [[nodiscard]] std::uint64_t size() const { return all_->begins.size() - 1; }
  /// Where shards begin; here there are none.
  [[nodiscard]] std::shared_ptr<const std::vector<std::uint64_t>> starts() const { return nullptr; }
  [[nodiscard]] std::string describe() const { return "lines(" + std::to_string(size()) + ")"; }
  [[nodiscard]] std::uint64_t fingerprint() const { return ps::fingerprint().add(all_->text).value(); }
  [[nodiscard]] reader connect() const { return {all_}; }

 private:
  std::shared_ptr<const table> all_;
};
static_assert(ps::indexed_source<lines>, "lines is an indexed source");

}  // namespace mine

int main() {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += std::to_string(i) + "\n";
  const auto plan = mine::lines(text) | ps::shuffle(ps::seed(7)) | ps::decode<ps::integer> | ps::batch(64);
  static_assert(ps::indexed<decltype(plan)> && ps::resumable<decltype(plan)>, "nothing is lost");
  std::int64_t sum = 0;
  for (auto&& b : plan.epoch(0))
    for (const std::int64_t x : b) sum += x;
  std::printf("the sum of all lines is %lld\n", static_cast<long long>(sum));
  return sum == 999 * 1000 / 2 ? 0 : 1;
}
