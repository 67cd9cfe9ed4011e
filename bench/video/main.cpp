// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Samples of a film in memory, beside TorchCodec and PyAV: 10 frames at equal distances (62a), 10 frames at
// random (62b), a clip of 16 frames at a stride of 4 (62c), all in RGB at the film's size of 960 x 540; and
// batches of 16 such clips resized to 224 x 224 (62d), in one worker; by processor time. `peer_video.py` is
// the peers' side; $PENSTOCK_BENCH_PYTHON names a Python that has them. And 62b without a kept index (62e).
// The film is made by ffmpeg: H.264, 300 frames, a group of 250 with up to 3 B-frames; with `--group N`, of
// N, and with `--frames N`, N frames.

#include "support/harness.hpp"
#include "support/program.hpp"

#include <penstock/codec/video.hpp>
#include <penstock/image/resize.hpp>
#include <penstock/image/to_chw.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/generated.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/map.hpp>
#include <penstock/stage/workers.hpp>
#include <penstock/video/clip.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace ps = penstock;

namespace {

std::uint64_t all_frames = 300;

/// As in peer_video.py.
std::uint64_t place(std::uint64_t sample, std::uint64_t k) { return ps::mix64(sample * 1000 + k) >> 33; }

std::vector<std::uint32_t> frames_of(const std::string& row, std::uint64_t sample) {
  std::vector<std::uint32_t> frames;
  if (row == "uniform" || row == "random") {
    for (std::uint64_t k = 0; k < 10; ++k)
      frames.push_back(static_cast<std::uint32_t>(row == "uniform" ? k * (all_frames - 1) / 9
                                                                   : place(sample, k) % all_frames));
    return frames;
  }
  const std::uint64_t begin = place(sample, 0) % (all_frames - 60);
  for (std::uint64_t i = 0; i < 16; ++i) frames.push_back(static_cast<std::uint32_t>(begin + 4 * i));
  return frames;
}

/// Of all threads of the process, so that what else the machine does counts little.
double processor_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

/// Samples a second of processor time.
double ours_frames(const std::string& row, ps::bytes_view film, double seconds, const ps::video& codec = {}) {
  ps::video_scratch scratch;
  std::vector<std::uint8_t> pixels;
  const auto sample = [&](std::uint64_t number) {
    const ps::film opened = codec.decode(film, scratch);
    const std::vector<std::uint32_t> frames = frames_of(row, number);
    const ps::film_clip<ps::film, ps::film::picture_type> clip(opened, {frames.data(), frames.size()},
                                                               opened.picture());
    pixels.resize(ps::detail::to_size(clip.shape().elements()));
    clip.write_to(ps::destination<std::uint8_t>(pixels.data(), clip.shape()));
    bench::escape(pixels.data());
  };
  sample(0);
  const double begin = processor_seconds();
  std::uint64_t done = 0;
  while (processor_seconds() - begin < seconds) sample(done++);
  return static_cast<double>(done) / (processor_seconds() - begin);
}

/// What makes a film of a number, with `video`, and a clip of it.
struct clip_of_sample {
  using accepts_call = void;
  struct scratch {
    ps::video_scratch video;
    std::vector<std::uint32_t> frames;
  };
  ps::bytes_view film;

  auto operator()(std::uint64_t number, const ps::call<scratch>& c) const {
    const ps::film opened = ps::video().decode(film, c.scratch.video);
    c.scratch.frames = frames_of("clip", number);
    return ps::film_clip<ps::film, ps::film::picture_type>(
        opened, {c.scratch.frames.data(), c.scratch.frames.size()}, opened.picture());
  }
};

double ours_batches(ps::bytes_view film, double seconds) {
  auto run =
      (ps::generated(1u << 30, [](std::uint64_t i) { return i; }) |
       ps::map(clip_of_sample{film}, ps::resize(224, 224), ps::to_chw()) | ps::batch(16) | ps::workers(1))
          .open();
  static_cast<void>(run.next());
  const double begin = processor_seconds();
  std::uint64_t done = 0;
  while (processor_seconds() - begin < seconds) {
    auto batch = run.next();
    bench::escape(batch->values().data());
    done += 16;
  }
  return static_cast<double>(done) / (processor_seconds() - begin);
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<char*> arguments(argv, argv + argc);
  const auto option = [&](const std::string& name, std::string value) {
    const auto named = std::find(arguments.begin(), arguments.end(), name);
    if (named == arguments.end() || named + 1 == arguments.end()) return value;
    value = *(named + 1);
    arguments.erase(named, named + 2);
    return value;
  };
  const std::string group = option("--group", "250");
  all_frames = std::stoull(option("--frames", "300"));
  const std::string frames = std::to_string(all_frames);
  const bench::options o = bench::read_options(static_cast<int>(arguments.size()), arguments.data());
  const std::filesystem::path path = o.dir / ("bench_video_" + group + "_" + frames + ".mp4");
  if (!std::filesystem::exists(path) &&
      std::system(("ffmpeg -hide_banner -v error -y -f lavfi -i testsrc2=s=960x540:r=30,noise=alls=3 "
                   "-frames:v " +
                   frames + " -c:v libx264 -bf 3 -keyint_min " + group + " -sc_threshold 0 -g " + group +
                   " -pix_fmt yuv420p '" + path.string() + "'")
                      .c_str()) != 0) {
    std::puts("62: not measured, ffmpeg with libx264 is not there");
    return 0;
  }
  std::ifstream in(path, std::ios::binary);
  const std::string film{std::istreambuf_iterator<char>(in), {}};
  const char* const named = std::getenv("PENSTOCK_BENCH_PYTHON");
  const std::string python = named == nullptr ? "python3" : named;
  const std::string script = (std::filesystem::path(__FILE__).parent_path() / "peer_video.py").string();
  const double seconds = o.quick ? 0.3 : 2;
  for (const auto& [id, row] :
       {std::pair{"62a", "uniform"}, {"62b", "random"}, {"62c", "clip"}, {"62d", "batch"}}) {
    if (!o.wants(id)) continue;
    for (const std::string peer : {"torchcodec", "pyav"}) {
      std::vector<double> ours, theirs, ratios;
      for (int pair = 0; pair < o.pairs; ++pair) {
        ours.push_back(std::string(row) == "batch" ? ours_batches(ps::bytes_of(film), seconds)
                                                   : ours_frames(row, ps::bytes_of(film), seconds));
        theirs.push_back(bench::rate_of_program(python + " '" + script + "' " + peer + " " + row + " '" +
                                                path.string() + "' " + std::to_string(seconds) + " " +
                                                frames));
        ratios.push_back(theirs.back() == 0 ? 0 : ours.back() / theirs.back());
      }
      for (auto* const all : {&ours, &theirs, &ratios}) std::sort(all->begin(), all->end());
      const std::size_t middle = ratios.size() / 2;
      if (theirs[middle] == 0)
        std::printf("%s %s, groups of %s: %.2f samples per second of a processor; %s is not there\n", id, row,
                    group.c_str(), ours[middle], peer.c_str());
      else
        std::printf(
            "%s %s, groups of %s: %.2f samples per second of a processor, %s %.2f, ratio %.2f (%.2f to "
            "%.2f)\n",
            id, row, group.c_str(), ours[middle], peer.c_str(), theirs[middle], ratios[middle],
            ratios.front(), ratios.back());
    }
  }
  if (o.wants("62e")) {
    std::vector<double> kept, anew, ratios;
    for (int pair = 0; pair < o.pairs; ++pair) {
      kept.push_back(ours_frames("random", ps::bytes_of(film), seconds));
      anew.push_back(ours_frames("random", ps::bytes_of(film), seconds, {.index_memory = 0}));
      ratios.push_back(kept.back() / anew.back());
    }
    for (auto* const all : {&kept, &anew, &ratios}) std::sort(all->begin(), all->end());
    const std::size_t middle = ratios.size() / 2;
    std::printf(
        "62e random, %s frames in groups of %s: %.2f samples per second of a processor, with an index for "
        "each sample %.2f, ratio %.2f\n",
        frames.c_str(), group.c_str(), kept[middle], anew[middle], ratios[middle]);
  }
  if (!o.keep) std::filesystem::remove(path);
}
