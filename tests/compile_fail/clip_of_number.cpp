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

struct film {
  using unfinished = void;
  using is_lazy_film = void;
  ps::buffer* own;

  [[nodiscard]] ps::film_facts facts() const { return {1, {1, 1}, 1, 0, 1}; }
  [[nodiscard]] ps::film_facts finish() const { return facts(); }
  [[nodiscard]] std::uint64_t frame_at(double) const { return 0; }
  [[nodiscard]] ps::shown_image<std::uint8_t, 3> picture() const {
    static const std::uint8_t pixel[3] = {1, 2, 3};
    return ps::shown_image<std::uint8_t, 3>(ps::pixel_view<std::uint8_t, 3>(pixel, {1, 1}));
  }
  [[nodiscard]] ps::buffer& memory() const { return *own; }
  void each_of(std::span<const std::uint32_t> frames, const auto& draw) const {
    for (std::size_t i = 0; i < frames.size(); ++i) draw(i);
  }
};
struct as_film {
  using accepts_call = void;
  using scratch = ps::buffer;
  film operator()(int, const ps::call<scratch>& c) const { return {&c.scratch}; }
};

}  // namespace clip_of_number

int main() {
  const auto films = ps::from(std::vector<int>{1, 2}) | ps::map(clip_of_number::as_film());
#ifdef PENSTOCK_WRONG
  auto loader = ps::from(std::vector<int>{1, 2}) | ps::map(ps::clip(2)) | ps::batch(2);
#else
  auto loader = films | ps::map(ps::clip(2), ps::resize(2, 2)) | ps::batch(2);
#endif
  std::size_t sum = 0;
  for (auto&& b : loader.epoch(0)) sum += b.size();
  return sum == 0;
}
