// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The codecs npy and npy_image, arrays in batches and taken apart, and rows of npy files: [type][bytes of a
// first file, 16 bits][first file][second file]

#include <penstock/codec/npy.hpp>
#include <penstock/codec/npy_image.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/source/npy_rows.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/decode.hpp>
#include <penstock/stage/unbatch.hpp>
#include <penstock/stage/workers.hpp>
#include <penstock/storage/memory_files.hpp>

#include "support/fuzz.hpp"

#include <algorithm>
#include <string>
#include <vector>

using namespace penstock_fuzz;
namespace ps = penstock;

namespace {

/// Batches of both files' arrays, and their rows.
template <class T>
void through_pipelines(ps::bytes_view first, ps::bytes_view second) {
  const auto arrays =
      ps::from(std::vector{std::string(ps::text_of(first)), std::string(ps::text_of(second))}) |
      ps::decode<ps::npy<T>>;
  outcome([&] {
    for (auto&& b : (arrays | ps::batch(2, ps::pad_to_longest) | ps::workers(0)).epoch(0)) {
      const auto view = b.values();
      std::uint64_t rows = 0;
      for (const std::uint64_t length : view.lengths()) rows += length;
      must(static_cast<std::uint64_t>(std::count(view.mask().begin(), view.mask().end(), 1)) == rows,
           "the mask has as many rows as the arrays");
      const std::uint64_t row = view.shape().drop_front().drop_front().elements();
      must(rows * row * sizeof(T) <= first.size() + second.size(),
           "arrays in a batch are within their files");
      touch({reinterpret_cast<const std::byte*>(view.values().data()), view.shape().elements() * sizeof(T)});
    }
  });
  outcome([&] {
    std::uint64_t bytes = 0;
    for (auto&& b : (arrays | ps::unbatch | ps::batch(64, ps::ragged) | ps::workers(0)).epoch(0)) {
      const auto values = b.values().values();
      touch({reinterpret_cast<const std::byte*>(values.data()), values.size() * sizeof(T)});
      bytes += values.size() * sizeof(T);
    }
    must(bytes <= first.size() + second.size(), "rows of arrays are within their files");
  });
}

template <class T>
void read(ps::bytes_view first, ps::bytes_view second) {
  static typename ps::npy<T>::scratch scratch;
  outcome([&] {
    const auto array = ps::npy<T>{}.decode(first, scratch);
    const std::uint64_t elements = array.shape().elements();
    must(elements * sizeof(T) <= first.size(), "an array is within its file");
    std::vector<std::byte> values(static_cast<std::size_t>(elements) * sizeof(T));
    array.write_to(ps::destination(reinterpret_cast<T*>(values.data()), array.shape()));
    const auto view = array.finish();
    must(values.empty() || std::memcmp(view.data(), values.data(), values.size()) == 0,
         "both ways give the same values");
    const auto again = ps::npy_bytes<T>(array.shape(), {view.data(), static_cast<std::size_t>(elements)});
    const auto copy = ps::npy<T>{}.decode(ps::bytes_view(again), scratch);
    must(copy.shape() == array.shape(), "what is written has the same shape");
    through_pipelines<T>(first, second);
  });
  outcome([&] {
    const auto rows = ps::npy_rows<T>(ps::memory_files().add_view("a", first).add_view("b", second));
    const auto reader = rows.connect();
    typename decltype(rows.connect())::worker worker;
    must(rows.row().elements() * sizeof(T) * rows.size() <= first.size() + second.size(),
         "rows are within their files");
    for (std::uint64_t i = 0; i < std::min<std::uint64_t>(rows.size(), 100); ++i) {
      for (const std::uint64_t at : {i, rows.size() - 1 - i}) {
        reader.evaluate({0, at}, worker, [](const auto& row) {
          const auto view = row.finish();
          touch({reinterpret_cast<const std::byte*>(view.data()), view.shape().elements() * sizeof(T)});
        });
      }
    }
  });
}

template <class Format>
void as_image(ps::bytes_view file) {
  static ps::image_scratch scratch;
  outcome([&] {
    const auto image = ps::npy_image_as<Format>{}.decode(file, scratch);
    const std::uint64_t bytes = image.shape().elements() * sizeof(typename Format::value_type);
    must(bytes <= file.size(), "an image is within its file");
    touch({reinterpret_cast<const std::byte*>(image.finish().data()), static_cast<std::size_t>(bytes)});
  });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  input in(data, size);
  const unsigned type = in.number();
  const ps::bytes_view first = in.take(in.number<std::uint16_t>());
  const ps::bytes_view second = in.rest();
  switch (type % 4) {
    case 0:
      read<float>(first, second);
      break;
    case 1:
      read<std::uint8_t>(first, second);
      as_image<ps::rgb8>(first);
      as_image<ps::gray16>(first);
      break;
    case 2:
      read<bool>(first, second);
      break;
    default:
      read<std::int64_t>(first, second);
  }
  return 0;
}
