// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Energon's metadata: [bytes of the first file, 16 bits][.info.json][split.yaml]

#include <penstock/source/energon.hpp>

#include "support/fuzz.hpp"

#include <filesystem>
#include <fstream>

using namespace penstock_fuzz;
namespace ps = penstock;

namespace {

struct folder {
  std::filesystem::path where =
      std::filesystem::temp_directory_path() / ("penstock_fuzz_" + std::to_string(::getpid()));
  folder() { std::filesystem::create_directories(where / ".nv-meta"); }
  ~folder() {
    std::error_code ignored;
    std::filesystem::remove_all(where, ignored);
  }
  void write(const char* name, ps::bytes_view bytes) const {
    std::ofstream out(where / ".nv-meta" / name, std::ios::binary);
    out.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const folder dataset;
  input in(data, size);
  dataset.write(".info.json", in.take(in.number<std::uint16_t>()));
  dataset.write("split.yaml", in.rest());
  outcome([&] {
    const auto part = ps::read_energon_part(dataset.where.string(), "train");
    must(!part.paths.empty() && part.paths.size() == part.samples.size(), "each shard has a number");
    for (const std::string& path : part.paths) {
      must(path.find("/../") == std::string::npos && !path.ends_with("/.."), "shards lie in the folder");
      touch(path);
    }
  });
  return 0;
}
