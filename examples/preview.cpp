// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Shows what a model sees: a contact sheet, as PNG, of the first samples of an epoch. For each sample it has
// the image as it is, the image after augmentation, and the label below: its number, and its name if there is
// a file of names. The order and the random numbers are those of a training loop with the same seed and the
// same stages.

#include "arguments.hpp"
#include "contact_sheet.hpp"

#include <penstock/codec/image_of.hpp>
#include <penstock/codec/integer.hpp>
#include <penstock/codec/jpeg.hpp>
#include <penstock/codec/npy_image.hpp>
#include <penstock/codec/png.hpp>
#include <penstock/codec/webp.hpp>
#include <penstock/image.hpp>
#include <penstock/penstock.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace ps = penstock;

namespace {

constexpr std::uint32_t gap = contact_sheet::gap, label_height = contact_sheet::label_height;

/// The lines of a file: name 0, name 1, ...
std::vector<std::string> names_in(const std::string& path) {
  std::ifstream lines(path);
  if (!lines) throw std::runtime_error("cannot read " + path);
  std::vector<std::string> names;
  for (std::string one; std::getline(lines, one);) {
    if (one.ends_with('\r')) one.pop_back();
    names.push_back(one);
  }
  return names;
}

std::string label_text(std::int64_t label, const std::vector<std::string>& names) {
  const bool named = label >= 0 && static_cast<std::uint64_t>(label) < names.size();
  return std::to_string(label) + (named ? " " + names[static_cast<std::size_t>(label)] : "");
}

void preview(const std::string& shards, const std::string& out, std::uint32_t count, std::uint32_t columns,
             std::uint32_t size, std::uint64_t seed, const std::vector<std::string>& names) {
  if (count == 0 || columns == 0 || size < 16)
    throw std::runtime_error("--count and --columns are at least 1, and --size is from 16 to 4096");
  // The batches and the sheet: each has two images of three bytes a pixel.
  constexpr std::uint64_t max_pixels = 1'000'000'000 / 12;
  if (std::uint64_t{count} * size * size > max_pixels)
    throw std::runtime_error("--count " + std::to_string(count) + " with --size " + std::to_string(size) +
                             " needs more than 1 GB; a sheet of that size has room for " +
                             std::to_string(max_pixels / (std::uint64_t{size} * size)));
  using picture = ps::image_of<ps::jpeg, ps::png, ps::webp, ps::npy_image>;
  const auto samples =
      ps::webdataset(shards) |
      ps::decode<ps::field<"jpg;jpeg;png;webp;npy", picture>, ps::field<"cls", ps::integer>> |
      ps::shuffle(ps::seed(seed)) | ps::take(count);
  const auto originals =
      samples | ps::map<"jpg">(ps::resize(size), ps::center_crop(size)) | ps::batch(count) | ps::workers(2);
  const auto jitter = ps::color_jitter(0.4, 0.4, 0.4);
  const auto augmented = samples |
                         ps::map<"jpg">(ps::random_resized_crop(size), ps::horizontal_flip(), jitter) |
                         ps::batch(count) | ps::seed(seed) | ps::workers(2);

  auto first = originals.epoch(0);
  auto second = augmented.epoch(0);
  const auto plain = first.begin();
  const auto changed = second.begin();
  const auto shown = static_cast<std::uint32_t>((*plain).size());
  // A line on top says which is which; a gray one stands between the two.
  const std::uint32_t cell_width = 2 * (size + gap) + gap, cell_height = size + label_height + gap;
  const std::uint32_t across = std::min(columns, shown), down = (shown + across - 1) / across;
  contact_sheet paper({across * cell_width + gap, label_height + down * cell_height + gap});
  for (std::uint32_t i = 0; i < shown; ++i) {
    const std::uint32_t left = gap + i % across * cell_width, right = left + size + gap,
                        y = label_height + gap + i / across * cell_height;
    if (i < across) {
      paper.put(left, 0, size, "original");
      paper.put(right, 0, size, "augmented");
    }
    paper.put(left, y, ps::get<"jpg">(*plain)[i]);
    paper.put(right, y, ps::get<"jpg">(*changed)[i]);
    paper.line(left + size + gap / 2, y, size);
    paper.put(left, y + size, right + size - left, label_text(ps::get<"cls">(*plain)[i], names));
  }
  paper.save(out);
  std::printf("%s: %u samples, each as it is and augmented\n", out.c_str(), shown);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string usage =
      "preview --shards PATTERN --out FILE.png [--names FILE] [--count 16] [--columns 4] [--size 160] "
      "[--seed 7]\n"
      "  --names  the names of the labels, one a line: the first is that of label 0";
  if (asked_for_help(argc, argv, usage)) return 0;
  try {
    arguments given(argc, argv, usage);
    const std::string shards = given.text("shards"), out = given.text("out");
    const auto count = static_cast<std::uint32_t>(given.number("count", 16, 10'000));
    const auto columns = static_cast<std::uint32_t>(given.number("columns", 4, 10'000));
    const auto size = static_cast<std::uint32_t>(given.number("size", 160, 4096));
    const std::uint64_t seed = given.number("seed", 7);
    const std::string names = given.text("names", "");
    given.done();
    preview(shards, out, count, columns, size, seed,
            names.empty() ? std::vector<std::string>() : names_in(names));
    return 0;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "preview: %s\n", e.what());
    return 1;
  }
}
