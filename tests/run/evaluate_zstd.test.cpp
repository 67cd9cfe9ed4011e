// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "support/catch.hpp"
#include "support/evaluate_each.hpp"

#include <penstock/codec/chain.hpp>
#include <penstock/codec/npy.hpp>
#include <penstock/codec/zstd.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/decode.hpp>
#include <penstock/stage/workers.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

namespace evaluate_zstd_test {

namespace ps = penstock;
using bytes = std::vector<std::byte>;

namespace {

bytes packed(ps::bytes_view content) {
  bytes made(ZSTD_compressBound(content.size()));
  made.resize(ZSTD_compress(made.data(), made.size(), content.data(), content.size(), 1));
  return made;
}

std::vector<bytes> packed_arrays(std::uint64_t count) {
  std::vector<bytes> all;
  for (std::uint64_t i = 0; i < count; ++i)
    all.push_back(packed(ps::npy_bytes<std::uint32_t>(
        ps::extents(50), std::vector<std::uint32_t>(50, static_cast<std::uint32_t>(i)))));
  return all;
}

}  // namespace

TEST_CASE("run/evaluate_zstd: each worker keeps a context, whose contents do not matter") {
  constexpr std::uint64_t count = 200;
  const auto samples = ps::from(packed_arrays(count)) | ps::shuffle(ps::seed(5)) | ps::decode<ps::zstd>;
  using worker = typename penstock_test::bare_chain<std::remove_cv_t<decltype(samples)>>::worker;
  static_assert(sizeof(worker) >= sizeof(ps::zstd_scratch), "the worker holds the codec's scratch");

  std::vector<bytes> found(count);
  penstock_test::evaluate_each(samples, [&](std::uint64_t i, const auto& value) {
    found[i].resize(static_cast<std::size_t>(value.size()));
    value.read_into(found[i]);
  });
  for (const unsigned workers : {0u, 1u, 3u}) {
    std::uint64_t seen = 0;
    for (auto&& b : (samples | ps::batch(32) | ps::workers(workers)).epoch(0))
      for (std::size_t i = 0; i < b.size(); ++i)
        CHECK(std::ranges::equal(b.values()[i].values(), found[seen++]));
    CHECK(seen == count);
  }
}

TEST_CASE("run/evaluate_zstd: one codec after another") {
  constexpr std::uint64_t count = 50;
  const auto samples =
      ps::from(packed_arrays(count)) | ps::decode<ps::chain<ps::zstd, ps::npy<std::uint32_t>>>;
  std::uint64_t seen = 0;
  for (auto&& b : (samples | ps::batch(16) | ps::workers(2)).epoch(0))
    for (std::size_t i = 0; i < b.size(); ++i, ++seen) {
      CHECK(b.values()[i].size() == 50);
      CHECK(b.values()[i].values().back() == seen);
    }
  CHECK(seen == count);
}

}  // namespace evaluate_zstd_test
