// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Packed rows of documents in memory, as `pack` gives them.
//   40h  samples per second of one pass over an epoch: its order, the lengths, and packing
//   43   rows of 4,096 tokens, against bare copies of the same documents, one behind the other

#include "support/harness.hpp"

#include <penstock/order.hpp>
#include <penstock/run.hpp>
#include <penstock/source/generated.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/pack.hpp>
#include <penstock/stage/workers.hpp>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <numeric>
#include <span>
#include <vector>

namespace ps = penstock;

namespace {

constexpr std::size_t row = 4096;

/// Documents of 1 to 2,048 tokens, one behind the other as in a mapped file.
struct documents {
  explicit documents(std::uint64_t count) {
    std::uint64_t at = 0;
    for (std::uint64_t i = 0; i < count; ++i) {
      begins.push_back(at);
      lengths.push_back(static_cast<std::uint32_t>(1 + (ps::mix64(i) & 2047)));
      at += lengths.back();
    }
    tokens.resize(at);
    std::iota(tokens.begin(), tokens.end(), 0u);
  }
  [[nodiscard]] std::span<const std::uint32_t> operator[](std::uint64_t i) const {
    return {tokens.data() + begins[i], lengths[i]};
  }

  std::vector<std::uint64_t> begins;
  std::vector<std::uint32_t> lengths;
  std::vector<std::uint32_t> tokens;
};

void measure_copies(const bench::options& o, const bench::row& r, bool shuffled, std::uint64_t workers) {
  if (!o.wants(r.id)) return;
  const documents all(o.quick ? 20'000 : 100'000);
  const auto texts = ps::generated(all.lengths.size(), [&all](std::uint64_t i) { return all[i]; });
  const ps::sample_list lengths(all.lengths);
  const auto compare = [&](const auto& ordered, const auto& order_of, const ps::pack_options& options) {
    auto run = (ordered | ps::pack(lengths, row, options) | ps::batch(8) | ps::workers(workers)).open();
    std::vector<std::uint32_t> copy(8 * row);
    // Bare copies: the documents in the epoch's order, as many as fit into a batch.
    const auto bare = [&] {
      std::size_t used = 0;
      std::uint64_t count = 0;
      for (; count < all.lengths.size(); ++count) {
        const auto document = all[order_of(count)];
        if (used + document.size() > copy.size()) {
          asm volatile("" : : "r"(copy.data()) : "memory");
          used = 0;
        }
        std::memcpy(copy.data() + used, document.data(), document.size_bytes());
        used += document.size();
      }
      return count;
    };
    bench::compare(o, r, bench::epochs_of(run, [](auto& b) { return std::uint64_t{b.valid_size()}; }), bare);
  };
  if (shuffled) {
    const ps::permutation mixed(all.lengths.size(), 7);
    compare(texts | ps::shuffle(ps::seed(7)), [&](std::uint64_t k) { return mixed(k); }, {});
  } else {
    compare(texts, [](std::uint64_t k) { return k; }, {.how = ps::packing::in_order});
  }
}

void measure_pass(const bench::options& o) {
  if (!o.wants("40h")) return;
  const std::uint64_t count = o.quick ? 500'000 : 4'000'000;
  std::vector<std::uint32_t> lengths;
  for (std::uint64_t i = 0; i < count; ++i)
    lengths.push_back(static_cast<std::uint32_t>(1 + ps::mix64(i) % 512));
  const ps::sample_list listed(std::move(lengths));
  const auto texts =
      ps::generated(count, [](std::uint64_t i) { return std::array<int, 1>{static_cast<int>(i)}; });
  for (const bool shuffled : {false, true}) {
    double best = 0;
    for (int round = 0; round < 5; ++round) {
      const auto begun = std::chrono::steady_clock::now();
      if (shuffled)
        (void)(texts | ps::shuffle(ps::seed(7)) | ps::pack(listed, 512) | ps::batch(8) | ps::workers(0))
            .open();
      else
        (void)(texts | ps::pack(listed, 512) | ps::batch(8) | ps::workers(0)).open();
      const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begun;
      best = std::max(best, static_cast<double>(count) / took.count() / 1e6);
    }
    std::printf("40h  %s: %.1f million samples/s in a pass over an epoch (bar: 5)\n",
                shuffled ? "shuffled" : "in order", best);
  }
}

void measure(const bench::options& o) {
  measure_pass(o);
  measure_copies(o, {"43a", "packed rows in order, 1 worker / bare copies of the documents", 0.85}, false, 1);
  measure_copies(o, {"43b", "packed rows of shuffled documents, 1 worker / bare copies of them", 0.85}, true,
                 1);
  measure_copies(o, {"43c", "packed rows in order, without workers / bare copies", 0.85}, false, 0);
  measure_copies(o, {"43d", "packed rows of shuffled documents, without workers / bare copies", 0.85}, true,
                 0);
}

}  // namespace

int main(int argc, char** argv) { return bench::run_main(argc, argv, measure); }
