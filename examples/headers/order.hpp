// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "names.hpp"

namespace {

const made_up_shards files("of_orders", 128, 2);  // train-0000.tar to train-0127.tar
const bool has_files = [] {
  std::filesystem::create_directory("derived");
  const std::vector<std::byte> two_rows =
      penstock::npy_bytes<float>(penstock::extents(2), std::vector<float>{3, 5});
  for (const auto& name : penstock::expand_braces("values-{000..127}.npy"))
    write_file(name, {reinterpret_cast<const char*>(two_rows.data()), two_rows.size()});
  return true;
}();
const auto source = penstock::npy_rows<float>("values-{000..127}.npy");

inline constexpr auto label_of = [](const auto& value) {
  return static_cast<std::int64_t>(value.values()[0]);
};
const auto label = penstock::derive(source, "label", label_of, "derived");
const std::vector<std::int64_t> labels(samples_in_shards, 3);
const std::vector<double> importance(samples_in_shards, 0.5);
const std::vector<std::uint32_t> lengths{100, 4000, 90};
const std::vector<std::uint64_t> costs{100, 4000, 90, 70};

const auto web = penstock::from({1, 2, 3}), books = penstock::from({4, 5, 6});
const std::uint64_t n = 1'000;
inline constexpr auto load = train, read = train;

}  // namespace
