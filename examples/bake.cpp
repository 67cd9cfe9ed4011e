// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Makes the images of tar shards smaller once, so that no epoch decodes the large ones: FFCV calls it writing
// a dataset. Each image becomes a JPEG, or raw pixels that need no decoding at all; `--raw` is the share of
// raw ones, which trades disk for CPU. The other members are copied.
//
// Only the image changes its size: boxes, points and masks in other members stay those of the large image,
// and no longer fit. A sample with a second image is refused, unless you give `--copy-others 1`; boxes cannot
// be recognised. To change them too, bake a plan of your own.
//
//     bake --shards 'train-{0000..0127}.tar' --out baked --max-side 400 --raw 0.25
//
// One plan reads both kinds, because image_of looks at the content: decode<field<"jpg;npy", image_of<jpeg,
// npy_image>>, ...>, as in train_images.cpp. numpy.load reads the raw ones.
//
// Kill it at any moment and start it again: it ends with the same bytes. `--skip N` leaves out up to N bad
// images. bake_parts.hpp bakes other plans.

#include "arguments.hpp"
#include "bake_parts.hpp"

#include <penstock/codec/image_of.hpp>
#include <penstock/codec/jpeg.hpp>
#include <penstock/codec/npy_image.hpp>
#include <penstock/codec/png.hpp>
#include <penstock/codec/webp.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/run/engine/tuning/machine.hpp>
#include <penstock/source/webdataset.hpp>
#include <penstock/stage/bad_samples.hpp>
#include <penstock/stage/map.hpp>

#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <system_error>

namespace ps = penstock;

namespace {

[[nodiscard]] bake_chroma chroma_of(const std::string& word) {
  if (word == "source") return bake_chroma::as_source;
  if (word == "444") return bake_chroma::full_444;
  if (word == "420") return bake_chroma::quarter_420;
  throw std::runtime_error("--chroma is source, 444 or 420, and not '" + word + "'");
}

/// Shards beside those that they are made of would be read with them the next time.
void check_folders(const ps::manifest& input, const std::filesystem::path& out) {
  for (const auto& shard : input.shards()) {
    std::filesystem::path folder = std::filesystem::path(shard.name).parent_path();
    if (folder.empty()) folder = ".";
    std::error_code none;
    if (std::filesystem::equivalent(folder, out, none))
      throw std::runtime_error("--out " + out.string() + " is the folder of " + shard.name +
                               "; choose another, so that input and output stay apart");
  }
}

void bake_images(arguments& given) {
  const std::string shards = given.text("shards");
  bake_options options;
  options.folder = given.text("out");
  options.name = given.text("name", "baked");
  options.samples_per_shard = given.number("samples-per-shard", 1000);
  options.workers = static_cast<unsigned>(given.number("workers", ps::default_workers(1), max_workers));
  const std::uint64_t max_side = given.number("max-side", 512), quality = given.number("quality", 90);
  const double raw = given.share("raw", 0);
  const std::string chroma = given.text("chroma", "source");
  const std::uint64_t seed = given.number("shuffle", 0), skip = given.number("skip", 0);
  const bool copy_others = given.number("copy-others", 0, 1) != 0;
  given.done();
  if (quality < 1 || quality > 100) throw std::runtime_error("--quality is from 1 to 100");
  if (max_side > 65'500) throw std::runtime_error("--max-side is at most 65500, or 0 to keep all sizes");
  options.settings = "max side " + std::to_string(max_side) + ", quality " + std::to_string(quality) +
                     ", chroma " + chroma + ", raw " + std::to_string(raw);
  options.check();

  using picture = ps::image_of<ps::jpeg, ps::png, ps::webp, ps::npy_image>;
  const auto baked = ps::map(bake_image<picture>{.max_side = static_cast<std::uint32_t>(max_side),
                                                 .quality = static_cast<int>(quality),
                                                 .raw = raw,
                                                 .chroma = chroma_of(chroma),
                                                 .copy_others = copy_others},
                             ps::key("raw"));
  const ps::webdataset samples(shards);
  check_folders(samples.manifest(), options.folder);
  const auto bake_with_skip = [&](const auto& plan) {
    return skip != 0 ? bake(plan | ps::bad_samples::skip(skip), options) : bake(plan, options);
  };
  const bake_totals all = seed != 0 ? bake_with_skip(samples | ps::shuffle(ps::seed(seed)) | baked)
                                    : bake_with_skip(samples | baked);
  std::printf("%s: %llu samples in %llu shards, %llu of them raw, %.1f MB", options.folder.c_str(),
              static_cast<unsigned long long>(all.samples), static_cast<unsigned long long>(all.shards()),
              static_cast<unsigned long long>(all.raw), static_cast<double>(all.bytes) / 1e6);
  if (all.skipped != 0)
    std::printf("; %llu bad samples skipped", static_cast<unsigned long long>(all.skipped));
  std::printf("\n");
}

}  // namespace

int main(int argc, char** argv) {
  try {
    constexpr const char* usage =
        "bake --shards PATTERN --out DIR [--max-side 512] [--quality 90] [--raw 0.0] [--name baked] "
        "[--samples-per-shard 1000] [--shuffle SEED] [--workers N] [--chroma source|444|420] [--skip 0] "
        "[--copy-others 0]\n"
        "Only the image becomes smaller. Boxes, points and masks in other members are copied as they are, "
        "and "
        "no longer fit it. Samples with a second image are refused, unless --copy-others is 1. --chroma "
        "source, the default, keeps the colours of 4:4:4 JPEG, PNG and npy images in full (4:4:4); those of "
        "others become 4:2:0.";
    if (asked_for_help(argc, argv, usage)) return 0;
    arguments given(argc, argv, usage);
    bake_images(given);
    return 0;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "bake: %s\n", e.what());
    return 1;
  }
}
