// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The codec audio: [1 recover, 2 a crop of the resampled sound][the first frame, 4 bytes][frames, 2
// bytes][file]

#include <penstock/audio/channels.hpp>
#include <penstock/audio/crop.hpp>
#include <penstock/audio/resample.hpp>
#include <penstock/codec/audio.hpp>

#include "support/fuzz.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

namespace ps = penstock;
using namespace penstock_fuzz;

namespace {

/// The samples of a part, or whether there was an error.
template <class S>
bool draw(const S& sound, const ps::sound_part& part, std::vector<float>& into) {
  into.assign(static_cast<std::size_t>(part.frames) * sound.form().channels, 0.0f);
  return outcome([&] { sound.draw(part, {into.data(), static_cast<std::size_t>(part.frames)}); }).empty();
}

void decode(const ps::audio& codec, ps::bytes_view file, bool resampled, input& numbers,
            ps::audio_scratch& scratch) {
  const ps::stored_sound sound = codec.decode(file, scratch);
  const ps::sound_form form = sound.form();
  must(form.frames > 0 && form.rate > 0 && form.channels > 0, "a sound has samples");
  must(form.frames * form.channels * sizeof(float) <= codec.limits.bytes, "a sound is within its limit");
  const std::uint64_t first = numbers.number<std::uint32_t>() % form.frames;
  const ps::sound_part part{first,
                            std::min<std::uint64_t>(numbers.number<std::uint16_t>(), form.frames - first)};
  std::vector<float> whole, some, again;
  const bool all = draw(sound, {0, form.frames}, whole);
  const bool any = draw(sound, part, some);
  const bool plain = ps::text_of(file).starts_with("RIFF");
  if (plain && all && any)
    for (std::size_t c = 0; c < form.channels; ++c)
      must(part.frames == 0 ||
               std::memcmp(some.data() + c * part.frames, whole.data() + c * form.frames + part.first,
                           part.frames * sizeof(float)) == 0,
           "a part equals that part of the whole");
  if (all) {
    must(draw(sound, {0, form.frames}, again), "what was decoded once can be decoded again");
    must(std::memcmp(whole.data(), again.data(), whole.size() * sizeof(float)) == 0, "and is the same");
  }
  if (!resampled) return;
  ps::sound_scratch room, of_mono;
  const auto mixed = ps::mono()(sound, ps::call<ps::sound_scratch>{{}, 0, 0, 0, of_mono});
  const auto other = ps::resample(8'000)(mixed, ps::call<ps::sound_scratch>{{}, 0, 0, 0, room});
  const std::uint64_t frames = other.form().frames;
  if (frames == 0 || frames > 1'000'000) return;
  const std::uint64_t from = first % frames;
  static_cast<void>(draw(other, {from, std::min<std::uint64_t>(part.frames, frames - from)}, some));
}

}  // namespace

/// libsndfile 1.2.0 forgets what it has of a damaged Ogg header.
extern "C" const char* __lsan_default_suppressions() {
  return "leak:vorbis_info_init\nleak:vorbis_synthesis_headerin\nleak:sf_open_virtual\n";
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  input in(data, size);
  const unsigned how = in.number();
  const ps::bytes_view part = in.take(6);
  input numbers(reinterpret_cast<const std::uint8_t*>(part.data()), part.size());
  const ps::audio codec{.limits = {.channels = 8, .bytes = 1 << 20}, .recover = (how & 1) != 0};
  ps::audio_scratch scratch;
  static_cast<void>(outcome([&] { decode(codec, in.rest(), (how & 2) != 0, numbers, scratch); }));

  // What has seen damage still decodes others.
  static const std::vector<std::byte> good = [] {
    std::vector<std::byte> file(46);
    std::memcpy(
        file.data(),
        "RIFF\x26\0\0\0WAVEfmt \x10\0\0\0\1\0\1\0\x40\x1f\0\0\x80\x3e\0\0\2\0\x10\0data\2\0\0\0\0\x40", 46);
    return file;
  }();
  const ps::stored_sound sound = codec.decode(ps::bytes_view(good), scratch);
  must(sound.finish().values()[0] == 0.5f, "another sound is what it was");
  return 0;
}
