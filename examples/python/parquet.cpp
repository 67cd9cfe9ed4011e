// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Columns of Parquet files: "x", float64, and "y", int64.

#include "plans.hpp"

#include <penstock/codec/arrow_value.hpp>
#include <penstock/penstock.hpp>
#include <penstock/source/parquet.hpp>

namespace penstock_loader {

opens parquet_plan(const settings& how) {
  return how_to_open(
      ps::parquet(how.path) |
          ps::decode<ps::field<"x", ps::arrow_value<double>>, ps::field<"y", ps::arrow_value<std::int64_t>>> |
          ps::shuffle(ps::seed(how.seed), ps::window(16)) | ps::shard(how.rank, how.world) |
          ps::batch(how.batch) | ps::workers(how.workers),
      [](const auto& batch) {
        return batch_fields{{"x", [batch] { return ps::to_dlpack<"x">(*batch); }},
                            {"y", [batch] { return ps::to_dlpack<"y">(*batch); }}};
      });
}

}  // namespace penstock_loader
