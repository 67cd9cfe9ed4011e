// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/audio/log_mel_options.hpp>

#include "support/catch.hpp"

#include <cstdint>
#include <utility>
#include <vector>

namespace log_mel_options_test {

namespace ps = penstock;
using options = ps::log_mel_options;

TEST_CASE("audio/log_mel_options: the number of frames") {
  const options centred{.hop_length = 160}, odd{.n_fft = 375, .hop_length = 100};
  for (const auto& [samples, frames] : std::vector<std::pair<std::uint64_t, std::uint64_t>>{
           {0, 0}, {1, 1}, {159, 1}, {160, 2}, {161, 2}, {480'000, 3001}})
    CHECK(centred.frames(samples) == frames);
  CHECK(odd.frames(100) == 1);  // as torch.stft: 2 * (375 / 2) samples are added, and not 375
  CHECK(odd.frames(101) == 2);
  CHECK(options::whisper().frames(480'000) == 3000);
  CHECK(options::whisper().frames(159) == 0);
  CHECK(options::whisper().frames(0) == 0);
  CHECK(options::kaldi().frames(399) == 0);
  CHECK(options::kaldi().frames(400) == 1);
  CHECK(options::kaldi().frames(559) == 1);
  CHECK(options::kaldi().frames(560) == 2);
  options mirror = options::kaldi();
  mirror.edges = ps::frame_edges::mirror;
  CHECK(mirror.frames(79) == 0);
  CHECK(mirror.frames(80) == 1);
  CHECK(mirror.frames(239) == 1);
  CHECK(mirror.frames(240) == 2);
}

TEST_CASE("audio/log_mel_options: where frames begin") {
  CHECK(options{.hop_length = 160}.frame_begin(0) == -200);
  CHECK(options{.hop_length = 160}.frame_begin(2) == 120);
  CHECK(options{.n_fft = 512, .win_length = 400}.frame_begin(0) == -200);  // the window is centred, too
  CHECK(options{.n_fft = 375}.frame_begin(0) == -187);
  CHECK(options::kaldi().frame_begin(3) == 480);
  options mirror = options::kaldi();
  mirror.edges = ps::frame_edges::mirror;
  CHECK(mirror.frame_begin(0) == -120);
}

TEST_CASE("audio/log_mel_options: a short sound is reflected again and again") {
  // What torch.nn.functional.pad refuses: 0 1 2 goes on 1 0 1 2 1, and with its ends 2 1 0 0 1 2.
  const auto place = [](std::int64_t at, ps::frame_edges edges) {
    return ps::detail::reflected_place(at, 3, edges);
  };
  for (std::int64_t i = -20; i < 20; ++i) {
    CAPTURE(i);
    CHECK(place(i, ps::frame_edges::reflect) == place(-i, ps::frame_edges::reflect));
    CHECK(place(i, ps::frame_edges::reflect) == place(i + 4, ps::frame_edges::reflect));
    CHECK(place(i, ps::frame_edges::mirror) == place(-1 - i, ps::frame_edges::mirror));
    CHECK(place(i, ps::frame_edges::mirror) == place(i + 6, ps::frame_edges::mirror));
    CHECK(place(i, ps::frame_edges::zeros) == (i < 0 || i > 2 ? -1 : i));
  }
  CHECK(place(3, ps::frame_edges::reflect) == 1);
  CHECK(place(3, ps::frame_edges::mirror) == 2);
  CHECK(ps::detail::reflected_place(-7, 1, ps::frame_edges::reflect) == 0);
  CHECK(ps::detail::reflected_place(-7, 1, ps::frame_edges::mirror) == 0);
}

TEST_CASE("audio/log_mel_options: presets") {
  constexpr options whisper = options::whisper(128), kaldi = options::kaldi(80, 8000);
  CHECK((whisper.n_mels == 128 && whisper.n_fft == 400 && whisper.hop() == 160));
  CHECK((kaldi.frame_length() == 200 && kaldi.n_fft == 256 && kaldi.hop() == 80 && kaldi.n_mels == 80));
  CHECK((options{}.frame_length() == 400 && options{}.hop() == 200));
}

}  // namespace log_mel_options_test
