// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Changes of a cache's index, as a death or a power cut could leave it: [1 read from a mapping, 2 damaged
// blocks, too, 4 its last user died while it changed it, 8 once more while two sessions plan by it, 16 these
// know how their runs end][place, 2 bytes; a byte to write there]...

#include <penstock/storage/cached.hpp>
#include <penstock/storage/memory_files.hpp>

#include "support/fuzz.hpp"
#include "support/stamped_files.hpp"
#include "support/temp_dir.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

using namespace penstock_fuzz;
namespace ps = penstock;

namespace {

constexpr std::uint64_t block = 128 << 10, slots = 4;

/// Three objects of five blocks, and a folder with room for four.
struct folder {
  penstock_test::temp_dir dir;
  std::string where = (dir.path() / "cache").string();
  std::vector<std::string> contents;
  penstock_test::stamped_files files;
  std::string index, blocks;

  [[nodiscard]] auto cache() const {
    // What is fetched ahead is a matter of time.
    return ps::cached(files, ps::disk_cache(where, (slots + 1) * block, {.block = block, .ahead = 0}));
  }
  template <class Session>
  void read_all(Session& session) const {
    std::vector<std::byte> got;
    for (ps::object_id id = 0; id < contents.size(); ++id) {
      got.resize(contents[id].size());
      session.read(id, 0, got);
      must(ps::text_of(got) == contents[id], "other bytes");
    }
  }
  /// Says that a run stands at a turn, and will read the objects in some order, twice.
  template <class Session>
  void plan_with(Session& session, std::uint64_t turn, std::size_t order, bool ends) const {
    const ps::access_plan_sink plan = session.access_plan();
    plan.forget(plan.self);
    const std::size_t count = contents.size();
    for (std::size_t i = 0; i < 2 * count; ++i) {
      const auto id = static_cast<ps::object_id>((order + i) % count);
      session.plan_read(id, 0, contents[id].size(), turn + 10 * i);
    }
    plan.stand_at(plan.self, turn, turn + 20 * count, ends);
  }
  [[nodiscard]] std::string text_in(const char* name) const {
    std::ifstream in(where + name, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  static void write(const std::string& path, const std::string& bytes) {
    std::ofstream(path, std::ios::binary) << bytes;
  }

  folder() {
    for (const std::size_t size : std::initializer_list<std::size_t>{2 * block, 1000, block + 1}) {
      contents.emplace_back(size, static_cast<char>('a' + contents.size()));
      for (std::size_t i = 0; i < size; i += 97) contents.back()[i] = static_cast<char>(i / 97);
      files.files = files.files.add("object-" + std::to_string(contents.size()), contents.back());
    }
    auto session = cache().connect();
    read_all(session);
    index = text_in("/penstock.index");
    blocks = text_in("/penstock.blocks");
  }
};

/// The words at its beginning say what the folder is; others are refused, or emptied.
template <class Write>
void each_change(const std::uint8_t* data, std::size_t size, std::size_t index_size, const Write& write) {
  for (std::size_t at = 1; at + 3 <= size; at += 3) {
    const auto place = data[at] + data[at + 1] * std::size_t{256};
    write(64 + place % (index_size - 64), static_cast<char>(data[at + 2]));
  }
}

/// Harms the index while two sessions use it, which must not notice.
void read_with_plans(const folder& all, const std::uint8_t* data, std::size_t size) {
  const bool ends = (data[0] & 16) != 0;
  auto one = all.cache().connect();
  auto other = all.cache().connect();
  all.plan_with(one, 0, 0, ends);
  all.plan_with(other, std::uint64_t{1} << 40, 1, false);
  all.read_all(one);
  std::fstream index(all.where + "/penstock.index", std::ios::binary | std::ios::in | std::ios::out);
  each_change(data, size, all.index.size(), [&](std::size_t place, char byte) {
    index.seekp(static_cast<std::streamoff>(place));
    index.put(byte);
  });
  index.close();
  all.read_all(other);
  all.read_all(one);
  all.plan_with(one, 35, 2, ends);
  all.read_all(other);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const folder all;
  if (size == 0) return 0;
  const unsigned how = data[0];
  std::string index = all.index;
  each_change(data, size, index.size(), [&](std::size_t place, char byte) { index[place] = byte; });
  if ((how & 4) != 0) index[52] = 1;
  folder::write(all.where + "/penstock.index", index);
  std::string blocks = all.blocks;
  if ((how & 2) != 0)
    for (std::size_t i = 1; i < size; ++i)
      blocks[4096 + (i * 40'503 + data[i]) % (blocks.size() - 4096)] ^= static_cast<char>(data[i]);
  folder::write(all.where + "/penstock.blocks", blocks);

  if ((how & 8) != 0) read_with_plans(all, data, size);
  auto session = all.cache().connect();
  if ((how & 1) != 0)
    for (ps::object_id id = 0; id < all.contents.size(); ++id) (void)session.resident(id);
  all.read_all(session);
  all.read_all(session);
  const ps::storage_counters counted = session.report().counters;
  must(counted.fetched <= 2 * 5 + counted.refetched + counted.evicted, "fetched without need");
  return 0;
}
