// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/codec/text.hpp>
#include <penstock/order/split_by_key.hpp>
#include <penstock/order/subset.hpp>
#include <penstock/source/shard_names.hpp>
#include <penstock/source/webdataset.hpp>
#include <penstock/stage/decode.hpp>
#include <penstock/stage/workers.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "support/catch.hpp"
#include "support/collect.hpp"
#include "support/listed_order.hpp"
#include "support/order_input.hpp"
#include "support/raw_tar.hpp"
#include "support/temp_dir.hpp"

namespace ps = penstock;

static_assert(ps::sample_values<ps::shard_name_values>, "names are values");

TEST_CASE("source/shard_names: a subset of shards, without reading samples") {
  const penstock_test::temp_dir dir;
  std::vector<std::string> paths;
  for (int shard = 0; shard < 4; ++shard) {
    penstock_test::raw_tar archive;
    for (int i = 0; i < shard * 2; ++i)  // the first shard is empty
      archive.member("k" + std::to_string(i) + ".txt", std::to_string(shard) + "-" + std::to_string(i));
    archive.end();
    paths.push_back((dir / ((shard % 2 == 0 ? "day-" : "night-") + std::to_string(shard) + ".tar")).string());
    archive.save(paths.back());
  }
  const ps::webdataset source(paths);
  const auto names = ps::shard_names(source);
  REQUIRE(names.size() == 12);
  CHECK(names[0] == paths[1]);
  CHECK(names[2] == paths[2]);
  CHECK(names[11] == paths[3]);
  CHECK(names.same_until(0) == 2);
  CHECK(names.same_until(7) == 12);
  CHECK(names.dataset() == source.fingerprint());
  int asked = 0;
  const auto night = ps::subset(names, [&asked](std::string_view name) {
    ++asked;
    return name.find("night-") != name.npos;
  });
  CHECK(asked == 3);
  const auto texts = [&](const auto& stage) {
    std::vector<std::string> all;
    for (const auto& text : (source | stage | ps::decode<ps::text> | ps::workers(2)).epoch(0))
      all.emplace_back(text);
    return all;
  };
  CHECK(texts(night) == std::vector<std::string>{"1-0", "1-1", "3-0", "3-1", "3-2", "3-3", "3-4", "3-5"});
  CHECK(
      *night.make({12, source.starts(), std::make_shared<const ps::source_places>(0, 12)}).output().starts ==
      std::vector<std::uint64_t>{0, 2, 8});
  const auto some = ps::split_by_key(names, 0.5, ps::seed(1));
  CHECK(some.size() + some.complement().size() == 12);
  CHECK(texts(some).size() == some.size());

  const ps::webdataset others(std::vector<std::string>{paths[1], paths[3], paths[2]});
  CHECK_THAT(penstock_test::error_of([&] { (void)(others | night).open(); }),
             penstock_test::contains("this is not the dataset from which the names of 4 shards"));
}
