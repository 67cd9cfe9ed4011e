// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Three corpora in one training run: mixed by weight, by a curriculum that changes as samples are used, and
// by counts; then two corpora one after another, and two side by side.

#include <penstock/order/shard.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/order/weights.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/concat.hpp>
#include <penstock/source/from.hpp>
#include <penstock/source/generated.hpp>
#include <penstock/source/mix.hpp>
#include <penstock/source/zip.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/map.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace ps = penstock;

namespace {

void expect(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "not so: %s\n", what);
  std::exit(1);
}

/// A corpus whose samples say which corpus they are from.
auto corpus(std::uint64_t samples, std::uint32_t which) {
  return ps::generated(samples, [which](std::uint64_t) { return which; });
}

using counts = std::array<std::uint64_t, 3>;
template <class Loader>
counts epoch_of(Loader& run, std::uint64_t number) {
  counts seen{};
  for (auto&& b : run.epoch(number))
    for (const std::uint32_t which : b.values()) ++seen[which];
  return seen;
}

}  // namespace

int main() {
  const auto web = corpus(50'000, 0) | ps::shuffle(ps::seed(1));
  const auto books = corpus(3'000, 1) | ps::shuffle(ps::seed(2));
  const auto code = corpus(8'000, 2) | ps::shuffle(ps::seed(3));

  // By weight. An epoch is 10,000 samples of the mixture; books restart when they are exhausted.
  {
    const auto loader = ps::mix(ps::weights{0.6, 0.3, 0.1}, web, books, code, ps::samples_per_epoch(10'240)) |
                        ps::shard(0, 1) | ps::batch(64);
    static_assert(ps::elastic<decltype(loader)>, "a mixture goes on with another number of ranks");
    auto run = loader.open();
    expect(epoch_of(run, 0) == counts{6'144, 3'072, 1'024}, "each block has its share of each source");
  }

  // A curriculum: easy text first, then more and more books, then code comes in.
  {
    const ps::weight_schedule curriculum(
        {{10'240, {1, 0, 0}}, {20'480, {0.5, 0.5, 0}}, {40'960, {0.3, 0.3, 0.4}}});
    const auto loader = ps::mix(curriculum, web, books, code, ps::samples_per_epoch(10'240)) | ps::batch(64);
    auto run = loader.open();
    for (std::uint64_t epoch = 0; epoch < 6; ++epoch) {
      const counts seen = epoch_of(run, epoch);
      std::printf("epoch %llu: web %5llu  books %5llu  code %5llu\n", static_cast<unsigned long long>(epoch),
                  static_cast<unsigned long long>(seen[0]), static_cast<unsigned long long>(seen[1]),
                  static_cast<unsigned long long>(seen[2]));
      if (epoch == 0) expect(seen == counts{10'240, 0, 0}, "before the first knot there is web alone");
      if (epoch == 1) expect(seen == counts{7'680, 2'560, 0}, "then the integral of the lines");
      if (epoch == 5) expect(seen[2] == 4'096, "and behind the last knot its weights stay");
    }

    // The weights follow from the position, so a state holds them; a state of another schedule is refused.
    const ps::state held = run.state();
    const auto other =
        ps::mix(ps::weights{1, 1, 1}, web, books, code, ps::samples_per_epoch(10'240)) | ps::batch(64);
    try {
      static_cast<void>(other.open(held));
      expect(false, "a state of other weights is refused");
    } catch (const ps::error& e) {
      std::printf("%s\n", e.what());
    }
  }

  // By counts: a fixed number of each in every epoch; the next epoch has what one leaves out.
  {
    auto run = (ps::mix(ps::choose{1'000, 500, 500}, web, books, code) | ps::batch(50)).open();
    expect(epoch_of(run, 3) == counts{1'000, 500, 500}, "an epoch has what was chosen");
  }

  // Each sample at least once.
  {
    auto run = (ps::mix(ps::weights{1, 1, 1}, web, books, code, ps::stopping::all_exhausted) | ps::batch(100))
                   .open();
    expect(epoch_of(run, 0) == counts{50'000, 50'000, 50'000},
           "the small ones come again until the large one is through");
  }

  // One after another, and side by side.
  {
    const auto both = ps::concat(books, code);
    expect(both.size() == 11'000, "the sizes add up");
    const std::vector<float> scores(11'000, 0.5F);
    std::size_t rows = 0;
    for (auto&& b :
         (ps::zip<"text", "score">(both, ps::from(scores)) | ps::shuffle(ps::seed(7)) | ps::batch(100))
             .epoch(0))
      rows += ps::get<"score">(b).size();
    expect(rows == 11'000, "a record of both for each position");
  }
}
