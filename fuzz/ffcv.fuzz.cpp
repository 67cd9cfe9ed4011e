// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// A file of FFCV: [file]

#include <penstock/codec/ffcv_image.hpp>
#include <penstock/codec/mds_array.hpp>
#include <penstock/source/ffcv.hpp>
#include <penstock/storage/file.hpp>
#include <penstock/storage/memory_files.hpp>

#include "support/fuzz.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

using namespace penstock_fuzz;
namespace ps = penstock;

namespace {

/// The bytes of the first and the last samples, or why there are none.
template <class Source>
std::string values_of(const Source& all, std::size_t file_size) {
  std::string found;
  const auto reader = all.connect();
  typename decltype(all.connect())::worker worker;
  for (std::uint64_t i = 0; i < std::min<std::uint64_t>(all.size(), 20); ++i)
    for (const std::uint64_t at : {i, all.size() - 1 - i})
      found += outcome([&] {
        reader.evaluate({0, at}, worker, [&](const auto& sample) {
          for (std::size_t k = 0; k < sample.size(); ++k) {
            const auto value = sample.member(k);
            found += outcome([&] {
              must(value.size() <= file_size, "a value is not larger than its file");
              found += ps::text_of(value.finish().first(std::min<std::size_t>(value.finish().size(), 64)));
              ps::ffcv_image<>::scratch scratch;
              if (value.encoding() == "image") {
                const auto image = ps::ffcv_image<>{}.decode(value, scratch);
                must(std::uint64_t{3} * image.size().width * image.size().height == value.size(),
                     "an image has the bytes of its pixels");
              }
              ps::mds_array<float>::scratch numbers;
              if (value.encoding().starts_with("ndarray")) {
                const auto view = ps::mds_array<float>{}.decode(value, numbers).finish();
                must(view.shape().elements() * sizeof(float) == value.size(),
                     "an array has the bytes of its values");
              }
            });
          }
        });
      });
  return found;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const file_in_memory file;
  const ps::bytes_view bytes = input(data, size).rest();
  std::string shown, copied;
  const std::string refused =
      outcome([&] { shown = values_of(ps::ffcv(ps::memory_files().add_view("x", bytes)), bytes.size()); });
  if (!refused.empty()) return 0;
  file.write(bytes);
  const std::string other = outcome([&] {
    copied = values_of(ps::ffcv(ps::file(std::vector{file.path()}, {.access = ps::file_access::read})),
                       bytes.size());
  });
  must(other.empty(), "both storages give samples");
  must(shown.size() == copied.size(), "both storages give the same samples");
  return 0;
}
