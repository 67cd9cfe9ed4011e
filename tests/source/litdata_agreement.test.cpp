// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/source/litdata.hpp>

#include "support/arrow_text.hpp"
#include "support/catch.hpp"
#include "support/format_peers.hpp"
#include "support/temp_dir.hpp"

#include <penstock/codec/litdata_array.hpp>
#include <penstock/codec/mds_array.hpp>
#include <penstock/codec/text.hpp>
#include <penstock/codec/unpack_zstd.hpp>
#include <penstock/stage/batch.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ps = penstock;

namespace litdata_agreement_test {

constexpr int seeds = 24;

/// A value of a leaf, read with the codec for it.
const auto value_text = [](std::string_view kind, const auto& value) -> std::string {
  using namespace penstock_test;
  const auto array = [](const auto& one) { return array_text(one); };
  if (kind == "b") return quoted_hex(value.finish());
  if (kind == "t")
    return decoded_text(ps::text{}, value,
                        [](std::string_view one) { return quoted_hex(ps::bytes_of(one)); });
  if (kind == "p") return decoded_text(ps::pil_pixels{}, value, array);
  if (kind == "l") return decoded_text(ps::mds_list{}, value, list_text);
  if (kind.front() == 'a')
    return with_dtype(kind.substr(1),
                      [&]<class T>() { return decoded_text(ps::litdata_array<T>{}, value, array); });
  return raw_number_text(kind, value);
};

/// The blocks of eight tokens, a line each.
template <class T>
std::string blocks_text(const std::string& folder, const ps::unpacked_options& copies) {
  std::string all;
  const auto blocks =
      ps::litdata_tokens<T, ps::unpack_zstd>(folder, ps::token_windows{.length = 8, .targets = 0}, copies);
  for (auto&& b : (blocks | ps::batch(1) | ps::workers(0)).epoch(0)) {
    for (std::size_t i = 0; i < 8; ++i) all += (i == 0 ? "" : ",") + std::to_string(b.values()(0, i));
    all += "\n";
  }
  return all;
}

}  // namespace litdata_agreement_test

TEST_CASE("source/litdata: what LitData writes, value for value") {
  const auto peer = penstock_test::format_peer::find("litdata");
  if (!peer) return;
  const penstock_test::temp_dir dir;
  peer->run("write litdata", dir.path(), 0, litdata_agreement_test::seeds);
  for (int seed = 0; seed < litdata_agreement_test::seeds; ++seed) {
    INFO("seed " << seed);
    const auto data = ps::litdata<ps::unpack_zstd>((dir / std::to_string(seed)).string(),
                                                   {.folder = (dir / "unpacked").string()});
    penstock_test::check_peer_values(data, dir.path(), seed, litdata_agreement_test::value_text);
  }
}

TEST_CASE("source/litdata: tokens that LitData writes, in its blocks") {
  const auto peer = penstock_test::format_peer::find("litdata");
  if (!peer) return;
  const penstock_test::temp_dir dir;
  peer->run("write tokens", dir.path(), 0, litdata_agreement_test::seeds);
  for (int seed = 0; seed < litdata_agreement_test::seeds; ++seed) {
    INFO("seed " << seed);
    const std::string expected = penstock_test::peer_values(dir.path(), seed, ".expected"),
                      folder = (dir / std::to_string(seed)).string();
    REQUIRE_FALSE(expected.empty());
    const std::string dtype = expected.substr(0, expected.find('\n'));
    const ps::unpacked_options copies{.folder = (dir / "unpacked").string()};
    const std::string found =
        dtype == "uint16"  ? litdata_agreement_test::blocks_text<std::uint16_t>(folder, copies)
        : dtype == "int32" ? litdata_agreement_test::blocks_text<std::int32_t>(folder, copies)
                           : litdata_agreement_test::blocks_text<std::int64_t>(folder, copies);
    CHECK(penstock_test::first_difference(found, expected.substr(dtype.size() + 1)) == "");
  }
}

TEST_CASE("source/litdata: rows of Arrow that LitData writes, value for value") {
  const auto peer = penstock_test::format_peer::find("litdata");
  if (!peer) return;
  const penstock_test::temp_dir dir;
  peer->run("write rows_litdata", dir.path(), 0, litdata_agreement_test::seeds);
  for (int seed = 0; seed < litdata_agreement_test::seeds; ++seed) {
    INFO("seed " << seed);
    const std::string expected = penstock_test::peer_values(dir.path(), seed, ".expected");
    REQUIRE_FALSE(expected.empty());
    const auto rows = ps::litdata_rows<ps::unpack_zstd>((dir / std::to_string(seed)).string());
    for (const std::size_t workers : {0u, 2u})
      CHECK(penstock_test::first_difference(penstock_test::arrow_rows_text(rows, workers), expected) == "");
  }
}
