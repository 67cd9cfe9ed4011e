// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/source/synthetic.hpp>

#include <penstock/core/message.hpp>
#include <penstock/core/to_size.hpp>

#include <algorithm>
#include <utility>

namespace penstock::inline v0_1 {

PENSTOCK_INLINE std::string synthetic_source::reader::key(std::uint64_t index) const {
  return std::to_string(index);
}

PENSTOCK_INLINE synthetic_source::synthetic_source(const synthetic_options& options) : options_(options) {
  const auto in_0_1 = [](double x) { return x >= 0 && x <= 1; };
  if (!in_0_1(options.jitter) || !in_0_1(options.tail_probability) || !(options.tail_factor >= 0) ||
      options.cost.count() < 0)
    throw error(
        errc::argument,
        "synthetic: jitter and tail_probability must be from 0 to 1, cost and tail_factor not negative");
  if (options.shards == 0) return;
  if (options.shards > options.samples)
    throw error(errc::argument, "synthetic: there cannot be more shards than samples");
  std::vector<std::uint64_t> starts(detail::to_size(options.shards + 1));
  const std::uint64_t each = options.samples / options.shards, longer = options.samples % options.shards;
  for (std::uint64_t i = 0; i <= options.shards; ++i)
    starts[detail::to_size(i)] = i * each + std::min(i, longer);
  starts_ = shared<const std::vector<std::uint64_t>>(new const std::vector<std::uint64_t>(std::move(starts)));
}

PENSTOCK_INLINE std::string synthetic_source::describe() const {
  return detail::text({"synthetic(", options_.samples, " samples of ", options_.bytes, " bytes, ",
                       options_.cost.count(), " ns each)"});
}

PENSTOCK_INLINE std::uint64_t synthetic_source::fingerprint() const noexcept {
  return penstock::fingerprint{}
      .add(source_name, options_.samples, options_.bytes, options_.seed, options_.shards)
      .value();
}

}  // namespace penstock::inline v0_1
