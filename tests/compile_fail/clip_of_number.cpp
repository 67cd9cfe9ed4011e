// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: this operation chooses frames of a film and gets something else

#include <penstock/image.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/map.hpp>
#include <penstock/video/clip.hpp>

#include <vector>

namespace ps = penstock;

namespace clip_of_number {

/// Only declared, as far as possible: this is compiled, and not run.
struct film {
  using unfinished = void;
  using is_lazy_film = void;

  [[nodiscard]] ps::film_facts facts() const;
  [[nodiscard]] ps::film_facts finish() const;
  [[nodiscard]] std::uint64_t frame_at(double) const;
  [[nodiscard]] ps::shown_image<std::uint8_t, 3> picture() const;
  [[nodiscard]] ps::buffer& memory() const;
  void each_of(std::span<const std::uint32_t> /*frames*/, const auto& draw) const { draw(std::size_t{0}); }
};

}  // namespace clip_of_number

int main() {
  const auto films = ps::from(std::vector<int>{1, 2}) | ps::map([](int) { return clip_of_number::film(); });
#ifdef PENSTOCK_WRONG
  auto loader = ps::from(std::vector<int>{1, 2}) | ps::map(ps::clip(2)) | ps::batch(2);
#else
  auto loader = films | ps::map(ps::clip(2), ps::resize(2, 2)) | ps::batch(2);
#endif
  std::size_t sum = 0;
  for (auto&& b : loader.epoch(0)) sum += b.size();
  return sum == 0;
}
