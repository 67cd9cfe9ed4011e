// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: with_sound<Film, Sound> adds the sound of a film, or of a clip

#include <penstock/codec/sound_track.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/decode.hpp>
#include <penstock/stage/map.hpp>
#include <penstock/video/clip.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace ps = penstock;

int main() {
  const auto films = ps::from(std::vector<std::string>{"film"}) | ps::map([](const std::string& film) {
                       return ps::record<ps::field<"mp4", std::string_view>>(film);
                     });
#ifdef PENSTOCK_WRONG
  auto loader = films | ps::map(ps::with_sound<"mp4", "sound">()) | ps::batch(1);
#else
  auto loader = films | ps::decode<ps::field<"mp4", ps::video>> | ps::map<"mp4">(ps::clip(2)) |
                ps::map(ps::with_sound<"mp4", "sound">()) | ps::batch(1);
#endif
  std::size_t sum = 0;
  for (auto&& b : loader.epoch(0)) sum += b.size();
  return sum == 0;
}
