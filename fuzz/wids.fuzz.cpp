// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// A description of wids, and one that it may name: [bytes of the first file, 16
// bits][shardindex.json][other.json]

#include <penstock/source/wids.hpp>

#include "support/fuzz.hpp"
#include "support/raw_tar.hpp"

#include <filesystem>
#include <fstream>
#include <vector>

using namespace penstock_fuzz;
namespace ps = penstock;

namespace {

struct folder {
  std::filesystem::path where =
      std::filesystem::temp_directory_path() / ("penstock_fuzz_" + std::to_string(::getpid()));
  folder() {
    std::filesystem::create_directories(where / "d");
    penstock_test::raw_tar().member("a.x", "1").member("b.x", "2").end().save((where / "s-0.tar").string());
    penstock_test::raw_tar().member("c.x", "3").end().save((where / "d" / "s-1.tar").string());
  }
  ~folder() {
    std::error_code ignored;
    std::filesystem::remove_all(where, ignored);
  }
  void write(const char* name, ps::bytes_view bytes) const {
    std::ofstream out(where / name, std::ios::binary);
    out.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const folder dataset;
  input in(data, size);
  dataset.write("shardindex.json", in.take(in.number<std::uint16_t>()));
  dataset.write("other.json", in.rest());
  const std::string path = (dataset.where / "shardindex.json").string();
  outcome([&] {
    ps::detail::wids_listing listing;
    ps::detail::wids_reader(path).read(listing);
    const std::vector<ps::detail::wids_shard>& said = listing.shards;
    for (const ps::detail::wids_shard& one : said) touch(one.path);
    const auto shards = ps::wids(path, {.index = ps::index_policy::transient});
    must(shards.manifest().shards().size() == said.size(), "as many shards as are listed");
    std::uint64_t samples = 0;
    for (const ps::detail::wids_shard& one : said) samples += one.samples;
    must(shards.size() == samples, "as many samples as are said");
    for (std::uint64_t i = 0; i < std::min<std::uint64_t>(shards.size(), 8); ++i)
      touch(shards.connect().key(i));
  });
  return 0;
}
