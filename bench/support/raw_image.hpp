// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/image/lazy_image.hpp>

#include <cstdint>

namespace bench {

/// Pixels in memory, as a lazy image.
class raw_image : public penstock::image_expression<raw_image, std::uint8_t, 3> {
 public:
  raw_image(view_type pixels, penstock::image_scratch& s) : pixels_(pixels), scratch_(&s) {}
  [[nodiscard]] penstock::image_size size() const { return pixels_.size(); }
  [[nodiscard]] penstock::image_scratch& memory() const { return *scratch_; }
  [[nodiscard]] view_type read(const penstock::image_part& part) const { return pixels_.part(part); }

 private:
  view_type pixels_;
  penstock::image_scratch* scratch_;
};

}  // namespace bench
