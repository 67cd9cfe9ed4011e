// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The codec video: [1 as stored][three frames, 2 bytes each][file]

#include <penstock/codec/video.hpp>

#include "support/fuzz.hpp"

#include <vector>

namespace ps = penstock;
using namespace penstock_fuzz;

namespace {

/// Three frames of a film, one behind the other; nothing if there was an error.
std::vector<std::uint8_t> decode(const ps::video& codec, ps::bytes_view file,
                                 const std::uint16_t (&wanted)[3], ps::video_scratch& scratch) {
  std::vector<std::uint8_t> pixels;
  outcome([&] {
    const ps::film film = codec.decode(file, scratch);
    const ps::film_facts facts = film.facts();
    if (facts.frames == 0) return;
    must(facts.frames <= codec.limits.frames && facts.size.width <= 320 && facts.size.height <= 320,
         "a film is within its limits");
    const auto frame = [&](std::size_t i) { return static_cast<std::uint32_t>(wanted[i] % facts.frames); };
    const std::uint32_t frames[] = {frame(0), frame(1), frame(2)};
    const auto picture = film.picture();
    const std::size_t one = ps::detail::to_size(picture.shape().elements());
    std::vector<std::uint8_t> found(one * 3);
    std::size_t drawn = 0;
    film.each_of(frames, [&](std::size_t i) {
      picture.write_to(ps::destination<std::uint8_t>(found.data() + i * one, picture.shape()));
      ++drawn;
    });
    must(drawn == 3, "every frame is drawn once");
    pixels = std::move(found);
  });
  return pixels;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  av_log_set_level(AV_LOG_QUIET);
  input in(data, size);
  const bool orient = (in.number() & 1) == 0;
  const std::uint16_t wanted[] = {in.number<std::uint16_t>(), in.number<std::uint16_t>(),
                                  in.number<std::uint16_t>()};
  const ps::bytes_view file = in.rest();
  const ps::film_limits limits{.width = 320, .height = 320, .bytes = 1 << 18, .frames = 300};
  static ps::video_scratch scratch;  // what was decoded before changes nothing
  ps::video_scratch other;
  const auto strict = decode({.limits = limits, .orient = orient}, file, wanted, scratch);
  const std::uint64_t before = scratch.warnings;
  const auto recovered = decode({.limits = limits, .orient = orient, .recover = true}, file, wanted, scratch);
  if (strict.empty()) return 0;
  must(recovered == strict && scratch.warnings == before, "what is whole is the same with recover");
  must(decode({.limits = limits, .orient = orient}, file, wanted, other) == strict,
       "and is the same again, with memory of its own");
  return 0;
}
