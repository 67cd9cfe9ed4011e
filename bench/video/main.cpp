// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Row 62: samples of a film in memory, beside TorchCodec, PyAV and decord: 10 frames at equal distances
// (62a), 10 frames at random (62b), a clip of 16 frames at a stride of 4 (62c), all in RGB at the film's size
// of 960 x 540; and batches of 16 such clips resized to 224 x 224 (62d); the same with two workers (62f to
// 62i); and 62a to 62c of a film that is one group (62j to 62l). What is compared is processor time for the
// same samples, of all threads and processes, with the best peer of each pair. `peer_video.py` is the peers'
// side. And 62b without a kept index (62e), and memory after 10,000 clips of a small film (62m).
// ffmpeg makes the films: H.264, 30 frames a second, up to 3 B-frames; 300 frames in groups of 250, and 600
// in one group. With `--frames N` and `--group N` others take the place of the first film.

#include "support/harness.hpp"

#include <penstock/codec/video.hpp>
#include <penstock/image/random_resized_crop.hpp>
#include <penstock/image/resize.hpp>
#include <penstock/image/to_chw.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/generated.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/map.hpp>
#include <penstock/stage/seed.hpp>
#include <penstock/stage/workers.hpp>
#include <penstock/video/clip.hpp>

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace ps = penstock;

namespace {

/// A film of the benchmark, in memory.
struct made_film {
  std::string path, bytes;
  std::uint64_t frames, group;

  /// `bytes` is empty if ffmpeg cannot make it.
  made_film(const bench::options& o, std::uint64_t all, std::uint64_t each, const std::string& size)
      : path((o.dir /
              ("bench_video_" + size + "_" + std::to_string(each) + "_" + std::to_string(all) + ".mp4"))
                 .string()),
        frames(all),
        group(each) {
    const std::string gop = std::to_string(group);
    if (!std::filesystem::exists(path) &&
        std::system(("ffmpeg -hide_banner -v error -y -f lavfi -i testsrc2=s=" + size +
                     ":r=30,noise=alls=3 -frames:v " + std::to_string(frames) +
                     " -c:v libx264 -bf 3 -keyint_min " + gop + " -sc_threshold 0 -g " + gop +
                     " -pix_fmt yuv420p '" + path + "'")
                        .c_str()) != 0)
      return;
    std::ifstream in(path, std::ios::binary);
    bytes.assign(std::istreambuf_iterator<char>(in), {});
  }
};

/// As in peer_video.py.
std::uint64_t place(std::uint64_t sample, std::uint64_t k) { return ps::mix64(sample * 1000 + k) >> 33; }

void frames_of(const std::string& kind, std::uint64_t sample, std::uint64_t all,
               std::vector<std::uint32_t>& frames) {
  const std::uint64_t begin = place(sample, 0) % (all - 60);
  const bool clip = kind == "clip" || kind == "batch";
  frames.clear();
  for (std::uint64_t k = 0; k < (clip ? 16 : 10); ++k)
    frames.push_back(static_cast<std::uint32_t>(clip                ? begin + 4 * k
                                                : kind == "uniform" ? k * (all - 1) / 9
                                                                    : place(sample, k) % all));
}

/// What makes a film of a number, with `video`, and a clip of it.
struct clip_of_sample {
  using accepts_call = void;
  struct scratch {
    ps::video_scratch video;
    std::vector<std::uint32_t> frames;
  };
  const made_film* film;
  std::string kind;
  ps::video codec;

  auto operator()(std::uint64_t number, const ps::call<scratch>& c) const {
    const ps::film opened = codec.decode(ps::bytes_of(film->bytes), c.scratch.video);
    frames_of(kind, number, film->frames, c.scratch.frames);
    return ps::film_clip<ps::film, ps::film::picture_type>(
        opened, {c.scratch.frames.data(), c.scratch.frames.size()}, opened.picture());
  }
};

/// Seconds of processor time of all threads, and of wall time; 0 if it failed.
struct spent {
  double processor = 0, wall = 0;
};

/// Epochs of a run that stays open; the first one warms up.
template <class Plan>
auto timed_epochs(const Plan& plan) {
  auto run = std::make_shared<decltype(plan.open())>(plan.open());
  return [run, number = std::uint64_t{0}]() mutable {
    for (;;) {
      const double begin = bench::seconds_now();
      const std::clock_t used = std::clock();
      for (auto&& batch : run->epoch(number)) bench::escape(batch.values().data());
      if (number++ != 0)
        return spent{static_cast<double>(std::clock() - used) / CLOCKS_PER_SEC, bench::seconds_now() - begin};
    }
  };
}

auto samples_of(const made_film& film, const std::string& kind, std::uint64_t samples, std::uint32_t workers,
                const ps::video& codec = {}) {
  return timed_epochs(ps::generated(samples, [](std::uint64_t i) { return i; }) |
                      ps::map(clip_of_sample{&film, kind, codec}) | ps::batch(1) | ps::workers(workers));
}
auto batches_of(const made_film& film, std::uint64_t samples, std::uint32_t workers) {
  return timed_epochs(ps::generated(samples, [](std::uint64_t i) { return i; }) |
                      ps::map(clip_of_sample{&film, "batch", {}}, ps::resize(224, 224), ps::to_chw()) |
                      ps::batch(16) | ps::workers(workers));
}

/// A peer, which answers questions as long as the benchmark runs.
class peer {
 public:
  peer(const bench::options& o, const std::string& python, const std::string& script, const std::string& name)
      : name_(name), questions_((o.dir / ("bench_video_" + name)).string()) {
    std::filesystem::remove(questions_);
    if (::mkfifo(questions_.c_str(), 0600) != 0) throw std::runtime_error("cannot make " + questions_);
    out_ =
        ::popen((python + " '" + script + "' " + name + " < '" + questions_ + "' 2> /dev/null").c_str(), "r");
    in_ = std::fopen(questions_.c_str(), "we");  // not for the peers that start later
    std::filesystem::remove(questions_);
    if (in_ == nullptr || out_ == nullptr) throw std::runtime_error("cannot start " + name);
  }
  peer(const peer&) = delete;
  peer& operator=(const peer&) = delete;
  ~peer() {
    std::fclose(in_);
    ::pclose(out_);
  }
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] spent ask(const made_film& film, const std::string& kind, std::uint64_t samples,
                          std::uint32_t workers) {
    std::fprintf(in_, "%s %u %llu %llu %llu %s\n", kind.c_str(), workers,
                 static_cast<unsigned long long>(samples), static_cast<unsigned long long>(film.frames),
                 static_cast<unsigned long long>(film.group), film.path.c_str());
    std::fflush(in_);
    spent took;
    return std::fscanf(out_, "%lf %lf", &took.processor, &took.wall) == 2 ? took : spent{};
  }

 private:
  std::string name_, questions_;
  std::FILE *in_ = nullptr, *out_ = nullptr;
};

/// In turn: each peer, ours, each peer, ... The ratio of a pair is that to the peer that was fastest in it.
template <class Ours>
void beside_peers(const bench::options& o, const bench::row& row, const made_film& film,
                  const std::string& kind, std::uint64_t samples, std::uint32_t workers,
                  std::vector<std::unique_ptr<peer>>& peers, Ours ours) {
  std::vector<double> ratios, walls, mine;
  std::vector<std::vector<double>> theirs(peers.size());
  for (int pair = 0; pair < std::min(o.pairs, 7); ++pair) {
    double processor = 0, wall = 0;
    for (std::size_t i = 0; i < peers.size(); ++i) {
      const spent took = peers[i]->ask(film, kind, samples, workers);
      if (took.processor == 0) continue;
      theirs[i].push_back(took.processor);
      processor = processor == 0 ? took.processor : std::min(processor, took.processor);
      wall = wall == 0 ? took.wall : std::min(wall, took.wall);
    }
    if (processor == 0) return bench::print_skipped(row, "neither TorchCodec nor PyAV nor decord is there");
    const spent own = ours();  // behind the peers, which have started by then
    mine.push_back(own.processor);
    ratios.push_back(processor / own.processor);
    walls.push_back(wall / own.wall);
  }
  const auto rate = [&](const std::vector<double>& seconds) {
    char text[32];
    std::snprintf(text, sizeof text, "%.2f", static_cast<double>(samples) / bench::quantile(seconds, 0.5));
    return std::string(text);
  };
  std::string notes = rate(mine) + " samples per second of a processor";
  for (std::size_t i = 0; i < peers.size(); ++i)
    notes += ", " + peers[i]->name() + " " + (theirs[i].empty() ? "is not there" : rate(theirs[i]));
  char text[96];
  std::snprintf(text, sizeof text, "; ratios %.2f to %.2f, by wall time %.2f", bench::quantile(ratios, 0.25),
                bench::quantile(ratios, 0.75), bench::quantile(walls, 0.5));
  bench::print_row(row, bench::quantile(ratios, 0.25), bench::quantile(ratios, 0.5), notes + text);
}

[[nodiscard]] double resident_mebibytes() {
  std::ifstream in("/proc/self/statm");
  double all = 0, resident = 0;
  in >> all >> resident;
  return resident * static_cast<double>(::sysconf(_SC_PAGESIZE)) / (1 << 20);
}

/// Resident memory after 10,000 clips, compared with that after 1,000.
void memory(const bench::options& o) {
  const bench::row row{"62m", "memory after 10,000 clips of a film / after 1,000", 1.02, true};
  if (!o.wants(row.id)) return;
  const made_film film(o, 120, 30, "320x180");
  if (film.bytes.empty()) return bench::print_skipped(row, "ffmpeg with libx264 is not there");
  const std::uint64_t clips = o.quick ? 1'000 : 10'000;
  auto run = (ps::generated(clips, [](std::uint64_t i) { return i; }) |
              ps::map(clip_of_sample{&film, "clip", {}}, ps::random_resized_crop(112)) | ps::seed(1) |
              ps::batch(10) | ps::workers(2))
                 .open();
  double first = 0;
  std::uint64_t batches = 0;
  for (auto&& batch : run.epoch(0)) {
    bench::escape(batch.values().data());
    if (++batches == clips / 100) first = resident_mebibytes();
  }
  const double last = resident_mebibytes(), ratio = last / first;
  char notes[64];
  std::snprintf(notes, sizeof notes, "%.1f MiB after %llu, %.1f MiB after %llu", first,
                static_cast<unsigned long long>(clips / 10), last, static_cast<unsigned long long>(clips));
  bench::print_row(row, ratio, ratio, notes);
  if (!o.keep) std::filesystem::remove(film.path);
}

struct task {
  const char *id, *kind, *what;
  std::uint32_t workers = 1;
  bool one_group = false;
};
constexpr task tasks[] = {{"62a", "uniform", "10 frames at equal distances"},
                          {"62b", "random", "10 frames at random"},
                          {"62c", "clip", "clips of 16 frames"},
                          {"62d", "batch", "batches of 16 clips at 224"},
                          {"62f", "uniform", "10 frames at equal distances", 2},
                          {"62g", "random", "10 frames at random", 2},
                          {"62h", "clip", "clips of 16 frames", 2},
                          {"62i", "batch", "batches of 16 clips at 224", 2},
                          {"62j", "uniform", "10 frames at equal distances", 1, true},
                          {"62k", "random", "10 frames at random", 1, true},
                          {"62l", "clip", "clips of 16 frames", 1, true}};

void measure(const bench::options& o, std::uint64_t frames, std::uint64_t group) {
  memory(o);  // before others have left memory to be used again
  if (o.row == "62m") return;
  const bench::row kept{"62e", "10 frames at random: an index for each sample / a kept one"};
  const std::string size = "960x540";
  const made_film usual(o, frames, group, size), one_group(o, 600, 600, size);
  if (usual.bytes.empty() || one_group.bytes.empty())
    return bench::print_skipped(kept, "ffmpeg with libx264 is not there");
  const char* const python = std::getenv("BENCH_VIDEO_PYTHON");
  const char* const script = std::getenv("BENCH_VIDEO_SCRIPT");
  std::vector<std::unique_ptr<peer>> peers;
  if (python != nullptr && script != nullptr && o.row != kept.id)
    for (const char* const name : {"torchcodec", "pyav", "decord"})
      peers.push_back(std::make_unique<peer>(o, python, script, name));
  for (const task& t : tasks) {
    const bool batch = std::string(t.kind) == "batch";
    const bench::row row{t.id,
                         t.what + std::string(t.one_group ? ", groups of 600" : "") +
                             (t.workers == 1 ? ", 1 worker" : ", 2 workers") + " / the best peer",
                         batch ? 1.3 : 1.0};
    if (!o.wants(row.id)) continue;
    if (peers.empty()) {
      bench::print_skipped(row, "neither TorchCodec nor PyAV nor decord is there");
      continue;
    }
    const made_film& film = t.one_group ? one_group : usual;
    const std::uint64_t samples = batch                           ? 16 * t.workers
                                  : o.quick                       ? 2
                                  : std::string(t.kind) == "clip" ? 12
                                                                  : 6;
    if (batch)
      beside_peers(o, row, film, t.kind, samples, t.workers, peers, batches_of(film, samples, t.workers));
    else
      beside_peers(o, row, film, t.kind, samples, t.workers, peers,
                   samples_of(film, t.kind, samples, t.workers));
  }
  if (o.wants(kept.id)) {
    auto with = samples_of(usual, "random", 6, 1),
         without = samples_of(usual, "random", 6, 1, {.index_memory = 0});
    std::vector<double> ratios;
    for (int pair = 0; pair < std::min(o.pairs, 7); ++pair) {
      const double anew = without().processor;
      ratios.push_back(anew / with().processor);
    }
    bench::print_row(kept, bench::quantile(ratios, 0.25), bench::quantile(ratios, 0.5),
                     std::to_string(frames) + " frames in groups of " + std::to_string(group));
  }
  if (!o.keep)
    for (const made_film* const film : {&usual, &one_group}) std::filesystem::remove(film->path);
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);  // of a peer that is not there
  std::vector<char*> arguments(argv, argv + argc);
  const auto option = [&](const std::string& name, std::uint64_t value) {
    const auto named = std::find(arguments.begin(), arguments.end(), name);
    if (named == arguments.end() || named + 1 == arguments.end()) return value;
    value = std::stoull(*(named + 1));
    arguments.erase(named, named + 2);
    return value;
  };
  const std::uint64_t group = option("--group", 250), frames = option("--frames", 300);
  return bench::run_main(static_cast<int>(arguments.size()), arguments.data(),
                         [&](const bench::options& o) { measure(o, frames, group); });
}
