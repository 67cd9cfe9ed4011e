// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The plans. Change them, or add yours.

#include "plans.hpp"

#include <penstock/codec/image_of.hpp>
#include <penstock/codec/jpeg.hpp>
#include <penstock/codec/png.hpp>
#include <penstock/image.hpp>
#include <penstock/penstock.hpp>
#include <penstock/source/tokens.hpp>

namespace penstock_loader {

/// Tar shards with an npy array of floats and a class: "x" and "y".
opens webdataset_plan(const settings& how) {
  return how_to_open(ps::webdataset(how.path) |
                         ps::decode<ps::field<"npy", ps::npy<float>>, ps::field<"cls", ps::integer>> |
                         ps::shuffle(ps::seed(how.seed)) | ps::shard(how.rank, how.world) |
                         ps::batch(how.batch) | ps::prefetch(8) | ps::workers(how.workers),
                     [](const auto& batch) {
                       return batch_fields{{"x", [batch] { return ps::to_dlpack<"npy">(*batch); }},
                                           {"y", [batch] { return ps::to_dlpack<"cls">(*batch); }}};
                     });
}

/// Images in one folder per class, augmented: "x" is (batch, 3, size, size), "y" the class.
opens images_plan(const settings& how) {
  return how_to_open(ps::directory(how.path) |
                         ps::decode<ps::field<"bytes", ps::image_of<ps::jpeg, ps::png>>> |
                         ps::map<"bytes">(ps::random_resized_crop(how.size), ps::horizontal_flip(),
                                          ps::normalize(ps::imagenet), ps::to_chw()) |
                         ps::shuffle(ps::seed(how.seed)) | ps::shard(how.rank, how.world) |
                         ps::batch(how.batch, ps::tail::drop) | ps::workers(how.workers),
                     [](const auto& batch) {
                       return batch_fields{{"x", [batch] { return ps::to_dlpack<"bytes">(*batch); }},
                                           {"y", [batch] { return ps::to_dlpack<"label">(*batch); }}};
                     });
}

/// Windows of a file of 16-bit tokens: "tokens" is (batch, window + 1).
opens tokens_plan(const settings& how) {
  return how_to_open(ps::raw_tokens<std::uint16_t>(how.path, ps::token_windows{.length = how.window}) |
                         ps::shuffle(ps::seed(how.seed)) | ps::shard(how.rank, how.world) |
                         ps::batch(how.batch, ps::tail::drop) | ps::workers(how.workers),
                     [](const auto& batch) {
                       return batch_fields{{"tokens", [batch] { return ps::to_dlpack(*batch); }}};
                     });
}

}  // namespace penstock_loader
