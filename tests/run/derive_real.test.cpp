// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/inspection/derive.hpp>
#include <penstock/order/class_balanced.hpp>
#include <penstock/order/split.hpp>
#include <penstock/order/subset.hpp>
#include <penstock/source/idx_gz.hpp>
#include <penstock/source/webdataset.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/map.hpp>
#include <penstock/stage/workers.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>

#include "support/catch.hpp"
#include "support/temp_dir.hpp"
#include "support/test_data.hpp"

namespace derive_real_test {

namespace ps = penstock;
namespace fs = std::filesystem;

TEST_CASE("run/derive_real: digits by class") {
  const auto root = penstock_test::test_data("gzip");
  if (!root) {
    WARN("PENSTOCK_TEST_DATA has no gzip: real labels are not read");
    return;
  }
  const penstock_test::temp_dir dir;
  const auto digits = ps::idx_gz((*root / "idx/t10k-images-idx3-ubyte.gz").string(),
                                 (*root / "idx/t10k-labels-idx1-ubyte.gz").string());
  const auto label_of = [](const auto& s) { return ps::get<"label">(s); };
  const auto label = ps::derive(digits | ps::workers(2), "label", label_of, dir.path().string());
  REQUIRE(label.size() == digits.size());
  std::map<std::uint64_t, std::size_t> stored;
  for (std::uint64_t i = 0; i < label.size(); ++i) ++stored[label[i]];
  CHECK(stored.size() == 10);
  std::size_t maximum = 0;
  for (const auto& [digit, count] : stored) maximum = std::max(maximum, count);

  const auto counted = [&](const auto& stage) {
    std::map<std::uint64_t, std::size_t> met;
    for (auto&& b : (digits | stage | ps::map(label_of) | ps::batch(100) | ps::workers(1)).epoch(0))
      for (const auto digit : b.values()) ++met[digit];
    return met;
  };
  const auto balanced = counted(ps::class_balanced(label, ps::seed(3)));
  CHECK(balanced.size() == 10);
  for (const auto& [digit, count] : balanced) CHECK(count == maximum);
  const auto some = counted(ps::subset(label, ps::one_of({3, 5})));
  CHECK(some.size() == 2);
  CHECK(some.at(3) == stored[3]);
  CHECK(some.at(5) == stored[5]);
  std::size_t both = 0;
  for (const auto& [digit, count] : counted(ps::split(0.8, ps::seed(1)))) both += count;
  CHECK(both == digits.size() * 8 / 10);
}

TEST_CASE("run/derive_real: shards of other programs by the beginning of their keys") {
  const auto root = penstock_test::test_data("tar");
  if (!root || !fs::is_directory(*root / "webdataset")) {
    WARN("PENSTOCK_TEST_DATA has no tar/webdataset: real shards are not read");
    return;
  }
  const penstock_test::temp_dir dir;
  std::size_t shards = 0;
  for (const auto& entry : fs::directory_iterator(*root / "webdataset")) {
    if (entry.path().extension() != ".tar") continue;
    const ps::webdataset source(ps::file({entry.path().c_str()}), {.index = ps::index_policy::transient});
    const auto last = ps::derive(
        source, "last",
        [](const auto&, std::string_view key) { return std::string(key.substr(key.size() - 1)); },
        (dir / std::to_string(shards)).string());
    std::size_t even = 0;
    for (std::uint64_t i = 0; i < last.size(); ++i) even += last[i][0] % 2 == 0 ? 1u : 0u;
    const auto stage = ps::subset(last, [](std::string_view digit) { return digit[0] % 2 == 0; });
    std::size_t met = 0;
    bool right = true;
    for (const auto& sample : (source | stage | ps::workers(1)).epoch(0)) {
      ++met;
      right = right && sample.key().back() % 2 == 0;
    }
    INFO(entry.path().string());
    CHECK(met == even);
    CHECK(right);
    ++shards;
  }
  CHECK(shards > 0);
}

}  // namespace derive_real_test
