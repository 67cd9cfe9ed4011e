// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/order/compat/mosaic_options.hpp>

#include "support/catch.hpp"

namespace ps = penstock;

TEST_CASE("order/mosaic_options: names and defaults are Streaming's") {
  CHECK(to_string(ps::mosaic_algorithm::py1e) == "py1e");
  CHECK(to_string(ps::mosaic_algorithm::py1br) == "py1br");
  CHECK(to_string(ps::mosaic_algorithm::py1s) == "py1s");
  CHECK(to_string(ps::mosaic_algorithm::py2s) == "py2s");
  CHECK(to_string(ps::mosaic_algorithm::naive) == "naive");
  const ps::mosaic_options o;
  CHECK_FALSE(o.shuffle);
  CHECK((o.shuffle_algo == ps::mosaic_algorithm::py1e && o.shuffle_seed == 9176));
  const ps::mosaic_sampling sampling;
  CHECK((sampling.method == ps::mosaic_sampling_method::balanced && sampling.granularity == 1));
  CHECK((sampling.epoch_size == 0 && sampling.streams.empty()));
}
