// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Images of any format with operations behind them: [how many operations][for each, its number and 4 bytes][a
// part, 16 bytes][file]. A part of the result equals that part of the whole result.

#include <penstock/codec/image_of.hpp>
#include <penstock/codec/jpeg.hpp>
#include <penstock/codec/png.hpp>
#include <penstock/codec/webp.hpp>
#include <penstock/image.hpp>

#include "support/fuzz.hpp"
#include "support/image.hpp"

#include <array>
#include <functional>
#include <list>
#include <memory>
#include <vector>

using namespace penstock_fuzz;

namespace {

/// Any lazy image of RGB, so that operations can be put together while the program runs.
class any_image : public ps::image_expression<any_image, std::uint8_t, 3> {
 public:
  template <ps::lazy_image I>
  explicit any_image(const I& image)
      : size_([image] { return image.size(); }),
        read_([image](const ps::image_part& part) { return image.read(part); }),
        draw_([image](const ps::image_part& part, const ps::destination<std::uint8_t>& into) {
          image.draw(part, into);
        }),
        memory_(&image.memory()) {}

  [[nodiscard]] ps::image_size size() const { return size_(); }
  [[nodiscard]] view_type read(const ps::image_part& part) const { return read_(part); }
  void draw(const ps::image_part& part, const ps::destination<std::uint8_t>& into) const {
    draw_(part, into);
  }
  [[nodiscard]] ps::image_scratch& memory() const { return *memory_; }

 private:
  std::function<ps::image_size()> size_;
  std::function<view_type(const ps::image_part&)> read_;
  std::function<void(const ps::image_part&, const ps::destination<std::uint8_t>&)> draw_;
  ps::image_scratch* memory_;
};

using codec = ps::image_of<ps::jpeg, ps::png, ps::webp>;

/// An operation from the input's numbers, on any image; those that need a scratch get one.
struct step {
  unsigned which = 0;
  std::array<std::uint8_t, 4> n{};

  template <class I>
  [[nodiscard]] any_image behind(const I& image, std::list<ps::image_scratch>& scratches) const {
    const auto with = [&](const auto& operation) {
      const ps::call<ps::image_scratch> c{{0, n[3]}, 0, 1, which, scratches.emplace_back()};
      return any_image(operation(image, c));
    };
    const unsigned a = n[0] % 40u + 1, b = n[1] % 40u + 1;
    const auto how = static_cast<ps::interpolation>(n[2] % 4);
    const bool antialias = (n[2] & 4) != 0;
    const auto mode = static_cast<ps::padding_mode>(n[2] % 4);
    switch (which % 14) {
      case 0:
        return with(ps::resize(a, b, {.how = how, .antialias = antialias}));
      case 1:
        return with(ps::random_resized_crop(a, b, {.how = how, .antialias = antialias}));
      case 2:
        return with(ps::resize(a, {.how = how, .antialias = antialias, .max_size = a + b}));
      case 3:
        return with(ps::crop(n[0] % 16, n[1] % 16, n[2] % 32 + 1, n[3] % 32 + 1));
      case 4:
        return with(ps::center_crop(a, b));
      case 5:
        return with(ps::random_crop(a, b, {.padding = n[2] % 5, .pad_if_needed = true}));
      case 6:
        return with(ps::pad(n[0] % 9, n[1] % 9, n[2] % 9, n[3] % 9, {.mode = mode}));
      case 7:
        return with(ps::horizontal_flip());
      case 8:
        return with(ps::vertical_flip());
      case 9:
        return with(ps::rotate({-1.0 * a, 1.0 * b}));
      case 10:
        return with(ps::affine({.degrees = {-1.0 * a, 1.0 * b}}));
      case 11:
        return with(ps::gaussian_blur(static_cast<int>(n[0] % 4) * 2 + 1));
      case 12:
        return with(ps::color_jitter(n[0] / 256.0, n[1] / 256.0, n[2] / 256.0, 0.2));
      default:
        return with(ps::grayscale<3>());
    }
  }
};

/// The pixels of an image's part, or of all of it, or the error; each time from the file on.
struct pixels {
  std::string line;
  ps::image_size size;
  std::vector<std::uint8_t> values;
};
template <class Read>
pixels made(const codec& decoder, ps::bytes_view file, const std::vector<step>& steps, Read read) {
  static codec::scratch scratch;
  pixels all;
  all.line = outcome([&] {
    std::list<ps::image_scratch> scratches;
    const auto decoded = decoder.decode(file, scratch);
    if (steps.empty()) return read(any_image(decoded), all);
    any_image image = steps[0].behind(decoded, scratches);
    for (std::size_t i = 1; i < steps.size(); ++i) image = steps[i].behind(image, scratches);
    read(image, all);
  });
  return all;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  input in(data, size);
  const unsigned how = in.number();
  std::vector<step> steps(how % 5);
  for (step& one : steps) {
    one.which = in.number();
    for (auto& n : one.n) n = in.number();
  }
  const ps::bytes_view chosen = in.take(16);
  input numbers(reinterpret_cast<const std::uint8_t*>(chosen.data()), chosen.size());
  const ps::bytes_view file = in.rest();
  constexpr ps::image_limits limits{.width = 400, .height = 400, .bytes = 1 << 19};
  const codec decoder(ps::jpeg{.limits = limits, .dct_scaling = (how & 128) != 0, .scans = 10},
                      ps::png{.limits = limits}, ps::webp{.limits = limits});

  const pixels whole = made(decoder, file, steps, [](const any_image& image, pixels& to) {
    to.size = image.size();
    const auto all = image.finish();
    must(all.shape() == image.shape(), "an image has its shape");
    to.values.assign(all.data(), all.data() + all.size());
  });
  if (!whole.line.empty() || whole.size.width == 0 || whole.size.height == 0) return 0;
  const ps::image_part part = some_part(whole.size, numbers);
  const auto expect = [&](const std::vector<std::uint8_t>& got, const char* what) {
    const std::size_t row = std::size_t{part.width} * 3;
    must(got.size() == row * part.height, what);
    for (std::size_t y = 0; y < part.height; ++y)
      must(std::equal(got.begin() + static_cast<std::ptrdiff_t>(y * row),
                      got.begin() + static_cast<std::ptrdiff_t>((y + 1) * row),
                      whole.values.begin() +
                          static_cast<std::ptrdiff_t>(((part.y + y) * whole.size.width + part.x) * 3)),
           what);
  };
  const pixels some = made(decoder, file, steps, [&](const any_image& image, pixels& to) {
    const auto view = image.read(part);
    must(view.size() == part.size(), "a part has its size");
    for (std::size_t y = 0; y < part.height; ++y)
      to.values.insert(to.values.end(), view.row(y), view.row(y) + view.row_values());
  });
  must(some.line.empty(), "a part of a good image is good");
  expect(some.values, "a part that is read is that of the whole");
  const pixels drawn = made(decoder, file, steps, [&](const any_image& image, pixels& to) {
    to.values.resize(std::size_t{part.width} * part.height * 3);
    image.draw(part,
               ps::destination<std::uint8_t>(
                   to.values.data(), ps::extents(std::size_t{part.height}, std::size_t{part.width}, 3)));
  });
  must(drawn.line.empty(), "a part of a good image can be drawn");
  expect(drawn.values, "a part that is drawn is that of the whole");
  return 0;
}
