// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The codec sound_track: [1 the index is kept][file]

#include <penstock/codec/sound_track.hpp>

#include "support/fuzz.hpp"

#include <cstring>
#include <vector>

namespace ps = penstock;
using namespace penstock_fuzz;

namespace {

void decode(const ps::sound_track& codec, ps::bytes_view file, ps::sound_track_scratch& scratch) {
  const ps::film_sound sound = codec.decode(file, scratch);
  const ps::sound_form form = sound.form();
  must(form.frames > 0 && form.rate > 0 && form.channels > 0, "a sound has samples");
  must(form.frames * form.channels * sizeof(float) <= codec.limits.bytes, "a sound is within its limit");
  const auto frames = static_cast<std::size_t>(form.frames);
  std::vector<float> whole(frames * form.channels), some(whole.size());
  sound.draw({0, form.frames}, {whole.data(), frames});
  sound.draw({form.frames / 2, form.frames - form.frames / 2}, {some.data(), frames});
  // What is decoded of damaged packets may depend on those before.
  must(ps::detail::sound_seek_of(scratch.reader.codec_id()) != ps::detail::sound_seek::beginning ||
           std::memcmp(some.data(), whole.data() + frames / 2, (frames - frames / 2) * sizeof(float)) == 0,
       "what is decoded from the beginning is the same again");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  av_log_set_level(AV_LOG_QUIET);
  static ps::sound_track_scratch scratch;  // what was read before changes nothing
  input in(data, size);
  const bool keep = (in.number() & 1) != 0;
  const ps::bytes_view file = in.rest();
  const ps::sound_track codec{.limits = {.rate = 96'000, .channels = 8, .bytes = 1 << 22},
                              .index_memory = keep ? 1u << 20 : 0u};
  outcome([&] { decode(codec, file, scratch); });
  if (keep) outcome([&] { decode(codec, file, scratch); });
  return 0;
}
