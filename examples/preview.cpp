// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Shows what a model sees: a contact sheet, as PNG, of the first samples of an epoch. For each sample it has
// the image as it is, the image after augmentation, and the label below: its number, and its name if there is
// a file of names. Of a film it shows a strip of frames, of a sound the waveform and the mel features. The
// extensions of the members say which of them samples are. The order and the random numbers are those of a
// training loop with the same seed and the same stages.

#include "arguments.hpp"
#include "preview_parts.hpp"

#include <penstock/codec/image_of.hpp>
#include <penstock/codec/jpeg.hpp>
#include <penstock/codec/npy_image.hpp>
#include <penstock/codec/png.hpp>
#include <penstock/codec/webp.hpp>
#include <penstock/image.hpp>
#include <penstock/penstock.hpp>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ps = penstock;

namespace {

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

constexpr ps::fixed_string members = "jpg;jpeg;png;webp;npy";

void show_images(preview_request request) {
  const std::uint32_t size = request.size;
  const preview_pairs pairs(request, {size, size});
  using picture = ps::image_of<ps::jpeg, ps::png, ps::webp, ps::npy_image>;
  const auto samples = ps::webdataset(request.shards) | ps::decode<ps::field<members, picture>> |
                       ps::shuffle(ps::seed(request.seed)) | ps::take(request.count);
  const auto originals = samples | ps::map<"jpg">(ps::resize(size), ps::center_crop(size)) |
                         ps::batch(request.count) | ps::workers(2);
  const auto jitter = ps::color_jitter(0.4, 0.4, 0.4);
  const auto augmented = samples |
                         ps::map<"jpg">(ps::random_resized_crop(size), ps::horizontal_flip(), jitter) |
                         ps::batch(request.count) | ps::seed(request.seed) | ps::workers(2);
  pairs.save(originals, augmented,
             [](contact_sheet& paper, std::uint32_t x, std::uint32_t y, const auto& batch, std::uint32_t i) {
               paper.put(x, y, ps::get<"jpg">(batch)[i]);
             });
}

const add_preview_kind added({"images", members.text, 4, 160, &show_images});

/// The names of the kinds that read a member of a sample, with a comma between them.
template <class Sample>
std::string kinds_of(const Sample& sample) {
  std::string names;
  for (const preview_kind& kind : preview_kinds()) {
    const std::string read = ";" + std::string(kind.members) + ";";
    bool reads = false;
    for (std::size_t i = 0; i < sample.size(); ++i)
      reads = reads || read.find(";" + std::string(sample.name(i)) + ";") != read.npos;
    if (reads) names.append(names.empty() ? "" : ", ").append(kind.name);
  }
  return names;
}

/// The label in `cls` with its name, otherwise the first line of `txt`, otherwise the key.
template <class Sample>
std::string caption_of(const Sample& sample, const std::vector<std::string>& names) {
  std::string caption(sample.key());
  for (std::size_t i = 0; i < sample.size(); ++i) {
    if (sample.name(i) != "cls" && sample.name(i) != "txt") continue;
    const std::string_view all = ps::text_of(sample.member(i).finish());
    caption = all.substr(0, all.find_first_of("\r\n"));
    if (sample.name(i) == "txt") continue;
    std::size_t label = 0;
    const char* const end = caption.data() + caption.size();
    if (std::from_chars(caption.data(), end, label).ptr == end && label < names.size())
      caption += " " + names[label];
    break;
  }
  return caption;
}

/// Fills in the captions, and returns the names of the kinds that the first sample is of.
std::string look_at(preview_request& request, const std::vector<std::string>& names) {
  const auto texts =
      ps::webdataset(request.shards) |
      ps::map([&](const auto& sample) { return kinds_of(sample) + "\n" + caption_of(sample, names); }) |
      ps::shuffle(ps::seed(request.seed)) | ps::take(request.count) | ps::batch(request.count, ps::ragged);
  std::string kinds;
  for (auto&& batch : texts.epoch(0))
    for (std::size_t i = 0; i < batch.size(); ++i) {
      const std::string text(batch.values()[i].begin(), batch.values()[i].end());
      if (request.captions.empty()) kinds = text.substr(0, text.find('\n'));
      request.captions.push_back(text.substr(text.find('\n') + 1));
    }
  if (request.captions.empty()) throw std::runtime_error("there are no samples in " + request.shards);
  return kinds;
}

const preview_kind& kind_of_name(const std::string& name) {
  std::string known;
  for (const preview_kind& kind : preview_kinds()) {
    if (kind.name == name) return kind;
    known.append(known.empty() ? "" : ", ").append(kind.name).append(" (").append(kind.members).append(")");
  }
  throw std::runtime_error(name.empty() ? "the first sample has no member of " + known
                                        : "'" + name + "' is not one kind; write --show and one of " + known);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string usage =
      "preview --shards PATTERN --out FILE.png [--names FILE] [--show KIND] [--count 16] [--columns N] "
      "[--size N] [--frames 6] [--seconds 2] [--seed 7]\n"
      "  --names    the names of the labels, one a line: the first is that of label 0\n"
      "  --show     images, films or sounds; needed only if samples have several of them\n"
      "  --columns  samples side by side: 4 images, or 1 film or sound\n"
      "  --size     the height of a picture: of images 160, films 96, sounds 320\n"
      "  --frames   of a film\n"
      "  --seconds  of the augmented sound";
  if (asked_for_help(argc, argv, usage)) return 0;
  try {
    arguments given(argc, argv, usage);
    preview_request request;
    request.shards = given.text("shards");
    request.out = given.text("out");
    const auto number = [&](const std::string& name, std::uint32_t otherwise, std::uint32_t maximum) {
      return static_cast<std::uint32_t>(given.number(name, otherwise, maximum));
    };
    request.count = number("count", request.count, 10'000);
    const bool own_columns = given.has("columns"), own_size = given.has("size");
    request.columns = number("columns", request.columns, 10'000);
    request.size = number("size", request.size, 4096);
    request.frames = number("frames", request.frames, 1000);
    request.seconds = number("seconds", request.seconds, 600);
    request.seed = given.number("seed", request.seed);
    const std::string names = given.text("names", ""), show = given.text("show", "");
    given.done();
    if (request.count == 0 || request.columns == 0 || request.size < 16 || request.frames == 0 ||
        request.seconds == 0)
      throw std::runtime_error(
          "--count, --columns, --frames and --seconds are at least 1, and --size is from 16 to 4096");
    const std::string kinds = look_at(request, names.empty() ? std::vector<std::string>() : names_in(names));
    const preview_kind& kind = kind_of_name(show.empty() ? kinds : show);
    if (!own_columns) request.columns = kind.columns;
    if (!own_size) request.size = kind.size;
    kind.show(std::move(request));
    return 0;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "preview: %s\n", e.what());
    return 1;
  }
}
