// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Bakes any plan: evaluates its samples on all workers and writes them, in the plan's order, to tar shards.
// To bake a plan of your own, end it with a `map` that makes a `baked_sample`, and pass it to `bake`:
//
//     const auto plan = ps::directory("photos") | ps::shuffle(ps::seed(7)) | ps::map([](const auto& file) {
//                         baked_sample made;
//                         ...                 // crop, resize, compress: whatever training need not do again
//                         return made;
//                       });
//     bake(plan, {.folder = "baked", .samples_per_shard = 1000, .settings = "crops of 256"});
//
// For samples of tar shards, `bake_image` is such a function. The plan may shuffle, filter, mix and draw
// random numbers: what is baked is the plan's first epoch.
//
// A killed `bake` resumes. Every shard appears when it is complete, and then the state of the run is saved
// beside the shards, so the next `bake` begins with the first sample of the first unfinished shard. The
// samples, their random numbers and so the shards' bytes are those of a run that was never stopped, for any
// number of workers. One process at a time may bake to a folder under a name. bake_folder.hpp has the files.
//
// `bake_image` changes the size of the image and nothing else. Boxes, points and masks in the other members
// stay those of the large image; a plan of your own changes them together, with `map<"jpg", as_mask<"png">,
// as_boxes<"boxes">>`.

#include "bake_folder.hpp"

#include <penstock/codec/concepts.hpp>
#include <penstock/codec/jpeg.hpp>
#include <penstock/codec/jpeg_encoder.hpp>
#include <penstock/codec/npy.hpp>
#include <penstock/image/resize.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/tar_writer.hpp>
#include <penstock/stage/map.hpp>
#include <penstock/stage/workers.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <iterator>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// A sample as a shard will have it.
struct baked_sample {
  struct member {
    std::string suffix;
    std::vector<std::byte> bytes;
  };
  std::string key;
  std::vector<member> members;
  bool raw = false;  ///< only counted
};

/// How the colours of a JPEG are stored. `as_source`: in full (4:4:4) if they were so in a JPEG, PNG or npy
/// file, and otherwise a quarter of them (4:2:0).
enum class bake_chroma { as_source, full_444, quarter_420 };

/// Replaces the image of each sample by a smaller JPEG, or by its pixels; other members stay as they are. A
/// JPEG that is small enough keeps its bytes; only its header is checked.
///
/// Boxes, points and masks in other members are copied as they are, and no longer fit an image that became
/// smaller. A second image is likely to be a mask, so a sample with one is `errc::argument` unless
/// `copy_others` or `max_side` is 0; boxes in JSON or npy cannot be recognised.
///
/// `Codec` decodes the image, which is the first of the members `names` that the sample has. Whether a sample
/// becomes raw is drawn from random numbers of its own, as FFCV's compress_probability is: so a resumed run
/// decides as the first one did.
template <class Codec>
struct bake_image {
  using accepts_call = void;
  struct scratch {
    penstock::scratch_of<Codec> codec;
    penstock::image_scratch resized;
    penstock::jpeg_encoder encoder;
  };
  template <class>
  static constexpr bool uses_random = true;

  std::uint32_t max_side = 0;  ///< of the longer side, in pixels, FFCV's max_resolution; 0: any
  int quality = 90;            ///< of a JPEG, 1 to 100
  double raw = 0;              ///< the share of raw images
  bake_chroma chroma = bake_chroma::as_source;
  bool copy_others = false;  ///< other images of a sample are copied as they are
  std::vector<std::string> names = {"jpg", "jpeg", "png", "webp", "npy"};

  template <penstock::open_sample S>
  [[nodiscard]] baked_sample operator()(const S& sample, const penstock::call<scratch>& c) const {
    baked_sample made;
    made.key = sample.key();
    made.raw = c.random().chance(raw);
    const std::size_t image = image_of(sample);
    if (max_side != 0 && !copy_others) refuse_second_image(sample, image);
    for (std::size_t i = 0; i < sample.size(); ++i) {
      const auto blob = sample.member(i);
      const penstock::bytes_view bytes = blob.finish();
      if (i == image)
        made.members.push_back(baked(bytes, made.raw, c.scratch));
      else
        made.members.push_back({std::string(sample.name(i)), {bytes.begin(), bytes.end()}});
    }
    const std::string& suffix = made.members[image].suffix;
    for (std::size_t i = 0; i < made.members.size(); ++i)
      if (i != image && made.members[i].suffix == suffix)
        throw penstock::error(penstock::errc::argument,
                              {"the image '", sample.name(image), "' becomes the member '", suffix,
                               "', and the sample has one already"});
    return made;
  }

 private:
  template <class S>
  [[nodiscard]] std::size_t image_of(const S& sample) const {
    for (const std::string& name : names)
      for (std::size_t i = 0; i < sample.size(); ++i)
        if (sample.name(i) == name) return i;
    std::string all;
    for (const std::string& name : names) all += (all.empty() ? "'" : ", '") + name + "'";
    throw penstock::error(penstock::errc::missing, {"the sample has no image: no member ", all});
  }

  template <class S>
  void refuse_second_image(const S& sample, std::size_t image) const {
    constexpr std::string_view extensions[] = {"jpg", "jpeg", "png", "webp"};
    for (std::size_t i = 0; i < sample.size(); ++i) {
      const std::string_view name = sample.name(i);
      const std::string_view extension = name.substr(name.rfind('.') + 1);
      if (i != image &&
          std::find(std::begin(extensions), std::end(extensions), extension) != std::end(extensions))
        throw penstock::error(
            penstock::errc::argument,
            {"the sample has a second image, '", name, "', beside '", sample.name(image),
             "', and only that one would become smaller: a mask would no longer fit; bake a plan of your own "
             "that resizes both (bake_parts.hpp), or give --copy-others 1 if it is to be copied as it is"});
    }
  }

  /// Whether the file has as many colour samples as pixels. Source: ITU-T T.81, B.2.2.
  [[nodiscard]] static bool has_full_chroma(penstock::bytes_view file) {
    const auto at = [&](std::size_t i) { return i < file.size() ? std::to_integer<unsigned>(file[i]) : 0u; };
    if (!penstock::jpeg::recognises(file)) return !penstock::text_of(file).starts_with("RIFF");  // WebP
    for (std::size_t i = 2; i < file.size();) {
      while (i < file.size() && at(i) != 0xff) ++i;
      while (i < file.size() && at(i) == 0xff) ++i;
      const unsigned marker = at(i++);
      const bool lone = marker == 0 || marker == 1 || (marker >= 0xd0 && marker <= 0xd8);
      if (lone) continue;
      if (marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 && marker != 0xcc) {
        const unsigned components = at(i + 7);
        for (std::size_t c = 1; c < components; ++c)
          if (at(i + 9 + 3 * c) != at(i + 9)) return false;
        return components > 1;
      }
      i += std::max(at(i) << 8 | at(i + 1), 2u);
    }
    return false;
  }

  [[nodiscard]] baked_sample::member baked(penstock::bytes_view bytes, bool as_raw, scratch& s) const {
    namespace ps = penstock;
    const auto image = Codec{}.decode(bytes, s.codec);
    const ps::image_size from = image.size();
    const std::uint32_t longer = std::max(from.width, from.height);
    const bool small = max_side == 0 || longer <= max_side;
    if (small && !as_raw && ps::jpeg::recognises(bytes)) return {"jpg", {bytes.begin(), bytes.end()}};

    const auto scaled = [&](std::uint32_t side) {
      return small ? side : std::max(static_cast<std::uint32_t>(std::uint64_t{side} * max_side / longer), 1u);
    };
    const ps::resized resized(image, {scaled(from.width), scaled(from.height)}, ps::interpolation::area, true,
                              s.resized);
    if (as_raw) {
      const auto pixels = resized.finish();
      return {"npy", ps::npy_bytes<std::uint8_t>(pixels.shape(), pixels.values())};
    }
    const bool full =
        chroma == bake_chroma::full_444 || (chroma == bake_chroma::as_source && has_full_chroma(bytes));
    const ps::bytes_view file = s.encoder.encode(
        resized.read(ps::whole_of(resized.size())),
        {.quality = quality, .chroma = full ? ps::jpeg_chroma::full_444 : ps::jpeg_chroma::quarter_420});
    return {"jpg", {file.begin(), file.end()}};
  }
};

/// Writes the first epoch of a plan to shards, or what is missing of it. `plan` delivers baked samples; with
/// `bad_samples::skip(n)` in it, bad ones are left out and counted.
template <class Plan>
bake_totals bake(const Plan& plan, const bake_options& options) {
  namespace ps = penstock;
  static_assert(ps::resumable<Plan>, "bake resumes, and needs a plan that can");
  options.check();
  const auto loader = plan | ps::workers(options.workers);
  // A folder that is complete may be read-only, and needs no lock.
  if (const bake_progress finished(options); finished.done()) {
    (void)loader.open(*finished.where);
    check_folder(options, finished);
    bake_lock::remove_left_over(options);
    return finished.totals;
  }

  std::filesystem::create_directories(options.folder);
  const bake_lock lock(options);
  bake_progress progress(options);  // again: the process that had the lock may have gone on
  bake_totals& all = progress.totals;
  auto run = progress.where ? loader.open(*progress.where) : loader.open();
  check_folder(options, progress);
  if (progress.done()) return all;
  if (progress.where) remove_unfinished(options);
  const std::uint64_t skipped_before = all.skipped;
  const auto save = [&] {
    all.skipped = skipped_before + run.bad_samples().skipped;
    progress.save(run.state());
  };
  save();
  if (all.samples != 0)
    std::printf("continuing after %llu samples\n", static_cast<unsigned long long>(all.samples));

  std::optional<ps::tar_writer<>> out;
  std::vector<ps::tar_member> members;
  const auto finish_shard = [&] {
    const ps::manifest::shard made = out->close();
    out.reset();
    all.bytes += made.payload;
    all.sizes.push_back(made.bytes);
    save();
    std::printf("%s\n", shard_path(options, all.shards() - 1).c_str());
    std::fflush(stdout);
  };
  for (auto epoch : run.epochs(1))
    for (auto&& sample : epoch) {
      if (!out) out.emplace(shard_path(options, all.shards()), ps::tar_writer_options{.index = true});
      members.clear();
      for (const auto& member : sample.members) members.emplace_back(member.suffix, member.bytes);
      out->write(sample.key, members);
      ++all.samples;
      all.raw += sample.raw;
      if (out->samples() == options.samples_per_shard) finish_shard();
    }
  if (all.samples == 0)
    throw std::runtime_error("there is no sample to bake: the input has none, or all were skipped");
  if (out)
    finish_shard();
  else
    save();
  return all;
}
