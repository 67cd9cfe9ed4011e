// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "loader.hpp"

#include <penstock/core/record.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/source/generated.hpp>
#include <penstock/stage/batch.hpp>

namespace ps = penstock;

ps::any_loader<my_batch> make_loader(std::uint64_t samples) {
  using sample = ps::record<ps::field<"value", float>, ps::field<"label", std::uint64_t>>;
  const auto make = [](std::uint64_t i) { return sample(static_cast<float>(i) / 2, i); };
  return {ps::generated(samples, make) | ps::shuffle(ps::seed(7)) | ps::batch(32), [](auto& b) {
            return my_batch{get<"value">(b), get<"label">(b)};
          }};
}
