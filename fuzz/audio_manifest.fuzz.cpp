// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Manifests of utterances: [which, 8 bits], and then train.jsonl; or [bytes of wav.scp, 16 bits][wav.scp]
// [bytes of segments, 16 bits][segments][x]; or [bytes of the cuts, 16 bits][cuts.jsonl][recording.tar]

#include <penstock/source/lhotse_shar.hpp>

#include "support/fuzz.hpp"

#include <filesystem>
#include <fstream>

using namespace penstock_fuzz;
namespace ps = penstock;

namespace {

struct folder {
  std::filesystem::path where =
      std::filesystem::temp_directory_path() / ("penstock_fuzz_" + std::to_string(::getpid()));
  folder() { std::filesystem::create_directories(where); }
  ~folder() {
    std::error_code ignored;
    std::filesystem::remove_all(where, ignored);
  }
  [[nodiscard]] std::string write(const char* name, ps::bytes_view bytes) const {
    std::ofstream out(where / name, std::ios::binary);
    out.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    return (where / name).string();
  }
};

template <class Source>
void look(const Source& speech, bool stored) {
  const auto reader = speech.connect();
  typename Source::reader::worker worker;
  const auto lengths = speech.durations();
  must(speech.size() != 0 && lengths.size() == speech.size(), "there are utterances, each with a length");
  for (std::uint64_t i = 0; i < std::min<std::uint64_t>(speech.size(), 64); ++i) {
    touch(reader.key(i));
    touch(reader.url(i));
    reader.evaluate({0, i}, worker, [&](const auto& one) {
      const double offset = get<"offset">(one), duration = get<"duration">(one);
      must(offset >= 0 && duration >= 0 && offset < 1e9 && duration < 1e9, "times are some");
      if (duration > 0) must(static_cast<double>(lengths[i]) >= duration * 1000 - 1e-3, "no length is cut");
      touch(get<"text">(one));
      touch(get<"x">(one));
      if (stored) touch(get<"audio">(one).finish());
    });
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const folder dataset;
  input in(data, size);
  const std::string path = dataset.where.string();
  switch (in.number() % 3) {
    case 0: {
      const std::string manifest = dataset.write("train.jsonl", in.rest());
      outcome([&] { look(ps::audio_manifest<"x">(manifest), false); });
      break;
    }
    case 1:
      (void)dataset.write("wav.scp", in.take(in.number<std::uint16_t>()));
      (void)dataset.write("segments", in.take(in.number<std::uint16_t>()));
      (void)dataset.write("x", in.rest());
      outcome([&] { look(ps::audio_manifest<"x">(path), false); });
      break;
    default:
      (void)dataset.write("cuts.jsonl", in.take(in.number<std::uint16_t>()));
      (void)dataset.write("recording.tar", in.rest());
      outcome([&] { look(ps::lhotse_shar<"x">(path), true); });
  }
  return 0;
}
