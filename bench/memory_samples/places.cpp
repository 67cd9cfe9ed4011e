// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Row 67: epochs behind the first one with `keep_in_memory(limit, keep_at::automatic)`, against the fastest
// of plans with `keep_in_memory(limit)` at each of the places: three loads, each of which has its best place
// elsewhere.

#include "support/harness.hpp"
#include "support/made_photos.hpp"

#include <penstock/codec/jpeg.hpp>
#include <penstock/image/resize.hpp>
#include <penstock/observe/verdict.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/source/generated.hpp>
#include <penstock/source/webdataset.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/decode.hpp>
#include <penstock/stage/fields.hpp>
#include <penstock/stage/keep_in_memory.hpp>
#include <penstock/stage/map.hpp>
#include <penstock/stage/workers.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

namespace ps = penstock;

namespace {

/// The sum of the first values of all samples.
struct look_at_batch {
  template <class Batch>
  std::uint64_t operator()(Batch& b) const {
    if constexpr (requires { b.values(); })
      return first(b.values(), b.size());
    else
      return first(ps::get<"jpg">(b), b.size());
  }

 private:
  template <class Values>
  static std::uint64_t first(const Values& values, std::size_t count) {
    const auto all = values.flat();
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < count; ++i) sum += all[i * (all.size() / count)];
    return sum;
  }
};

/// A number after so many multiplications.
std::uint64_t worked(std::uint64_t x, int times) {
  for (int i = 0; i < times; ++i) x = ps::mix64(x);
  return x;
}

/// Epochs of a plan whose first two are over: what does not depend on how many there were is kept by then.
template <class Plan>
struct opened {
  decltype(std::declval<const Plan&>().open()) run;
  std::uint64_t number = 2;

  explicit opened(const Plan& plan) : run(plan.open()) {
    look_at_batch look;
    for (std::uint64_t epoch = 0; epoch < number; ++epoch)
      for (auto&& b : run.epoch(epoch)) bench::escape(&b), (void)look(b);
  }
  /// Ten epochs, because one may take a millisecond.
  std::uint64_t operator()() {
    std::uint64_t sum = 0;
    for (int i = 0; i < 10; ++i)
      for (auto&& b : run.epoch(number++)) sum += look_at_batch{}(b);
    return sum;
  }
};

/// Compares a plan with the fastest of others.
template <class Automatic, class... Fixed>
void against_best(const bench::options& o, const bench::row& row, const Automatic& automatic,
                  const Fixed&... fixed) {
  if (!o.wants(row.id)) return;
  std::vector<std::function<std::uint64_t()>> sides;
  const auto add = [&](const auto& plan) {
    sides.emplace_back(
        [one = std::make_shared<opened<std::remove_cvref_t<decltype(plan)>>>(plan)] { return (*one)(); });
  };
  (add(fixed), ...);
  std::size_t best = 0;
  double least = 1e9;
  for (std::size_t i = 0; i < sides.size(); ++i)
    for (int take = 0; take < 3; ++take) {
      const double begin = bench::seconds_now();
      (void)sides[i]();
      if (const double took = bench::seconds_now() - begin; took < least) least = took, best = i;
    }
  opened<Automatic> ours(automatic);
  const ps::kept_choice choice = ours.run.counters().kept.choices.at(0);
  std::printf("%s: best at place %zu of %zu; %s\n", row.id.c_str(), best + 1, sides.size(),
              ps::why_kept(choice).c_str());
  // Both sides see the same epochs, so that their sums are equal.
  for (int take = 0; take < 3; ++take) (void)ours();
  bench::compare(o, row, ours, sides[best]);
}

void measure(const bench::options& o) {
  const std::uint64_t count = o.quick ? 400 : 4000;
  const auto rest = [](const auto& plan) {
    return plan | ps::shuffle(ps::seed(7)) | ps::batch(50) | ps::workers(2);
  };
  const auto automatic = ps::keep_at::automatic;
  {
    // dear to get, and sixteen times as large once it is unpacked
    using packed = std::array<std::uint8_t, 4096>;
    const std::uint64_t few = count / 5;
    const auto source = ps::generated(few, [](std::uint64_t i) {
      packed made{};
      std::uint64_t word = worked(i, 20'000);
      for (std::uint8_t& one : made) one = static_cast<std::uint8_t>(word = ps::mix64(word));
      return made;
    });
    const auto unpack = ps::map([](const packed& from) {
      std::array<std::uint32_t, 4 * 4096> made;
      for (std::size_t i = 0; i < made.size(); ++i) made[i] = from[i / 4];
      return made;
    });
    const std::uint64_t limit = few * 5000;
    against_best(
        o, {"67a", "cheap to unpack, large, little room: automatic place / best of two places", 0.95},
        rest(source | unpack | ps::keep_in_memory(limit, automatic)),
        rest(source | ps::keep_in_memory(limit) | unpack), rest(source | unpack | ps::keep_in_memory(limit)));
  }
  {
    std::vector<std::array<std::uint8_t, 16'384>> samples(static_cast<std::size_t>(count));
    for (std::size_t i = 0; i < samples.size(); ++i)
      for (std::size_t k = 0; k < samples[i].size(); ++k)
        samples[i][k] = static_cast<std::uint8_t>(ps::mix64(i * 20'000 + k));
    const auto source = ps::from(samples);
    const auto decode = ps::map([](const std::array<std::uint8_t, 16'384>& from) {
      std::array<std::uint64_t, 128> made;
      for (std::size_t i = 0; i < made.size(); ++i) made[i] = worked(from[i * 128], 300);
      return made;
    });
    const std::uint64_t limit = count * 1200;
    against_best(o, {"67b", "dear to decode, small, little room: automatic place / best of two places", 0.95},
                 rest(source | decode | ps::keep_in_memory(limit, automatic)),
                 rest(source | ps::keep_in_memory(limit) | decode),
                 rest(source | decode | ps::keep_in_memory(limit)));
  }
  {
    const std::uint64_t photos = o.quick ? 200 : 600;
    const auto storage = bench::made_photos(photos, [](std::size_t i) {
      return ps::image_size{static_cast<std::uint32_t>(640 + 64 * (i % 7)), 768};
    });
    const auto source = ps::webdataset(storage, {.index = ps::index_policy::transient}) | ps::fields<"jpg">;
    const auto decode = ps::decode<ps::field<"jpg", ps::jpeg>>;
    const auto resize = ps::map<"jpg">(ps::resize(224, 224));
    const std::uint64_t limit = photos * 160'000;
    against_best(o,
                 {"67c", "large photos, resized, little room: automatic place / best of three places", 0.95},
                 rest(source | decode | resize | ps::keep_in_memory(limit, automatic)),
                 rest(source | ps::keep_in_memory(limit) | decode | resize),
                 rest(source | decode | ps::keep_in_memory(limit) | resize),
                 rest(source | decode | resize | ps::keep_in_memory(limit)));
  }
}

}  // namespace

int main(int argc, char** argv) { return bench::run_main(argc, argv, measure); }
