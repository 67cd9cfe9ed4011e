// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// What `preview` is made of: a source file for each kind of samples, of which those are built whose
// components there are.

#include "contact_sheet.hpp"

#include <penstock/image/pixels.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

struct preview_request {
  std::string shards, out;
  std::uint32_t count = 16, columns = 1;
  std::uint32_t size = 160;   ///< the height of a picture
  std::uint32_t frames = 6;   ///< of a film
  std::uint32_t seconds = 2;  ///< of a sound, as the model hears it
  std::uint64_t seed = 7;
  std::vector<std::string> captions = {};  ///< of the samples, in their order
};

/// Samples of which one member is shown.
struct preview_kind {
  std::string_view name;     ///< as after --show
  std::string_view members;  ///< the members that it reads: "mp4;mkv"
  std::uint32_t columns, size;
  void (*show)(preview_request);
};

/// All kinds; each source file adds its own before `main` begins.
inline std::vector<preview_kind>& preview_kinds() {
  static std::vector<preview_kind> kinds;
  return kinds;
}
struct add_preview_kind {
  explicit add_preview_kind(const preview_kind& kind) { preview_kinds().push_back(kind); }
};

/// The pairs of pictures of a contact sheet: each sample as it is and, right of it, augmented, with its
/// caption below them.
class preview_pairs {
 public:
  /// Throws `std::runtime_error` if they need too much memory.
  preview_pairs(const preview_request& request, penstock::image_size picture)
      : request_(request), picture_(picture) {
    // The batches and the sheet: each has two pictures of three bytes a pixel.
    constexpr std::uint64_t max_pixels = 1'000'000'000 / 12;
    const std::uint64_t pixels = std::uint64_t{picture.width} * picture.height;
    if (request.count * pixels > max_pixels)
      throw std::runtime_error(
          "--count " + std::to_string(request.count) + " with --size " + std::to_string(request.size) +
          " needs more than 1 GB; a sheet of that size has room for " + std::to_string(max_pixels / pixels));
  }

  /// Runs two plans, of which each has all samples in its first batch, and saves the sheet.
  /// `put(paper, x, y, batch, i)` draws sample `i` of a batch of either.
  template <class Plain, class Changed, class Put>
  void save(const Plain& originals, const Changed& augmented, const Put& put) const {
    auto first = originals.epoch(0);
    auto second = augmented.epoch(0);
    const auto plain = first.begin();
    const auto changed = second.begin();
    constexpr std::uint32_t gap = contact_sheet::gap, label_height = contact_sheet::label_height;
    const auto shown = static_cast<std::uint32_t>(request_.captions.size());
    const std::uint32_t cell_width = 2 * (picture_.width + gap) + gap,
                        cell_height = picture_.height + label_height + gap;
    const std::uint32_t across = std::min(request_.columns, shown), down = (shown + across - 1) / across;
    contact_sheet paper({across * cell_width + gap, label_height + down * cell_height + gap});
    for (std::uint32_t i = 0; i < shown; ++i) {
      const std::uint32_t left = gap + i % across * cell_width, right = left + picture_.width + gap,
                          y = label_height + gap + i / across * cell_height;
      // A line on top says which is which; a gray one stands between the two.
      if (i < across) {
        paper.put(left, 0, picture_.width, "original");
        paper.put(right, 0, picture_.width, "augmented");
      }
      put(paper, left, y, *plain, i);
      put(paper, right, y, *changed, i);
      paper.line(left + picture_.width + gap / 2, y, picture_.height);
      paper.put(left, y + picture_.height, cell_width - 2 * gap, request_.captions[i]);
    }
    paper.save(request_.out);
    std::printf("%s: %u samples, each as it is and augmented\n", request_.out.c_str(), shown);
  }

 private:
  const preview_request& request_;
  penstock::image_size picture_;
};
