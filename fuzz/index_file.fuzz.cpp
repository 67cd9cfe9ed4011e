// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Bytes as the index beside a good shard: [1 put sums right, 2 put the size right, 4 through files][index]

#include <penstock/source/webdataset.hpp>

#include "support/fuzz.hpp"
#include "support/raw_tar.hpp"
#include "support/tar.hpp"
#include "support/temp_dir.hpp"

using namespace penstock_fuzz;
namespace ps = penstock;

namespace {

struct shard {
  penstock_test::temp_dir folder;
  std::string path = (folder / "a.tar").string();
  ps::object_version version;
  std::vector<std::string> lines;

  shard() {
    penstock_test::raw_tar archive;
    archive.member("a.txt", "1").member("a.cls", "22").member("b.txt", "333").member("c.x", "").end();
    archive.save(path);
    version = ps::file(std::vector{path}).connect().version(0);
    lines =
        indexed_lines(ps::webdataset({path.c_str()}, {.index = ps::index_policy::transient, .threads = 1}));
  }
};

void repair(std::string& index, unsigned how, ps::object_version version) {
  auto* const at = reinterpret_cast<std::byte*>(index.data());
  std::memcpy(at, "PENSTIDX", 8);
  ps::detail::store_little<std::uint32_t>(at + 8, 1);
  ps::detail::store_little<std::uint32_t>(at + 12, 128);
  ps::detail::store_little<std::uint64_t>(at + 16, version.size);
  ps::detail::store_little<std::uint64_t>(at + 24, version.stamp);
  const auto field = [&](std::size_t i) { return ps::detail::load_little<std::uint64_t>(at + i); };
  const std::uint64_t before = 128 + 8 * (field(32) + 1) + 16 * field(40) + 4 * field(48) + field(56);
  if ((how & 2) != 0 && before <= index.size())
    ps::detail::store_little<std::uint64_t>(at + 64, index.size() - before);
  ps::detail::store_little<std::uint64_t>(at + 80, ps::detail::checksum(ps::bytes_of(index).subspan(128)));
  ps::detail::store_little<std::uint64_t>(at + 120, ps::detail::checksum(ps::bytes_of(index).first(120)));
}

void look_at(const ps::detail::shard_index& index, std::uint64_t shard_size) {
  std::uint64_t end = 0;
  std::uint32_t next = 0;
  for (std::uint64_t i = 0; i < index.header().samples; ++i) {
    must(index.first_member(i) == next && index.end_member(i) > next, "samples follow each other");
    touch(index.key(i));
    for (; next < index.end_member(i); ++next) {
      must(index.offset(next) >= end && index.size(next) <= shard_size - index.offset(next),
           "members are in their order and within the shard");
      end = index.offset(next) + index.size(next);
      touch(index.suffix(next));
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const shard good;
  input in(data, size);
  const unsigned how = in.number();
  std::string index(ps::text_of(in.rest()));
  if ((how & 1) != 0 && index.size() >= 128) repair(index, how, good.version);

  auto bytes = std::make_shared<ps::buffer>(index.size());
  if (!index.empty()) std::memcpy(bytes->data(), index.data(), index.size());
  const auto loaded = ps::detail::loaded_index::from_buffer(bytes);
  if (loaded) look_at(loaded->tables(), loaded->tables().header().shard_size);
  if ((how & 4) == 0) return 0;

  std::FILE* const out = std::fopen((good.path + ".penstock-index").c_str(), "wb");
  must(out != nullptr && std::fwrite(index.data(), 1, index.size(), out) == index.size(),
       "it can be written");
  std::fclose(out);
  for (const auto policy : {ps::index_policy::transient, ps::index_policy::require}) {
    outcome([&] {
      const auto lines = indexed_lines(ps::webdataset({good.path.c_str()}, {.index = policy, .threads = 1}));
      const auto header = ps::detail::index_header::load(ps::bytes_of(index));
      const bool empty = header && header->samples == 0;  // nothing is looked at then
      must(loaded || empty || lines == good.lines, "an index that is not in order is built again");
    });
  }
  return 0;
}
