// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// IDX files: [type][file]

#include <penstock/source/idx.hpp>

#include "support/fuzz.hpp"

using namespace penstock_fuzz;
namespace ps = penstock;

namespace {

template <class T>
void read(ps::bytes_view bytes) {
  ps::buffer copy(bytes.size());
  if (!bytes.empty()) std::memcpy(copy.data(), bytes.data(), bytes.size());
  outcome([&] {
    const ps::idx_source<T> rows(std::move(copy), "a.idx");
    touch(rows.describe());
    const auto reader = rows.connect();
    typename decltype(rows.connect())::worker worker;
    for (std::uint64_t i = 0; i < std::min<std::uint64_t>(rows.size(), 100); ++i) {
      for (const std::uint64_t at : {i, rows.size() - 1 - i}) {
        reader.evaluate({0, at}, worker, [&](const auto& row) {
          const auto view = row.finish();
          must(view.shape().elements() * sizeof(T) <= bytes.size(), "a row is within its file");
          touch({reinterpret_cast<const std::byte*>(view.data()), view.shape().elements() * sizeof(T)});
        });
      }
    }
  });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  input in(data, size);
  const unsigned type = in.number();
  const ps::bytes_view bytes = in.rest();
  if (type % 3 == 0) read<std::uint8_t>(bytes);
  if (type % 3 == 1) read<std::int16_t>(bytes);
  if (type % 3 == 2) read<double>(bytes);
  return 0;
}
