// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Packed rows of documents, as `pack` gives them.
//   40h      samples per second of one pass over an epoch: its order, the lengths, and packing
//   43a..d   rows of 4,096 tokens from mapped tokens, against bare copies of the same documents, one behind
//            the other
//   43e..h   the same from documents that a function gives, of which nothing can be prefetched

#include "support/folder.hpp"
#include "support/harness.hpp"

#include <penstock/order.hpp>
#include <penstock/run.hpp>
#include <penstock/source/generated.hpp>
#include <penstock/source/megatron_documents.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/pack.hpp>
#include <penstock/stage/workers.hpp>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <numeric>
#include <span>
#include <vector>

namespace ps = penstock;

namespace {

constexpr std::size_t row = 4096;

/// Lengths of documents of 1 to 2,048 tokens, and where each begins.
struct lengths {
  explicit lengths(std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i) {
      begins.push_back(tokens);
      sizes.push_back(static_cast<std::uint32_t>(1 + (ps::mix64(i) & 2047)));
      tokens += sizes.back();
    }
  }

  std::vector<std::uint64_t> begins;
  std::vector<std::uint32_t> sizes;
  std::uint64_t tokens = 0;
};

/// Documents that a function gives, in memory.
struct given_documents {
  explicit given_documents(const lengths& of) : lengths_of(of), tokens(of.tokens) {
    std::iota(tokens.begin(), tokens.end(), 0);
  }
  [[nodiscard]] auto source() const {
    return ps::generated(lengths_of.sizes.size(), [this](std::uint64_t i) {
      return std::span(tokens.data() + lengths_of.begins[i], lengths_of.sizes[i]);
    });
  }
  [[nodiscard]] ps::sample_list<std::uint32_t> lengths_for_pack() const {
    return ps::sample_list(lengths_of.sizes);
  }
  [[nodiscard]] const std::int32_t* data() const { return tokens.data(); }

  const lengths& lengths_of;
  std::vector<std::int32_t> tokens;
};

/// The same in mapped files, as Megatron writes them.
struct mapped_documents {
  mapped_documents(const bench::folder& where, const lengths& of)
      : prefix(where.file("text_document")), mapped(written(of)) {}

  [[nodiscard]] auto source() const { return ps::megatron_documents<std::int32_t>(prefix); }
  [[nodiscard]] auto lengths_for_pack() const { return source().lengths(); }
  [[nodiscard]] const std::int32_t* data() const {
    return reinterpret_cast<const std::int32_t*>(mapped.data());
  }

  [[nodiscard]] std::string written(const lengths& of) const {
    std::vector<std::int32_t> tokens(of.tokens);
    std::iota(tokens.begin(), tokens.end(), 0);
    write(prefix + ".bin", [&](std::ofstream& out) { put(out, tokens); });
    std::vector<std::uint64_t> offsets, documents{0};
    for (const std::uint64_t begin : of.begins) {
      offsets.push_back(4 * begin);
      documents.push_back(documents.size());
    }
    write(prefix + ".idx", [&](std::ofstream& out) {
      out.write("MMIDIDX\0\0", 9);
      put(out, std::vector<std::uint64_t>{1});
      out.put(4);  // 32 bits
      put(out, std::vector<std::uint64_t>{offsets.size(), documents.size()});
      put(out, of.sizes);
      put(out, offsets);
      put(out, documents);
    });
    return prefix + ".bin";
  }
  static void write(const std::string& path, const auto& what) {
    std::ofstream out(path, std::ios::binary);
    what(out);
    if (!out.flush()) throw std::runtime_error("cannot write " + path);
  }
  template <class T>
  static void put(std::ofstream& out, const std::vector<T>& values) {
    out.write(reinterpret_cast<const char*>(values.data()),
              static_cast<std::streamsize>(values.size() * sizeof(T)));
  }

  std::string prefix;
  bench::mapping mapped;
};

void measure_copies(const bench::options& o, const bench::row& r, const lengths& all, const auto& documents,
                    bool shuffled, std::uint64_t workers) {
  if (!o.wants(r.id)) return;
  const auto compare = [&](const auto& ordered, const auto& order_of, const ps::pack_options& options) {
    auto run =
        (ordered | ps::pack(documents.lengths_for_pack(), row, options) | ps::batch(8) | ps::workers(workers))
            .open();
    std::vector<std::int32_t> copy(8 * row);
    // Bare copies: the documents in the epoch's order, as many as fit into a batch.
    const auto bare = [&] {
      std::size_t used = 0;
      std::uint64_t count = 0;
      for (; count < all.sizes.size(); ++count) {
        const std::uint64_t i = order_of(count);
        const std::size_t size = all.sizes[i];
        if (used + size > copy.size()) {
          asm volatile("" : : "r"(copy.data()) : "memory");
          used = 0;
        }
        std::memcpy(copy.data() + used, documents.data() + all.begins[i], 4 * size);
        used += size;
      }
      return count;
    };
    bench::compare(o, r, bench::epochs_of(run, [](auto& b) { return std::uint64_t{b.valid_size()}; }), bare);
  };
  if (shuffled) {
    const ps::permutation mixed(all.sizes.size(), 7);
    compare(documents.source() | ps::shuffle(ps::seed(7)), [&](std::uint64_t k) { return mixed(k); }, {});
  } else {
    compare(documents.source(), [](std::uint64_t k) { return k; }, {.how = ps::packing::in_order});
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
  const lengths all(o.quick ? 20'000 : 100'000);
  const auto measure_all = [&](const auto& documents, const char* ids, const char* what, double bar) {
    const auto one = [&](int number, const char* how, bool shuffled, std::uint64_t workers) {
      const std::string id = std::string("43") + ids[number];
      measure_copies(o, {id, std::string("packed rows ") + how + what + " / bare copies of them", bar}, all,
                     documents, shuffled, workers);
    };
    one(0, "in order, 1 worker, of ", false, 1);
    one(1, "shuffled, 1 worker, of ", true, 1);
    one(2, "in order, without workers, of ", false, 0);
    one(3, "shuffled, without workers, of ", true, 0);
  };
  {
    const bench::folder where(o, "sequences_packed_rows");
    measure_all(mapped_documents(where, all), "abcd", "mapped documents", 0.85);
  }
  measure_all(given_documents(all), "efgh", "documents that a function gives", 0);
}

}  // namespace

int main(int argc, char** argv) { return bench::run_main(argc, argv, measure); }
