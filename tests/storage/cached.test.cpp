// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/storage/cached.hpp>

#include <penstock/core/error.hpp>
#include <penstock/storage/disk_cache.hpp>
#include <penstock/storage/file.hpp>
#include <penstock/storage/memory_files.hpp>
#include <penstock/storage/simulated_storage.hpp>

#include "support/catch.hpp"
#include "support/count_allocations.hpp"
#include "support/stamped_files.hpp"
#include "support/temp_dir.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace ps = penstock;
using namespace ps::literals;

namespace cached_test {

using penstock_test::stamped_files;

constexpr std::uint64_t piece = 128 << 10;
constexpr ps::disk_cache_options small{.block = piece};

std::string noise(std::size_t size, unsigned seed) {
  std::mt19937 random(seed);
  std::string made(size, '\0');
  for (char& one : made) one = static_cast<char>(random());
  return made;
}

/// Objects of many sizes around those of pieces and blocks.
struct objects {
  std::vector<std::string> contents;
  stamped_files files;

  objects() {
    for (const std::size_t size : std::initializer_list<std::size_t>{
             1, piece - 1, piece, piece + 1, 4 * piece, 4 * piece + 1, 9 * piece + 777, 20 * piece}) {
      contents.push_back(noise(size, static_cast<unsigned>(size)));
      files.files = files.files.add("object-" + std::to_string(contents.size()) + ".bin", contents.back());
    }
  }
  [[nodiscard]] ps::simulated_storage<stamped_files> counted() const {
    return ps::simulated_storage(files, {.latency = std::chrono::milliseconds(0)});
  }
  [[nodiscard]] std::uint64_t blocks(std::uint64_t block) const {
    std::uint64_t all = 0;
    for (const auto& one : contents) all += (one.size() + block - 1) / block;
    return all;
  }
  /// Whether a read of a random range is right.
  template <class Session>
  bool reads_right(Session& session, std::mt19937& random) const {
    const auto id = static_cast<ps::object_id>(random() % contents.size());
    const std::string& whole = contents[id];
    const std::size_t offset = random() % (whole.size() + 1), left = whole.size() - offset;
    const std::size_t size =
        random() % 4 == 0 ? left : random() % (std::min<std::size_t>(left, 3 * piece) + 1);
    std::string got(size, '?');
    session.read(id, offset, ps::mutable_bytes(reinterpret_cast<std::byte*>(got.data()), size));
    return got == whole.substr(offset, size);
  }
  template <class Session>
  bool all_right(Session& session, unsigned seed, int times = 200) const {
    std::mt19937 random(seed);
    bool right = true;
    for (int i = 0; i < times; ++i) right = reads_right(session, random) && right;
    return right;
  }
};

/// Reads everything once.
template <class Session>
void read_all(Session& session, const objects& all) {
  for (ps::object_id id = 0; id < all.contents.size(); ++id) {
    std::vector<std::byte> got(all.contents[id].size());
    session.read(id, 0, got);
    REQUIRE((ps::text_of(got) == all.contents[id]));  // its bytes are no message
  }
}

/// What the files of a folder take of the disk.
std::uint64_t folder_bytes(const std::filesystem::path& folder) {
  std::uint64_t all = 0;
  for (const auto& one : std::filesystem::directory_iterator(folder)) {
    struct stat status {};
    REQUIRE(::stat(one.path().c_str(), &status) == 0);
    all += static_cast<std::uint64_t>(status.st_blocks) * 512;
  }
  return all;
}
/// Whether the session says within some calls that all objects are resident.
template <class Session>
bool becomes_resident(Session& session, const objects& all) {
  bool resident = true;
  for (ps::object_id id = 0; id < all.contents.size(); ++id) {
    bool one = false;
    for (int i = 0; i < 600 && !one; ++i) one = session.resident(id);
    resident = resident && one;
  }
  return resident;
}

std::string error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const ps::error& e) {
    return std::string(ps::to_string(e.code())) + ": " + e.what();
  }
  return "none";
}
bool contains(std::string_view text, std::string_view part) { return text.find(part) != text.npos; }

/// Changes bytes of a file in place.
template <class Change>
void change_file(const std::filesystem::path& path, const Change& change) {
  std::string all(static_cast<std::size_t>(std::filesystem::file_size(path)), '\0');
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  file.read(all.data(), static_cast<std::streamsize>(all.size()));
  change(all);
  file.seekp(0);
  file.write(all.data(), static_cast<std::streamsize>(all.size()));
}

static_assert(ps::background_session<ps::cached<ps::disk_cache, stamped_files>::session>);
static_assert(ps::session_traits_of<ps::cached<ps::disk_cache, stamped_files>::session>().latency);

TEST_CASE("storage/cached: any range has its bytes, and each block is fetched once for all sessions") {
  const objects all;
  const bool once = GENERATE(false, true);
  const std::uint64_t block = GENERATE(std::uint64_t{1}, std::uint64_t{4}) * piece;
  const auto verify = once ? ps::verify::once : ps::verify::each_read;
  const penstock_test::temp_dir dir;
  const auto far = all.counted();
  const ps::cached near(
      far, ps::disk_cache((dir.path() / "cache").string(), 64_MiB, {.block = block, .verify = verify}));
  auto first = near.connect(), second = near.connect();
  CHECK(first.size(2) == piece);
  CHECK(first.version(5) == far.connect().version(5));
  CHECK(all.all_right(first, 1));
  CHECK(all.all_right(second, 2));
  read_all(second, all);
  CHECK(far.reads() == all.blocks(block));
  CHECK(first.report().counters.fetched + second.report().counters.fetched == all.blocks(block));
  CHECK(first.report().counters.corrupt + second.report().counters.corrupt +
            first.report().counters.uncached ==
        0);
  CHECK(second.report().counters.hits > 200);

  auto third = near.connect();
  CHECK(all.all_right(third, 3));
  CHECK(becomes_resident(third, all));
  CHECK(all.all_right(third, 4));
  read_all(third, all);
  CHECK(third.report().counters.fetched == 0);
  CHECK(far.reads() == all.blocks(block));
}

TEST_CASE("storage/cached: it never has more than its limit, and what was used last stays") {
  const objects all;
  const penstock_test::temp_dir dir;
  const std::uint64_t limit = 12 * piece + 20'000;  // of 39 blocks
  const auto far = all.counted();
  for (const auto evict : {ps::eviction::lru, ps::eviction::fifo}) {
    const auto folder = dir.path() / (evict == ps::eviction::lru ? "lru" : "fifo");
    const ps::cached near(far, ps::disk_cache(folder.string(), limit, {.block = piece, .evict = evict}));
    auto session = near.connect();
    std::mt19937 random(5);
    for (int i = 0; i < 300; ++i) {
      REQUIRE(all.reads_right(session, random));
      REQUIRE(folder_bytes(folder) <= limit);
    }
    CHECK(session.report().counters.evicted > 100);
    CHECK(session.report().counters.uncached == 0);

    // The first block of the last object, again and again, between those of all others.
    std::vector<std::byte> got(100);
    const auto fetched = [&] { return session.report().counters.fetched; };
    session.read(7, 0, got);
    std::uint64_t again = 0;
    for (std::uint64_t i = 1; i < 40; ++i) {
      session.read(i % 2 == 0 ? 7 : 6, (i % 2 == 0 ? i / 2 : i / 2 % 9) * piece, got);
      const std::uint64_t before = fetched();
      session.read(7, 0, got);
      again += fetched() - before;
    }
    if (evict == ps::eviction::lru)
      CHECK(again == 0);
    else
      CHECK(again >= 1);
  }
}

TEST_CASE("storage/cached: bytes that are damaged on the disk are fetched again, and counted") {
  const objects all;
  const penstock_test::temp_dir dir;
  const auto far = all.counted();
  const auto folder = dir.path() / "cache";
  const ps::cached near(far, ps::disk_cache(folder.string(), 64_MiB, small));
  auto session = near.connect();
  read_all(session, all);
  change_file(folder / "penstock.blocks", [](std::string& bytes) { bytes[4096 + 5 * piece + 1000] ^= 1; });
  read_all(session, all);
  CHECK(session.report().counters.corrupt == 1);
  CHECK(session.report().counters.refetched == 1);
  CHECK(far.reads() == all.blocks(piece) + 1);
  read_all(session, all);
  CHECK(far.reads() == all.blocks(piece) + 1);

  // Cut off, and with a block in another one's place.
  std::filesystem::resize_file(folder / "penstock.blocks", 10 * piece);
  CHECK(all.all_right(session, 9));
  change_file(folder / "penstock.blocks", [](std::string& bytes) {
    for (std::size_t i = 0; i < piece; ++i) std::swap(bytes[4096 + i], bytes[4096 + 3 * piece + i]);
  });
  read_all(session, all);
  CHECK(all.all_right(session, 10));
}

TEST_CASE("storage/cached: damage is noticed in a cache that is in memory, too") {
  const objects all;
  const penstock_test::temp_dir dir;
  const auto far = all.counted();
  const auto folder = dir.path() / "cache";
  const bool once = GENERATE(false, true);
  const auto verify = once ? ps::verify::once : ps::verify::each_read;
  const ps::cached near(far, ps::disk_cache(folder.string(), 64_MiB, {.block = piece, .verify = verify}));
  {
    auto session = near.connect();
    CHECK_FALSE(session.resident(7));
    read_all(session, all);
  }
  auto session = near.connect();
  CHECK(becomes_resident(session, all));
  change_file(folder / "penstock.blocks", [](std::string& bytes) {
    bytes[4096 + 5 * piece + 1000] ^= 1;
    bytes[4096 + 20 * piece] ^= 64;
  });
  read_all(session, all);
  CHECK(session.report().counters.corrupt == 2);
  CHECK(session.report().counters.refetched == 2);
  CHECK(becomes_resident(session, all));
  read_all(session, all);
  CHECK(session.report().counters.corrupt == 2);

  // Without its end the mapping is of no use any more.
  std::filesystem::resize_file(folder / "penstock.blocks", 10 * piece);
  CHECK(all.all_right(session, 9));
  read_all(session, all);
  CHECK(all.all_right(session, 10));
}

TEST_CASE("storage/cached: whatever is in the index, the bytes are right") {
  const objects all;
  const penstock_test::temp_dir dir;
  const auto folder = dir.path() / "cache";
  const ps::cached near(all.files, ps::disk_cache(folder.string(), 20 * piece, small));
  for (unsigned seed = 0; seed < 60; ++seed) {
    {
      auto session = near.connect();
      REQUIRE(all.all_right(session, seed, 20));
      (void)becomes_resident(session, all);
      REQUIRE(all.all_right(session, seed, 10));
    }
    change_file(folder / "penstock.index", [&](std::string& bytes) {
      std::mt19937 random(seed);
      // Not the first words of the head, without which it is another folder.
      for (int i = 0; i < 40; ++i) bytes[64 + random() % (bytes.size() - 64)] = static_cast<char>(random());
      if (seed % 2 == 0) bytes[52] = 1;  // as if its last user had died while it changed it
    });
  }
}

TEST_CASE("storage/cached: folders that cannot be used are refused with the remedy") {
  const objects all;
  const penstock_test::temp_dir dir;
  const std::string folder = (dir.path() / "a" / "cache").string();
  const ps::disk_cache where(folder, 20 * piece, small);
  const ps::cached near(all.files, where);
  auto session = near.connect();
  CHECK((std::filesystem::status(folder).permissions() & std::filesystem::perms::mask) ==
        std::filesystem::perms::owner_all);
  read_all(session, all);
  const auto opens = [&](const ps::disk_cache& other) {
    return error_of([&] { (void)ps::cached(all.files, other).connect(); });
  };
  CHECK(opens(where) == "none");
  CHECK(contains(opens(ps::disk_cache(folder, 30 * piece, small)), "in use with 19 blocks of 131072 bytes"));
  { auto ended = std::move(session); }
  // Nobody uses it, so it may become another one.
  CHECK(opens(ps::disk_cache(folder, 30 * piece, small)) == "none");
  CHECK(folder_bytes(folder) < piece);

  const auto changed = [&](std::size_t at, char byte) {
    const auto other = dir.path() / ("changed-" + std::to_string(at));
    std::filesystem::copy(folder, other);
    change_file(other / "penstock.index", [&](std::string& bytes) { bytes[at] = byte; });
    return opens(ps::disk_cache(other.string(), 30 * piece, small));
  };
  CHECK(contains(changed(0, 'X'),
                 "argument: penstock: this is no index of a cache; give the cache another folder"));
  CHECK(contains(changed(16, 9), "the cache is of version 9, or"));
  CHECK(contains(changed(20, 1), "give each version a folder of its own, or delete the folder"));

  std::ofstream(dir.path() / "file") << "x";
  CHECK(contains(opens(ps::disk_cache((dir.path() / "file").string(), 30 * piece, small)),
                 "io: penstock: cannot"));
  std::filesystem::create_directories(dir.path() / "other" / "penstock.index");
  CHECK(contains(opens(ps::disk_cache((dir.path() / "other").string(), 30 * piece, small)),
                 "io: penstock: cannot open"));

  CHECK(ps::cached(ps::file("a"), ps::disk_cache("x", 1_GiB)).describe() ==
        "cached(file(a), disk_cache(x, 1073741824 bytes))");
}

TEST_CASE("storage/cached: what is not ours is left as it is") {
  const objects all;
  const penstock_test::temp_dir dir;
  const auto folder = dir.path() / "cache";
  const auto opens = [&] {
    return error_of([&] {
      (void)ps::cached(all.files, ps::disk_cache(folder.string() + "//", 20 * piece, small)).connect();
    });
  };
  const auto mode = [](const std::filesystem::path& path) {
    return std::filesystem::status(path).permissions() & std::filesystem::perms::mask;
  };
  using std::filesystem::perms;
  CHECK(opens() == "none");
  CHECK(mode(folder) == perms::owner_all);
  for (const char* const name : {"penstock.index", "penstock.blocks"})
    CHECK(mode(folder / name) == (perms::owner_read | perms::owner_write));

  std::filesystem::remove_all(folder);
  std::filesystem::create_directory(folder);
  std::filesystem::permissions(folder, perms::owner_all);
  const std::string mine(3000, 'x');
  std::ofstream(folder / "penstock.blocks") << mine;
  CHECK(contains(opens(), "this is no file of a cache; give the cache another folder"));
  CHECK(std::filesystem::file_size(folder / "penstock.blocks") == mine.size());
  std::filesystem::remove(folder / "penstock.blocks");

  std::ofstream(dir.path() / "elsewhere") << "";
  std::filesystem::create_symlink(dir.path() / "elsewhere", folder / "penstock.blocks");
  CHECK(contains(opens(), "io: penstock: cannot open the cache"));
  std::filesystem::remove(folder / "penstock.blocks");
  std::filesystem::create_hard_link(dir.path() / "elsewhere", folder / "penstock.blocks");
  CHECK(contains(opens(), "this is no file of a cache"));
  std::filesystem::remove(folder / "penstock.blocks");
  CHECK(opens() == "none");

  std::filesystem::permissions(folder, perms::all);
  CHECK(contains(opens(), "others may write to the cache folder; forbid it with `chmod go-w`"));
  if (::geteuid() == 0) {
    std::filesystem::permissions(folder, perms::owner_all);
    REQUIRE(::chown(folder.c_str(), 12345, 12345) == 0);
    CHECK(contains(opens(), "the cache folder belongs to user 12345"));
  }
}

TEST_CASE("storage/cached: objects of one name and size are told apart by their stamps") {
  const penstock_test::temp_dir dir;
  const ps::disk_cache near((dir.path() / "cache").string(), 64_MiB, small);
  const auto first_letter = [&](char letter, std::uint64_t stamp) {
    const stamped_files where{ps::memory_files().add("a", std::string(1000, letter)), stamp};
    auto session = ps::cached(where, near).connect();
    std::vector<std::byte> got(1000);
    session.read(0, 0, got);
    session.read(0, 0, got);
    CHECK(session.report().counters.hits >= 1);
    return std::string(ps::text_of(got).substr(0, 1));
  };
  CHECK(first_letter('a', 1) == "a");
  CHECK(first_letter('b', 2) == "b");
  CHECK(first_letter('?', 1) == "a");
  // Without a stamp nobody knows.
  CHECK(first_letter('c', 0) == "c");
  CHECK(first_letter('d', 0) == "d");
}

TEST_CASE("storage/cached: with checksums compared once, a block that goes and another one in its slot") {
  const objects all;
  const penstock_test::temp_dir dir;
  const ps::cached near(all.files, ps::disk_cache((dir.path() / "cache").string(), 3 * piece,
                                                  {.block = piece, .verify = ps::verify::once}));
  auto first = near.connect(), second = near.connect();
  for (unsigned seed = 0; seed < 20; ++seed) {
    CHECK(all.all_right(first, seed, 10));
    CHECK(all.all_right(second, seed + 100, 10));
  }
  CHECK(first.report().counters.evicted > 50);
}

TEST_CASE("storage/cached: a checksum is that of one block alone") {
  const objects all;
  const penstock_test::temp_dir dir;
  const auto folder = dir.path() / "cache";
  const ps::cached near(all.files, ps::disk_cache(folder.string(), 64 * piece, small));
  std::vector<std::byte> got(piece);
  {
    auto session = near.connect();
    session.read(7, 0, got);
    session.read(7, piece, got);
  }
  // The bytes and the checksum of the second block in the place of the first one.
  change_file(folder / "penstock.blocks", [](std::string& bytes) {
    std::copy_n(bytes.begin() + 4096 + static_cast<std::ptrdiff_t>(piece), piece, bytes.begin() + 4096);
  });
  change_file(folder / "penstock.index", [](std::string& bytes) {
    constexpr std::size_t of_block = piece / ps::detail::blocks::piece_size * 8;
    const std::size_t sums = bytes.size() - 62 * of_block;  // of 62 slots
    std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(sums + of_block), of_block,
                bytes.begin() + static_cast<std::ptrdiff_t>(sums));
  });
  auto session = near.connect();
  session.read(7, 0, got);
  CHECK((ps::text_of(got) == all.contents[7].substr(0, piece)));
  CHECK(session.report().counters.corrupt == 1);
}

TEST_CASE("storage/cached: an index that is cut off, or deleted, under a run") {
  const objects all;
  const penstock_test::temp_dir dir;
  const auto folder = dir.path() / "cache";
  for (const auto verify : {ps::verify::each_read, ps::verify::once}) {
    const ps::disk_cache where(folder.string(), 20 * piece, {.block = piece, .verify = verify});
    const ps::cached near(all.files, where);
    {
      auto session = near.connect();
      CHECK(all.all_right(session, 1));
      std::filesystem::resize_file(folder / "penstock.index", 100);
      CHECK(all.all_right(session, 2));
      read_all(session, all);
    }
    {
      auto session = near.connect();
      CHECK(all.all_right(session, 3));
      std::filesystem::remove(folder / "penstock.index");
      CHECK(contains(error_of([&] { (void)near.connect(); }),
                     "is in use, and one of its files was deleted or cut off"));
      CHECK(all.all_right(session, 4));
    }
    auto session = near.connect();
    CHECK(all.all_right(session, 5));
  }
}

TEST_CASE("storage/cached: cancelling, and the end of a session, wait for nobody else") {
  const objects all;
  const penstock_test::temp_dir dir;
  const ps::disk_cache where((dir.path() / "cache").string(), 64_MiB, small);
  const ps::simulated_storage slow(all.files, {.latency = std::chrono::seconds(1)});
  const ps::cached far(slow, where);
  const ps::cached near(all.files, where);
  auto fetching = far.connect();
  std::vector<std::byte> one(10), two(10), three(10);
  struct seen {
    std::atomic<int> done{0};
  } first, second;
  const auto listener = [](seen& into) {
    return ps::read_listener{&into, [](void* self, std::uint64_t, std::exception_ptr) noexcept {
                               ++static_cast<seen*>(self)->done;
                             }};
  };
  const ps::read_request wanted{7, 0, one, 0}, same{7, 0, two, 0};
  fetching.read_many(std::span(&wanted, 1), listener(first));
  while (slow.in_flight() == 0) std::this_thread::yield();
  {
    auto waits = near.connect();
    waits.read_many(std::span(&same, 1), listener(second));
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    waits.cancel();
    while (second.done != 1) std::this_thread::yield();
    waits.read_many(std::span(&same, 1), listener(second));
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  CHECK(second.done == 2);
  fetching.cancel();
  while (first.done != 1) std::this_thread::yield();
  auto session = near.connect();
  session.read(7, 0, three);
  CHECK((ps::text_of(three) == all.contents[7].substr(0, 10)));
}

TEST_CASE("storage/cached: a folder that is deleted under a run does no harm") {
  const objects all;
  const penstock_test::temp_dir dir;
  const auto folder = dir.path() / "cache";
  const ps::cached near(all.files, ps::disk_cache(folder.string(), 20 * piece, small));
  auto session = near.connect();
  CHECK(all.all_right(session, 1));
  std::filesystem::remove_all(folder);
  CHECK(all.all_right(session, 2));
  auto other = near.connect();
  CHECK(all.all_right(other, 3));
  CHECK(all.all_right(session, 4));
}

TEST_CASE("storage/cached: failures of the other storage reach who asked, and are not kept") {
  const objects all;
  const penstock_test::temp_dir dir;
  const ps::simulated_storage far(
      all.files, {.latency = std::chrono::milliseconds(0), .faults = {{.object = 7, .times = 1}}});
  const ps::cached near(far, ps::disk_cache((dir.path() / "cache").string(), 64_MiB, small));
  auto session = near.connect();
  std::vector<std::byte> got(10);
  CHECK(contains(error_of([&] { session.read(7, 0, got); }), "io: "));
  session.read(7, 0, got);
  CHECK((ps::text_of(got) == all.contents[7].substr(0, 10)));
  CHECK(session.report().counters.fetched == 1);  // nothing was left locked
  CHECK(session.report().counters.uncached == 0);
  CHECK(contains(error_of([&] { session.read(0, 1, got); }), "format: "));
}

TEST_CASE("storage/cached: many threads of many sessions, with a cache that is too small") {
  const objects all;
  const penstock_test::temp_dir dir;
  for (const std::uint64_t limit : {4 * piece, 12 * piece, 64 * piece}) {
    const auto far = all.counted();
    const ps::cached near(far, ps::disk_cache((dir.path() / std::to_string(limit)).string(), limit, small));
    auto first = near.connect(), second = near.connect();
    std::atomic<int> wrong{0};
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < 6; ++i)
      threads.emplace_back([&, i] {
        if (!all.all_right(i % 2 == 0 ? first : second, 100 + i, 60)) ++wrong;
      });
    for (std::thread& one : threads) one.join();
    CHECK(wrong == 0);
    CHECK(first.report().counters.corrupt + second.report().counters.corrupt == 0);
    if (limit == 64 * piece) CHECK(far.reads() <= all.blocks(piece));
  }
}

TEST_CASE("storage/cached: reads in the background, and their end") {
  const objects all;
  const penstock_test::temp_dir dir;
  const ps::simulated_storage far(all.files, {.latency = std::chrono::milliseconds(1)});
  const ps::cached near(far, ps::disk_cache((dir.path() / "cache").string(), 64_MiB, small));
  auto session = near.connect();
  struct outcome {
    std::atomic<int> done{0}, failed{0};
  } seen;
  const ps::read_listener listener{&seen, [](void* self, std::uint64_t, std::exception_ptr failed) noexcept {
                                     auto& all_seen = *static_cast<outcome*>(self);
                                     if (failed) ++all_seen.failed;
                                     ++all_seen.done;
                                   }};
  std::vector<std::vector<std::byte>> into;
  std::vector<ps::read_request> requests;
  for (std::uint64_t i = 0; i < 40; ++i) into.emplace_back(1000);
  for (std::uint64_t i = 0; i < 40; ++i) requests.push_back({7, i * piece / 2, into[i], i});
  session.read_many(requests, listener);
  while (seen.done != 40) std::this_thread::yield();
  CHECK(seen.failed == 0);
  for (std::size_t i = 0; i < 40; ++i)
    CHECK(ps::text_of(into[i]) == all.contents[7].substr(i * piece / 2, 1000));
  CHECK(far.reads() == 20);
  session.read_many(requests, listener);
  session.cancel();
  while (seen.done != 80) std::this_thread::yield();
}

TEST_CASE("storage/cached: a read of what is there allocates nothing") {
  const objects all;
  const penstock_test::temp_dir dir;
  const ps::cached near(all.files, ps::disk_cache((dir.path() / "cache").string(), 64_MiB, small));
  auto session = near.connect();
  read_all(session, all);
  std::vector<std::byte> got(3 * piece);
  const auto counted = penstock_test::allocations_of([&] {
    for (std::uint64_t i = 0; i < 100; ++i) session.read(7, i * 1000, got);
  });
  CHECK(counted == 0);
}

}  // namespace cached_test
