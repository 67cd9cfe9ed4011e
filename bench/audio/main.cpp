// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Row 48: sounds of a minute in a tar shard to float32 on one core, whole and slices of 5 s, resampled and
// not, against soundfile with soxr, and beside torchaudio and TorchCodec, which read the same files out of a
// folder.
// The sounds are those of $PENSTOCK_TEST_DATA/audio/flac, one behind the other. What is compared is processor
// time, of all threads of a program: waits of a shared machine do not count.

#include "support/folder.hpp"
#include "support/harness.hpp"

#include <penstock/audio.hpp>
#include <penstock/audio/resample.hpp>
#include <penstock/codec/audio.hpp>
#include <penstock/run.hpp>
#include <penstock/source/directory.hpp>
#include <penstock/source/shard_writer.hpp>
#include <penstock/source/webdataset.hpp>
#include <penstock/stage.hpp>

#include <sndfile.h>

#include <time.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

namespace ps = penstock;

namespace {

constexpr std::uint64_t files = 16, seconds = 60;

struct task {
  const char *id, *what, *extension;
  std::uint32_t rate;  ///< of the file
  bool slice = false;  ///< 5 s from 20 s on
};

struct result {
  double ms = 0;  ///< for each sound; 0: it failed
  std::uint64_t samples = 0;
};

[[nodiscard]] result of_program(const std::string& command) {
  result found;
  std::FILE* const pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) return found;
  unsigned long long samples = 0;
  if (std::fscanf(pipe, "%lf %llu", &found.ms, &samples) != 2) found.ms = 0;
  found.samples = samples;
  ::pclose(pipe);
  return found;
}

/// Files of a minute, each with another part of the speech in front.
void write_files(const std::filesystem::path& folder, int format, const char* extension, std::uint32_t rate,
                 const std::vector<float>& speech) {
  std::filesystem::create_directories(folder);
  std::vector<float> minute(seconds * rate);
  for (std::uint64_t i = 0; i < files; ++i) {
    for (std::size_t k = 0; k < minute.size(); ++k) minute[k] = speech[(k + i * 16'000) % speech.size()];
    SF_INFO info{};
    info.samplerate = static_cast<int>(rate);
    info.channels = 1;
    info.format = format;
    const std::string path = (folder / (std::to_string(100 + i) + "." + extension)).string();
    SNDFILE* const out = sf_open(path.c_str(), SFM_WRITE, &info);
    if (out == nullptr) throw std::runtime_error("cannot write " + path);
    sf_writef_float(out, minute.data(), static_cast<sf_count_t>(minute.size()));
    sf_close(out);
  }
  ps::shard_writer shard((folder / "shard-%d.tar").string());
  for (std::uint64_t i = 0; i < files; ++i) {
    const std::string name = std::to_string(100 + i);
    std::ifstream in(folder / (name + "." + extension), std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(in), {}};
    shard.write(name, {{"sound", bytes}});
  }
  shard.close();
}

[[nodiscard]] double cpu_seconds() {
  std::timespec time{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

/// The fastest of three epochs, after one without a clock, on one thread.
template <class Plan>
[[nodiscard]] result of_plan(const Plan& plan) {
  auto run = (plan | ps::batch(4) | ps::workers(0)).open();
  result found;
  for (std::uint64_t epoch = 0; epoch < 4; ++epoch) {
    found.samples = 0;
    const double begin = cpu_seconds();
    for (auto&& batch : run.epoch(epoch)) {
      const auto sounds = ps::get<"sound">(batch);
      bench::escape(sounds.data());
      found.samples += sounds.shape().elements();
    }
    const double ms = (cpu_seconds() - begin) * 1e3 / files;
    found.ms = epoch == 0 ? ms : std::min(found.ms, ms);
  }
  return found;
}
[[nodiscard]] result of_penstock(const task& t, const std::string& shard) {
  const auto sounds = ps::webdataset(shard) | ps::fields<"sound"> | ps::decode<ps::audio>;
  if (t.rate == 16'000)
    return t.slice ? of_plan(sounds | ps::map<"sound">(ps::crop(20.0, 5.0))) : of_plan(sounds);
  return t.slice ? of_plan(sounds | ps::map<"sound">(ps::resample(16'000), ps::crop(20.0, 5.0)))
                 : of_plan(sounds | ps::map<"sound">(ps::resample(16'000)));
}

void measure(const bench::options& o) {
  const task tasks[] = {{"48a", "a minute of flac, whole", "flac", 16'000},
                        {"48b", "a minute of wav, whole", "wav", 16'000},
                        {"48c", "5 s of a minute of flac", "flac", 16'000, true},
                        {"48d", "5 s of a minute of wav", "wav", 16'000, true},
                        {"48e", "a minute of wav, 24 to 16 kHz", "wav", 24'000},
                        {"48f", "5 s of a minute of wav, 24 to 16 kHz", "wav", 24'000, true},
                        {"48g", "5 s of a minute of flac, 24 to 16 kHz", "flac", 24'000, true},
                        {"48h", "a minute of ogg, whole", "ogg", 16'000}};
  const auto row_of = [](const task& t) { return bench::row{t.id, std::string(t.what) + " / soundfile", 1}; };
  if (std::ranges::none_of(tasks, [&](const task& t) { return o.wants(t.id); })) return;
  const char* const python = std::getenv("BENCH_SOUND_PYTHON");
  const char* const script = std::getenv("BENCH_SOUND_SCRIPT");
  const char* const data = std::getenv("PENSTOCK_TEST_DATA");
  const auto skip_all = [&](const char* why) {
    for (const task& t : tasks) bench::print_skipped(row_of(t), why);
  };
  if (python == nullptr || script == nullptr)
    return skip_all(
        "BENCH_SOUND_PYTHON is not set; run.sh sets it where soundfile and soxr can be installed");
  if (data == nullptr || !std::filesystem::exists(std::filesystem::path(data) / "audio" / "flac"))
    return skip_all("no files: PENSTOCK_TEST_DATA names no folder with audio/flac");

  const bench::folder made(o, "sounds");
  std::vector<float> speech;
  for (auto&& batch :
       (ps::directory((std::filesystem::path(data) / "audio" / "flac").string(), {.extensions = {"flac"}}) |
        ps::decode<ps::audio> | ps::batch(1, ps::ragged))
           .epoch(0))
    speech.insert(speech.end(), ps::get<"bytes">(batch)[0].begin(), ps::get<"bytes">(batch)[0].end());
  for (const std::uint32_t rate : {16'000u, 24'000u}) {
    const auto folder = [&](const char* extension) {
      return made.path() / (extension + std::to_string(rate));
    };
    write_files(folder("wav"), SF_FORMAT_WAV | SF_FORMAT_PCM_16, "wav", rate, speech);
    write_files(folder("flac"), SF_FORMAT_FLAC | SF_FORMAT_PCM_16, "flac", rate, speech);
    if (rate == 16'000) write_files(folder("ogg"), SF_FORMAT_OGG | SF_FORMAT_VORBIS, "ogg", rate, speech);
  }
  for (const task& t : tasks) {
    if (!o.wants(t.id)) continue;
    const std::filesystem::path folder = made.path() / (t.extension + std::to_string(t.rate));
    const auto command = [&](const char* library) {
      return "'" + std::string(python) + "' '" + script + "' " + library + " " + t.extension + ".16000" +
             (t.slice ? ".20.5" : ".0.0") + " '" + folder.string() + "'";
    };
    std::vector<double> ratios, ours, theirs;
    for (int pair = 0; pair < std::min(o.pairs, 11); ++pair) {
      const result mine = of_penstock(t, (folder / "shard-0.tar").string());
      const result its = of_program(command("soundfile"));
      if (its.ms <= 0) break;
      if (mine.samples != its.samples)
        throw std::runtime_error(std::string("row ") + t.id + ": the samples differ");
      ours.push_back(mine.ms);
      theirs.push_back(its.ms);
      ratios.push_back(its.ms / mine.ms);
    }
    if (ratios.empty()) {
      bench::print_skipped(row_of(t), "soundfile failed");
      continue;
    }
    const double median = bench::quantile(ours, 0.5);
    std::string notes = "ours " + bench::milliseconds(median / 1e3) + ", soundfile " +
                        bench::milliseconds(bench::quantile(theirs, 0.5) / 1e3);
    for (const char* other : {"torchaudio", "torchcodec"}) {
      const result its = of_program(command(other) + " 2>/dev/null");
      notes +=
          std::string(", ") + other + (its.ms > 0 ? " " + bench::milliseconds(its.ms / 1e3) : " not there");
    }
    bench::print_row(row_of(t), bench::quantile(ratios, 0.25), bench::quantile(ratios, 0.5),
                     notes + ", " + std::to_string(ratios.size()) + " pairs");
  }
}

}  // namespace

int main(int argc, char** argv) { return bench::run_main(argc, argv, measure); }
