// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Bakes any plan: evaluates its samples on all workers and writes them, in the plan's order, to tar shards.
// To bake a plan of your own, end it with a `map` that makes a `baked_sample`, and pass it to `bake`:
//
//     const auto plan = ps::directory("photos") | ps::shuffle(7) | ps::map([](const auto& file) {
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
// number of workers. One process at a time may bake to a folder.

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
#include <fstream>
#include <optional>
#include <sstream>
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

/// Replaces the image of each sample by a smaller JPEG, or by its pixels; other members stay as they are. A
/// JPEG that is small enough keeps its bytes.
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
  static constexpr bool draws = true;

  std::uint32_t max_side = 0;  ///< of the longer side, in pixels, FFCV's max_resolution; 0: any
  int quality = 90;            ///< of a JPEG, 1 to 100
  double raw = 0;              ///< the share of raw images
  std::vector<std::string> names = {"jpg", "jpeg", "png", "webp", "npy"};

  template <penstock::open_sample S>
  [[nodiscard]] baked_sample operator()(const S& sample, const penstock::call<scratch>& c) const {
    baked_sample made;
    made.key = sample.key();
    made.raw = c.random().chance(raw);
    const std::size_t image = image_of(sample);
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
    const ps::bytes_view file =
        s.encoder.encode(resized.read(ps::whole_of(resized.size())), {.quality = quality});
    return {"jpg", {file.begin(), file.end()}};
  }
};

/// Where `bake` writes, and how much to a shard.
struct bake_options {
  std::filesystem::path folder;
  std::string name = "baked";  ///< the shards are `<name>-000000.tar` and so on
  std::uint64_t samples_per_shard = 1000;
  /// What the plan's functions do, in words: a folder that was begun with other words is refused.
  std::string settings;
  unsigned workers = 1;
};

/// What is in the folder; all numbers are of all runs together.
struct bake_totals {
  std::uint64_t shards = 0, samples = 0, raw = 0, bytes = 0;
};

[[nodiscard]] inline std::string shard_path(const bake_options& options, std::uint64_t number) {
  std::string digits = std::to_string(number);
  digits.insert(0, digits.size() < 6 ? 6 - digits.size() : 0, '0');
  return (options.folder / (options.name + "-" + digits + ".tar")).string();
}

/// The file beside the shards that says what they are and where to resume: a line of settings, a line of
/// totals, and the state of the run.
class bake_progress {
 public:
  bake_totals totals;
  std::optional<penstock::state> where;

  bake_progress(const bake_options& options)
      : path_(options.folder / "bake.state"),
        settings_(options.settings + "; " + std::to_string(options.samples_per_shard) +
                  " samples per shard") {
    if (!std::filesystem::exists(path_)) return;
    std::ifstream in(path_, std::ios::binary);
    std::string settings, numbers, line;
    if (!std::getline(in, settings) || !std::getline(in, numbers) || !std::getline(in, line))
      throw std::runtime_error("cannot read " + path_.string() + "; remove its folder to bake anew");
    if (settings != settings_)
      throw std::runtime_error("the shards in " + options.folder.string() + " were begun with '" + settings +
                               "', and this is '" + settings_ + "'; choose another folder");
    std::istringstream(numbers) >> totals.shards >> totals.samples >> totals.raw >> totals.bytes;
    where = penstock::state_from_string(line);
  }

  void save(const penstock::state& now) {
    const std::filesystem::path beside = path_.string() + ".partial";
    {
      std::ofstream out(beside, std::ios::binary);
      out << settings_ << '\n'
          << totals.shards << ' ' << totals.samples << ' ' << totals.raw << ' ' << totals.bytes << '\n'
          << to_string(now) << '\n';
      if (!out.flush()) throw std::runtime_error("cannot write " + beside.string());
    }
    std::filesystem::rename(beside, path_);
  }

 private:
  std::filesystem::path path_;
  std::string settings_;
};

/// Removes what a killed run was writing, and checks that the finished shards, and no others, are there.
inline void check_folder(const bake_options& options, const bake_progress& progress) {
  namespace fs = std::filesystem;
  std::uint64_t shards = 0;
  const std::uint64_t finished = progress.totals.shards;
  for (const auto& entry : fs::directory_iterator(options.folder)) {
    const std::string file = entry.path().filename().string();
    if (!file.starts_with(options.name + "-")) continue;
    if (file.find(".tmp-") != std::string::npos) fs::remove(entry.path());
    shards += file.ends_with(".tar");
  }
  for (std::uint64_t i = 0; i < finished; ++i)
    if (!fs::exists(shard_path(options, i)))
      throw std::runtime_error("the shard " + shard_path(options, i) +
                               " was finished and is gone; remove its folder to bake anew");
  // One may have been finished just before the run was killed.
  if (shards > finished + (progress.where ? 1 : 0))
    throw std::runtime_error("the folder " + options.folder.string() + " has other shards named " +
                             options.name + "-*.tar; choose another folder, or another --name");
}

/// Writes the first epoch of a plan to shards, or what is missing of it. `plan` delivers baked samples.
template <class Plan>
bake_totals bake(const Plan& plan, const bake_options& options) {
  namespace ps = penstock;
  static_assert(ps::resumable<Plan>, "bake resumes, and needs a plan that can");
  if (options.samples_per_shard == 0) throw std::runtime_error("a shard needs room for at least one sample");
  std::filesystem::create_directories(options.folder);
  bake_progress progress(options);
  bake_totals& all = progress.totals;

  const auto loader = plan | ps::workers(options.workers);
  auto run = progress.where ? loader.open(*progress.where) : loader.open();
  check_folder(options, progress);
  progress.save(run.state());
  if (progress.where && progress.where->epoch > 0) return all;
  if (all.samples != 0)
    std::printf("continuing after %llu samples\n", static_cast<unsigned long long>(all.samples));

  std::optional<ps::tar_writer<>> out;
  std::vector<ps::tar_member> members;
  const auto finish_shard = [&] {
    all.bytes += out->close().payload;
    out.reset();
    progress.save(run.state());
    std::printf("%s\n", shard_path(options, all.shards - 1).c_str());
    std::fflush(stdout);
  };
  for (auto epoch : run.epochs(1))
    for (auto&& sample : epoch) {
      if (!out) out.emplace(shard_path(options, all.shards++), ps::tar_writer_options{.index = true});
      members.clear();
      for (const auto& member : sample.members) members.emplace_back(member.suffix, member.bytes);
      out->write(sample.key, members);
      ++all.samples;
      all.raw += sample.raw;
      if (out->samples() == options.samples_per_shard) finish_shard();
    }
  if (out)
    finish_shard();
  else
    progress.save(run.state());
  return all;
}
