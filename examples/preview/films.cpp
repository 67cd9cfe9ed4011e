// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Films as strips: frames from the first to the last one, and the clip of this epoch.

#include "../preview_parts.hpp"

#include <penstock/codec/video.hpp>
#include <penstock/image.hpp>
#include <penstock/penstock.hpp>
#include <penstock/video/clip.hpp>

#include <array>
#include <cstdint>
#include <cstdio>
#include <string>

namespace ps = penstock;

namespace {

constexpr ps::fixed_string members = "mp4;m4v;mov;mkv;webm";

std::string facts_text(const ps::film_facts& film) {
  std::array<char, 120> text{};
  std::snprintf(text.data(), text.size(), "  %u x %u, %.1f s, %.4g frames/s", film.size.width,
                film.size.height, film.duration, film.frame_rate);
  return text.data();
}

void show(preview_request request) {
  const std::uint32_t size = request.size, distance = size + 2;
  const preview_pairs pairs(request, {request.frames * distance - 2, size});
  const auto samples = ps::webdataset(request.shards) | ps::decode<ps::field<members, ps::video>> |
                       ps::shuffle(ps::seed(request.seed)) | ps::take(request.count);
  const auto facts = samples | ps::map<"mp4">(&facts_text) | ps::batch(request.count, ps::ragged);
  const auto originals =
      samples | ps::map<"mp4">(ps::uniform_frames(request.frames), ps::resize(size), ps::center_crop(size)) |
      ps::batch(request.count) | ps::workers(2);
  const auto augmented =
      samples |
      ps::map<"mp4">(ps::random_clip(request.frames, {.stride = 4}), ps::random_resized_crop(size),
                     ps::horizontal_flip(), ps::color_jitter(0.4, 0.4, 0.4)) |
      ps::batch(request.count) | ps::seed(request.seed) | ps::workers(2);
  auto known = facts.epoch(0);
  const auto texts = known.begin();
  for (std::size_t i = 0; i < request.captions.size(); ++i) {
    const auto text = ps::get<"mp4">(*texts)[i];
    request.captions[i].append(text.begin(), text.end());
  }
  pairs.save(originals, augmented,
             [&](contact_sheet& paper, std::uint32_t x, std::uint32_t y, const auto& batch, std::uint32_t i) {
               const auto clip = ps::get<"mp4">(batch)[i];
               paper.fill(x, y, {request.frames * distance - 2, size}, {128, 128, 128});
               for (std::uint32_t frame = 0; frame < request.frames; ++frame)
                 paper.put(x + frame * distance, y, clip[frame]);
             });
}

const add_preview_kind added({"films", members.text, 1, 96, &show});

}  // namespace
