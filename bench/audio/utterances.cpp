// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Row 49: a training set of 10,000 utterances in FLAC, of 1 s to 17.5 s, to padded batches of float32 (49a)
// and of Kaldi's log mel features (49b), shuffled, in buckets of duration, with two workers, against Lhotse's
// DynamicBucketingSampler and K2SpeechRecognitionDataset with two workers of PyTorch's DataLoader. Lhotse is
// peer_utterances.py, which runs as another process and in turn with ours.
// The speech is that of $PENSTOCK_TEST_DATA/audio/flac, each utterance another part of it.

#include "sequences/peers.hpp"
#include "support/folder.hpp"
#include "support/harness.hpp"

#include <penstock/audio.hpp>
#include <penstock/codec/audio.hpp>
#include <penstock/inspection/derive.hpp>
#include <penstock/order.hpp>
#include <penstock/run.hpp>
#include <penstock/source/directory.hpp>
#include <penstock/stage.hpp>

#include <sndfile.h>
#include <sys/stat.h>
#include <time.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace ps = penstock;

namespace {

constexpr std::uint64_t rate = 16'000, most_frames = 200 * rate;
constexpr int buckets = 30;

/// Much as in LibriSpeech: most between 12 s and 17.5 s, a third shorter, the mean 12 s.
[[nodiscard]] std::uint64_t frames_of(std::uint64_t i) {
  ps::rng random(11, 0, i);
  const double seconds = random.uniform() < 0.35 ? random.uniform(1, 12) : random.uniform(12, 17.5);
  return static_cast<std::uint64_t>(std::llround(seconds * static_cast<double>(rate)));
}

/// What a side delivers of an epoch.
struct totals {
  double wall = 0, processor = 0;
  std::uint64_t utterances = 0, values = 0;  ///< samples, or frames of features
  std::int64_t sum = 0;                      ///< of the samples as integers; 0 where it was not asked for
};

/// Writes the files, in two threads.
void write_files(const std::filesystem::path& folder, std::uint64_t count, const std::vector<float>& speech) {
  std::filesystem::create_directories(folder);
  const auto half = [&](std::uint64_t which) {
    std::vector<float> samples;
    for (std::uint64_t i = which; i < count; i += 2) {
      samples.resize(frames_of(i));
      const std::uint64_t from = ps::mix64(i) % speech.size();
      for (std::uint64_t k = 0; k < samples.size(); ++k) samples[k] = speech[(from + k) % speech.size()];
      SF_INFO info{};
      info.samplerate = static_cast<int>(rate);
      info.channels = 1;
      info.format = SF_FORMAT_FLAC | SF_FORMAT_PCM_16;
      const std::string path = (folder / (std::to_string(100'000 + i) + ".flac")).string();
      SNDFILE* const out = sf_open(path.c_str(), SFM_WRITE, &info);
      if (out == nullptr) throw std::runtime_error("cannot write " + path);
      sf_writef_float(out, samples.data(), static_cast<sf_count_t>(samples.size()));
      sf_close(out);
    }
    return std::uint64_t{0};
  };
  static_cast<void>(bench::on_two_threads(half));
}

/// Lhotse, which goes through an epoch whenever it gets a line.
class lhotse {
 public:
  lhotse(const bench::options& o, const std::string& kind, const std::filesystem::path& folder)
      : answers_(o.dir / "utterances.answers") {
    std::filesystem::remove(answers_);
    if (::mkfifo(answers_.c_str(), 0600) != 0) throw std::runtime_error("mkfifo failed");
    const std::string command = bench::quoted(bench::setting("BENCH_LHOTSE_PYTHON")) + " " +
                                bench::quoted(bench::setting("BENCH_UTTERANCES_SCRIPT")) + " " + kind + " " +
                                std::to_string(most_frames / rate) + " " + std::to_string(buckets) + " " +
                                bench::quoted(folder.string()) + " >" + bench::quoted(answers_.string());
    to_ = ::popen(command.c_str(), "w");
    if (to_ != nullptr) from_ = std::fopen(answers_.c_str(), "r");
  }
  lhotse(const lhotse&) = delete;
  lhotse& operator=(const lhotse&) = delete;
  ~lhotse() {
    if (from_ != nullptr) std::fclose(from_);
    if (to_ != nullptr) ::pclose(to_);
    std::filesystem::remove(answers_);
  }
  [[nodiscard]] totals epoch(bool with_sum) {
    totals t;
    unsigned long long utterances = 0, values = 0;
    long long sum = 0;
    if (to_ == nullptr || from_ == nullptr || std::fputs(with_sum ? "sum\n" : "again\n", to_) < 0 ||
        std::fflush(to_) != 0 ||
        std::fscanf(from_, "%lf %lf %llu %llu %lld", &t.wall, &t.processor, &utterances, &values, &sum) != 5)
      throw std::runtime_error("Lhotse failed");
    t.utterances = utterances;
    t.values = values;
    t.sum = sum;
    return t;
  }

 private:
  std::filesystem::path answers_;
  std::FILE *to_ = nullptr, *from_ = nullptr;
};

[[nodiscard]] double processor_seconds() {
  std::timespec time{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

/// An epoch of ours.
[[nodiscard]] totals epoch_of(auto& run, std::uint64_t number, bool with_sum) {
  totals t;
  const double begin = bench::seconds_now(), busy = processor_seconds();
  for (auto&& batch : run.epoch(number)) {
    const auto values = ps::get<"bytes">(batch);
    bench::escape(values.values().data());
    t.utterances += batch.valid_size();
    for (const std::uint64_t length : values.lengths()) t.values += length;
    if (with_sum)
      for (const float sample : values.values().values()) t.sum += std::llround(sample * 32'768);
  }
  t.wall = bench::seconds_now() - begin;
  t.processor = processor_seconds() - busy;
  return t;
}

void print_against(const bench::options& o, const bench::row& r, const std::string& kind,
                   const std::filesystem::path& folder, const auto& plan) {
  if (!o.wants(r.id)) return;
  if (bench::setting("BENCH_LHOTSE_PYTHON").empty() || bench::setting("BENCH_UTTERANCES_SCRIPT").empty())
    return bench::print_skipped(
        r, "BENCH_LHOTSE_PYTHON is not set; run.sh sets it where Lhotse can be installed");
  auto run = plan.open();
  if (o.only == "ours") {
    for (std::uint64_t i = 0; i < o.rounds; ++i) {
      const totals t = epoch_of(run, i, i == 0);
      std::printf("%.3g s, %.3g s of processor time, %llu utterances, %llu values, sum %lld\n", t.wall,
                  t.processor, static_cast<unsigned long long>(t.utterances),
                  static_cast<unsigned long long>(t.values), static_cast<long long>(t.sum));
    }
    return;
  }
  lhotse peer(o, kind, folder);
  std::vector<double> ratios, waits, ours, theirs;
  for (int pair = -1; pair < std::min(o.pairs, 5); ++pair) {
    const bool first = pair < 0;  // warms up, and compares
    const totals mine = epoch_of(run, static_cast<std::uint64_t>(pair + 1), first);
    const totals its = peer.epoch(first);
    if (mine.utterances != its.utterances || mine.values != its.values ||
        (kind == "samples" && mine.sum != its.sum))
      throw std::runtime_error("row " + r.id + ": the utterances differ");
    if (first) continue;
    ours.push_back(mine.processor);
    theirs.push_back(its.processor);
    ratios.push_back(its.processor / mine.processor);
    waits.push_back(its.wall / mine.wall);
  }
  bench::print_row(r, bench::quantile(ratios, 0.25), bench::quantile(ratios, 0.5),
                   "ours " + bench::number(bench::quantile(ours, 0.5)) + " s of processor time, Lhotse " +
                       bench::number(bench::quantile(theirs, 0.5)) + " s; by the clock " +
                       bench::number(bench::quantile(waits, 0.5)) + "; " + std::to_string(ratios.size()) +
                       " pairs");
}

void measure(const bench::options& o) {
  const bench::row samples{"49a", "10,000 utterances in buckets, samples / Lhotse", 3},
      mels{"49b", "10,000 utterances in buckets, 80 log mels / Lhotse", 3};
  if (!o.wants(samples.id) && !o.wants(mels.id)) return;
  const std::string data = bench::setting("PENSTOCK_TEST_DATA") + "/audio/flac";
  if (!std::filesystem::exists(data)) {
    for (const auto& r : {samples, mels})
      bench::print_skipped(r, "no files: PENSTOCK_TEST_DATA names no folder with audio/flac");
    return;
  }
  const bench::folder made(o, "utterances");
  std::vector<float> speech;
  for (auto&& batch : (ps::directory(data, {.extensions = {"flac"}}) | ps::fields<"bytes"> |
                       ps::decode<ps::audio> | ps::batch(1, ps::ragged))
                          .epoch(0))
    speech.insert(speech.end(), ps::get<"bytes">(batch)[0].begin(), ps::get<"bytes">(batch)[0].end());
  const std::filesystem::path folder = made.path() / "speech";
  write_files(folder, o.quick ? 500 : 10'000, speech);

  const auto sounds =
      ps::directory(folder.string(), {.extensions = {"flac"}}) | ps::fields<"bytes"> | ps::decode<ps::audio>;
  const auto frames = ps::derive(
      sounds | ps::map<"bytes">(ps::sound_frames), "frames",
      [](const auto& s) { return ps::get<"bytes">(s); }, made.file("frames.penstock-values"));
  const auto in_buckets = ps::shuffle(ps::seed(7)) |
                          ps::bucket_by(frames, buckets, {.max_tokens = most_frames}, ps::pad_to_longest) |
                          ps::workers(2);
  ps::log_mel_options lhotse_mels = ps::log_mel_options::kaldi(80);
  lhotse_mels.edges = ps::frame_edges::mirror;
  lhotse_mels.f_max = 7'600;
  print_against(o, samples, "samples", folder, sounds | ps::map<"bytes">(ps::squeeze()) | in_buckets);
  print_against(o, mels, "mels", folder, sounds | ps::map<"bytes">(ps::log_mel(lhotse_mels)) | in_buckets);
}

}  // namespace

int main(int argc, char** argv) { return bench::run_main(argc, argv, measure); }
