// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "names.hpp"

namespace {

const made_up_shards files("of_stages", 128, 2);  // train-0000.tar to train-0127.tar
const bool has_folder = std::filesystem::create_directory("derived");
const auto samples = penstock::webdataset("train-{0000..0127}.tar");
const std::vector<std::string> words = {"a", "loader", "feeds"}, names = words;
inline constexpr auto length = [](std::uint64_t i) { return 1 + i % 100; };
const auto texts = penstock::generated(500, [](std::uint64_t i) {
  return penstock::record<penstock::field<"tokens", std::vector<std::int32_t>>>(
      std::vector<std::int32_t>(penstock::detail::to_size(length(i)), 7));
});
inline constexpr auto is_good = [](const auto&) { return true; };
// Images of 8 bits, as a decoder leaves them.
const std::vector<std::uint8_t> pixels(64 * 48 * 3, 100);
const auto frames = penstock::generated(100, [](std::uint64_t) {
  return penstock::tensor_view<const std::uint8_t>(pixels.data(), penstock::extents(48, 64, 3));
});

}  // namespace
