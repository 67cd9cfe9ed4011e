// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Row 47: log mel features and cepstral coefficients of 30 seconds of sound on one core, against torchaudio
// on one thread, which runs as another process and in turn with ours.

#include "support/harness.hpp"

#include <penstock/audio/log_mel_features.hpp>
#include <penstock/audio/mfcc_features.hpp>

#include <sys/stat.h>
#include <time.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace ps = penstock;

namespace {

/// The processor's time of this thread.
[[nodiscard]] double seconds_of_thread() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

/// torchaudio, which computes whenever it gets a line, and says how many seconds that took.
class peer {
 public:
  peer(const std::string& command, const std::filesystem::path& answers) {
    std::filesystem::remove(answers);
    if (::mkfifo(answers.c_str(), 0600) != 0) throw std::runtime_error("mkfifo failed");
    to_ = ::popen((command + " >'" + answers.string() + "'").c_str(), "w");
    if (to_ != nullptr) from_ = std::fopen(answers.c_str(), "r");
  }
  peer(const peer&) = delete;
  peer& operator=(const peer&) = delete;
  ~peer() {
    if (from_ != nullptr) std::fclose(from_);
    if (to_ != nullptr) ::pclose(to_);
  }
  [[nodiscard]] double seconds() {
    double taken = 0;
    if (to_ == nullptr || from_ == nullptr || std::fputs("again\n", to_) < 0 || std::fflush(to_) != 0 ||
        std::fscanf(from_, "%lf", &taken) != 1)
      throw std::runtime_error("torchaudio failed");
    return taken;
  }

 private:
  std::FILE *to_ = nullptr, *from_ = nullptr;
};

[[nodiscard]] std::vector<float> made_sound() {
  std::vector<float> made(480'000);
  std::uint32_t state = 1;
  for (std::size_t i = 0; i < made.size(); ++i) {
    state = state * 1664525u + 1013904223u;
    const double noise = static_cast<double>(state >> 8) / 8388608.0 - 1, at = static_cast<double>(i);
    made[i] = static_cast<float>(0.3 * std::sin(0.17 * at) + 0.1 * std::sin(1.3 * at) + noise * 0.1);
  }
  return made;
}

template <class Features>
void row(const bench::options& o, const bench::row& r, const std::string& kind, const Features& features) {
  if (!o.wants(r.id)) return;
  const char* const python = std::getenv("BENCH_TORCHAUDIO_PYTHON");
  const char* const script = std::getenv("BENCH_LOG_MEL_SCRIPT");
  if (python == nullptr || script == nullptr)
    return bench::print_skipped(
        r, "BENCH_TORCHAUDIO_PYTHON is not set; run.sh sets it where torchaudio can be installed");
  const std::vector<float> samples = made_sound();
  const std::filesystem::path file = o.dir / "log_mel.samples", theirs = o.dir / "log_mel.features";
  std::ofstream(file, std::ios::binary)
      .write(reinterpret_cast<const char*>(samples.data()), static_cast<std::streamsize>(samples.size() * 4));
  peer torchaudio("'" + std::string(python) + "' '" + script + "' " + kind + " '" + file.string() + "' '" +
                      theirs.string() + "'",
                  o.dir / "log_mel.answers");

  typename Features::scratch scratch;
  std::vector<float> made(features.shape(samples.size()).elements());
  std::vector<double> ratios, our_times, their_times;
  for (int pair = -1; pair < o.pairs; ++pair) {
    double mine = 0, other = 0;
    for (int take = 0; take < o.takes; ++take) {
      const double begin = seconds_of_thread();
      features(samples, made, scratch);
      bench::escape(made.data());
      const double taken = seconds_of_thread() - begin, their_taken = torchaudio.seconds();
      mine = take == 0 ? taken : std::min(mine, taken);
      other = take == 0 ? their_taken : std::min(other, their_taken);
    }
    if (pair < 0) continue;  // the first pair warms up
    our_times.push_back(mine);
    their_times.push_back(other);
    ratios.push_back(other / mine);
  }
  std::vector<float> expected(made.size());
  std::ifstream(theirs, std::ios::binary)
      .read(reinterpret_cast<char*>(expected.data()), static_cast<std::streamsize>(expected.size() * 4));
  float difference = 0;
  for (std::size_t i = 0; i < made.size(); ++i)
    difference = std::max(difference, std::abs(made[i] - expected[i]));
  char text[64];
  std::snprintf(text, sizeof text, ", values differ by %.2g at most", static_cast<double>(difference));
  bench::print_row(r, bench::quantile(ratios, 0.25), bench::quantile(ratios, 0.5),
                   "ours " + bench::milliseconds(bench::quantile(our_times, 0.5)) + ", torchaudio " +
                       bench::milliseconds(bench::quantile(their_times, 0.5)) + ", " +
                       std::to_string(o.pairs) + " pairs of " + std::to_string(o.takes) + " takes" + text);
  for (const char* const name : {"log_mel.samples", "log_mel.features", "log_mel.answers"})
    std::filesystem::remove(o.dir / name);
}

void measure(const bench::options& o) {
  ps::log_mel_options kaldi = ps::log_mel_options::kaldi(80);
  ps::mfcc_options mfcc = ps::mfcc_options::kaldi();
  kaldi.gain = mfcc.mel.gain = 32'768;
  row(o, {"47a", "log mel features of 30 s, Whisper's / torchaudio", 2}, "whisper",
      ps::log_mel_features(ps::log_mel_options::whisper()));
  row(o, {"47b", "log mel features of 30 s, Kaldi's / torchaudio", 2}, "kaldi", ps::log_mel_features(kaldi));
  row(o, {"47c", "MFCC of 30 s, Kaldi's / torchaudio", 2}, "mfcc", ps::mfcc_features(mfcc));
}

}  // namespace

int main(int argc, char** argv) { return bench::run_main(argc, argv, measure); }
