// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// A safetensors file, and rows of its tensors: [type][file]

#include <penstock/source/safetensors.hpp>
#include <penstock/storage/memory_files.hpp>

#include "support/fuzz.hpp"

using namespace penstock_fuzz;
namespace ps = penstock;

namespace {

template <class T>
void read(ps::bytes_view bytes, const std::string& name) {
  outcome([&] {
    const auto rows = ps::safetensors_rows<T>(ps::memory_files().add_view("a", bytes), name);
    must(rows.row().elements() * sizeof(T) * rows.size() <= bytes.size(), "rows are within their file");
    const auto reader = rows.connect();
    typename decltype(rows.connect())::worker worker;
    for (std::uint64_t i = 0; i < std::min<std::uint64_t>(rows.size(), 20); ++i) {
      for (const std::uint64_t at : {i, rows.size() - 1 - i}) {
        reader.evaluate({0, at}, worker, [](const auto& row) {
          const auto view = row.finish();
          touch({reinterpret_cast<const std::byte*>(view.data()), view.shape().elements() * sizeof(T)});
        });
      }
    }
  });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const file_in_memory file;
  input in(data, size);
  const unsigned type = in.number();
  const ps::bytes_view bytes = in.rest();
  file.write(bytes);
  outcome([&] {
    const ps::safetensors_file all(file.path());
    std::uint64_t together = 0;
    for (const auto& [name, entry] : all.tensors()) {
      const auto found = all.bytes(name);
      touch(found);
      together += found.size();
      must(entry.begin + entry.bytes <= bytes.size(), "a tensor is within its file");
    }
    must(together < bytes.size(), "no byte belongs to two tensors");
    for (const auto& [key, value] : all.metadata()) touch(value);
    for (const auto& [name, entry] : all.tensors()) {
      if (type % 3 == 0) read<float>(bytes, name);
      if (type % 3 == 1) read<bool>(bytes, name);
      if (type % 3 == 2) read<std::uint16_t>(bytes, name);
      if (type >= 128) break;
    }
  });
  return 0;
}
