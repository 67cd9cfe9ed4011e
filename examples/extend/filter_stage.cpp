// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// A filter of your own: it keeps or drops values. The workers call it in parallel; survivors keep their
// order.

#include <penstock/order/shuffle.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/workers.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

namespace ps = penstock;

namespace mine {

/// Keeps a text with probability 1 if it is short, less if it is long: min(1, length / its own length).
struct prefer_short_stage {
  using penstock_part = ps::filter_tag;
  static constexpr std::string_view stage_name = "prefer_short";
  template <class Element>
  static constexpr bool uses_random = true;

  std::uint64_t length = 1;

  template <class Call>
  bool keep(std::string_view text, const Call& call) const {
    return call.random().uniform() * static_cast<double>(text.size()) < static_cast<double>(length);
  }
  template <class Hash>
  void fingerprint(Hash& h) const {
    h.add(stage_name, length);  // it determines the sequence
  }
};

constexpr prefer_short_stage prefer_short(std::uint64_t length) { return {length}; }

}  // namespace mine

int main() {
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < 4000; ++i) texts.emplace_back(1 + i % 40, 'x');
  const auto plan =
      ps::from(texts) | ps::shuffle(ps::seed(1)) | mine::prefer_short(10) | ps::batch(32, ps::ragged);
  static_assert(!ps::indexed<decltype(plan)> && !ps::lockstep<decltype(plan)> && ps::elastic<decltype(plan)>,
                "a filter costs indexed and lockstep, and nobody had to say so");

  const auto kept = [&](unsigned workers) {
    std::vector<std::size_t> lengths;
    for (auto&& b : (plan | ps::workers(workers)).epoch(0))
      for (std::size_t i = 0; i < b.size(); ++i) lengths.push_back(b.values()[i].size());
    return lengths;
  };
  const std::vector<std::size_t> alone = kept(0), together = kept(3);
  const auto shorts = std::count_if(alone.begin(), alone.end(), [](std::size_t n) { return n <= 10; });
  const auto longs = std::count_if(alone.begin(), alone.end(), [](std::size_t n) { return n > 30; });
  const bool works = alone == together && shorts == 1000 && longs > 200 && longs < 400;
  std::puts(works ? "prefer_short: all short texts, some long ones" : "prefer_short: wrong");
  return works ? 0 : 1;
}
