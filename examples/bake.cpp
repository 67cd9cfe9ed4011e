// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Makes the images of tar shards smaller once, so that no epoch decodes the large ones: FFCV calls it writing
// a dataset. Each image becomes a JPEG, or raw pixels that need no decoding at all; `--raw` is the share of
// raw ones, which trades disk for CPU. The other members are copied.
//
//     bake --shards 'train-{0000..0127}.tar' --out baked --max-side 400 --raw 0.25
//
// One plan reads both kinds, because image_of looks at the content: fields<"jpg;npy", "cls"> and then
// decode<field<"jpg", image_of<jpeg, npy_image>>, ...>, as in train_images.cpp. numpy.load reads the raw
// ones.
//
// Kill it at any moment and start it again: it ends with the same bytes. bake_parts.hpp bakes other plans.

#include "arguments.hpp"
#include "bake_parts.hpp"

#include <penstock/codec/image_of.hpp>
#include <penstock/codec/jpeg.hpp>
#include <penstock/codec/npy_image.hpp>
#include <penstock/codec/png.hpp>
#include <penstock/codec/webp.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/run/engine/machine.hpp>
#include <penstock/source/webdataset.hpp>
#include <penstock/stage/map.hpp>

#include <cstdint>
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>

namespace ps = penstock;

namespace {

void bake_images(arguments& given) {
  const std::string shards = given.text("shards");
  bake_options options;
  options.folder = given.text("out");
  options.name = given.text("name", "baked");
  options.samples_per_shard = given.number("samples-per-shard", 1000);
  options.workers = static_cast<unsigned>(given.number("workers", ps::default_workers(1)));
  const std::uint64_t max_side = given.number("max-side", 512), quality = given.number("quality", 90);
  const double raw = given.share("raw", 0);
  const std::uint64_t seed = given.number("shuffle", 0);
  given.done();
  if (quality < 1 || quality > 100) throw std::runtime_error("--quality is from 1 to 100");
  if (max_side > 65'500) throw std::runtime_error("--max-side is at most 65500, or 0 to keep all sizes");
  options.settings = "max side " + std::to_string(max_side) + ", quality " + std::to_string(quality) +
                     ", raw " + std::to_string(raw);

  using picture = ps::image_of<ps::jpeg, ps::png, ps::webp, ps::npy_image>;
  const auto baked = ps::map(
      bake_image<picture>{
          .max_side = static_cast<std::uint32_t>(max_side), .quality = static_cast<int>(quality), .raw = raw},
      ps::key("raw"));
  const ps::webdataset samples(shards);
  const bake_totals all =
      seed != 0 ? bake(samples | ps::shuffle(seed) | baked, options) : bake(samples | baked, options);
  std::printf("%s: %llu samples in %llu shards, %llu of them raw, %.1f MB\n", options.folder.c_str(),
              static_cast<unsigned long long>(all.samples), static_cast<unsigned long long>(all.shards),
              static_cast<unsigned long long>(all.raw), static_cast<double>(all.bytes) / 1e6);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    constexpr const char* usage =
        "bake --shards PATTERN --out DIR [--max-side 512] [--quality 90] [--raw 0.0] [--name baked] "
        "[--samples-per-shard 1000] [--shuffle SEED] [--workers N]";
    if (asked_for_help(argc, argv, usage)) return 0;
    arguments given(argc, argv, usage);
    bake_images(given);
    return 0;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "bake: %s\n", e.what());
    return 1;
  }
}
