// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/storage/decrypting.hpp>

#include <penstock/codec/text.hpp>
#include <penstock/core/error.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/tar_writer.hpp>
#include <penstock/source/webdataset.hpp>
#include <penstock/stage/decode.hpp>

#include <penstock/stage/workers.hpp>
#include <penstock/storage/file.hpp>
#include <penstock/storage/mapped_file.hpp>
#include <penstock/storage/memory_files.hpp>
#include <penstock/storage/retrying.hpp>
#include <penstock/storage/simulated_storage.hpp>

#include "support/catch.hpp"
#include "support/count_allocations.hpp"
#include "support/deadline.hpp"
#include "support/encrypted.hpp"
#include "support/held_storage.hpp"
#include "support/noting_storage.hpp"
#include "support/read_outcomes.hpp"
#include "support/temp_dir.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <memory>
#include <mutex>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace ps = penstock;
using namespace std::chrono_literals;
using penstock_test::contains;
using penstock_test::deadline;
using penstock_test::encrypted;
using penstock_test::eventually;
using penstock_test::noting_storage;
using penstock_test::numbered_bytes;
using penstock_test::read_outcomes;
using penstock_test::test_key;

namespace decrypting_test {

auto decrypted(const ps::memory_files& files, ps::decrypting_options options = {}) {
  return ps::decrypting<ps::aes_256_gcm>(files, test_key(), std::move(options));
}
ps::memory_files one_object(std::string_view bytes) { return ps::memory_files().add("one", bytes); }

using in_memory = decltype(decrypted(ps::memory_files()));
using far_memory = ps::simulated_storage<ps::memory_files>;
template <class Storage>
using around = ps::decrypting_storage<ps::aes_256_gcm, Storage, ps::one_key>;
static_assert(ps::storage<in_memory> && ps::renaming_storage<in_memory> && ps::has_sidecars<in_memory>());
static_assert(!ps::mapped_session<in_memory::session> && !ps::mapped_session<around<ps::file>::session>);
static_assert(!ps::background_session<in_memory::session> &&
              !ps::session_traits_of<in_memory::session>().latency);
static_assert(ps::background_session<around<far_memory>::session> &&
              ps::session_traits_of<around<far_memory>::session>().latency);
static_assert(ps::has_sidecars<around<ps::file>>());
static_assert(!ps::is_local<around<ps::file>>(), "plaintext must not be kept beside the files");
static_assert(ps::storage<around<around<ps::memory_files>>>, "one may be in another");

template <class Session>
std::string read_of(const Session& session, ps::object_id id, std::uint64_t offset, std::size_t size) {
  std::string text(size, '\xEE');
  session.read(id, offset, {reinterpret_cast<std::byte*>(text.data()), text.size()});
  return text;
}
template <class Session>
std::string all_of(const Session& session, ps::object_id id = 0) {
  return read_of(session, id, 0, ps::detail::to_size(session.size(id)));
}
/// The error of `f`.
template <class F>
ps::error error_in(F&& f) {
  try {
    f();
  } catch (const ps::error& e) {
    return e;
  }
  return {ps::errc::state, "no error"};
}

/// What reads of all of an object that was harmed deliver: bytes of the text, or none, and an error.
ps::error error_of_harmed(const std::string& bytes, const std::string& text,
                          ps::decrypting_options options = {.segment_size = 64}) {
  std::string into(text.size(), '\xEE');
  const ps::error failed = error_in([&] {
    const auto session = decrypted(one_object(bytes), options).connect();
    const std::size_t known = ps::detail::to_size(session.size(0));
    session.read(0, 0,
                 ps::mutable_bytes(reinterpret_cast<std::byte*>(into.data()), into.size())
                     .first(std::min(known, text.size())));
    if (known != text.size()) throw ps::error(ps::errc::format, "another size");
  });
  bool clean = true;  // before the segment that failed all is right, and from it on there is nothing
  std::size_t i = 0;
  while (i < text.size() && into[i] == text[i]) ++i;
  for (; i < text.size(); ++i) clean = clean && (into[i] == '\0' || into[i] == '\xEE');
  CHECK(clean);
  return failed;
}

/// Where in the stored object such a read fails.
std::uint64_t place_of_harm(const std::string& bytes, const std::string& text) {
  const std::string message(error_of_harmed(bytes, text).message());
  const std::size_t at = message.rfind("at byte ");
  return at == std::string::npos ? ~std::uint64_t{0} : std::stoull(message.substr(at + 8));
}

/// Files in memory that are read by copying.
struct copied_files : ps::memory_files {
  struct session : ps::memory_files::session {
    static constexpr ps::session_traits traits = {};  // shows nothing in place
    explicit session(ps::memory_files::session all) : ps::memory_files::session(std::move(all)) {}
  };
  explicit copied_files(const ps::memory_files& files) : ps::memory_files(files) {}
  [[nodiscard]] session connect() const { return session(ps::memory_files::connect()); }
};

/// One that Google Tink has encrypted.
struct tink_object {
  std::size_t segment_size;
  std::string_view associated;
  std::size_t size;
  std::string_view bytes;
};
constexpr tink_object tink_objects[] = {
#include "storage/oracles/tink.inc"
};

/// A session's reads in pieces of one storage, compared with the text.
template <class Storage>
void compare_ranges(const Storage& where, const std::string& text, std::mt19937_64& draw) {
  const auto session = where.connect();
  REQUIRE(session.size(0) == text.size());
  REQUIRE(session.version(0).size == text.size());
  REQUIRE(all_of(session) == text);
  for (int i = 0; i < 20 && !text.empty(); ++i) {
    const std::size_t begin = draw() % (text.size() + 1);
    const std::size_t size = draw() % (std::min<std::size_t>(text.size() - begin, i < 10 ? 40 : ~0u) + 1);
    session.will_need(0, begin, size);
    REQUIRE(read_of(session, 0, begin, size) == text.substr(begin, size));
  }
  CHECK(error_in([&] { (void)read_of(session, 0, text.size(), 1); }).code() == ps::errc::format);
}

TEST_CASE("storage/decrypting: says what it is") {
  const auto where = decrypted(one_object(encrypted("four")), {.segment_size = 4096});
  CHECK(where.describe() == "decrypting(memory_files(1 objects), AES-256-GCM, segments of 4096 bytes)");
  CHECK(where.names().size() == 1);
  CHECK_FALSE(ps::is_local(where));
  const auto session = where.connect();
  CHECK(session.report().names[0] == "one");
  CHECK(session.size(0) == 4);
  CHECK(all_of(session) == "four");
}

TEST_CASE("storage/decrypting: reads what Google Tink has encrypted") {
  REQUIRE(std::size(tink_objects) == 13);
  for (const tink_object& one : tink_objects) {
    const auto where = decrypted(
        one_object(one.bytes), {.segment_size = one.segment_size, .associated = std::string(one.associated)});
    const auto session = where.connect();
    CAPTURE(one.segment_size, one.size);
    CHECK(session.size(0) == one.size);
    CHECK(all_of(session) == numbered_bytes(one.size));
    for (std::size_t i = 0; i < one.size; i += 7)
      CHECK(read_of(session, 0, i, 1)[0] == numbered_bytes(one.size)[i]);
    CHECK(where.connect().size(0) + 0 == one.size);
    const auto other =
        decrypted(one_object(one.bytes), {.segment_size = one.segment_size, .associated = "other"}).connect();
    CHECK(error_in([&] { (void)all_of(other); }).code() == ps::errc::checksum);
  }
}

TEST_CASE("storage/decrypting: any range of an object of any size is the plaintext's") {
  std::mt19937_64 draw(20261127);
  const penstock_test::temp_dir folder;
  for (const std::size_t segment : {57u, 58u, 64u, 100u, 4096u, 65536u}) {
    std::vector<std::size_t> sizes{0, 1, 2};
    for (std::size_t n = 1; n < 4; ++n)
      for (std::size_t off = 0; off < 3; ++off) sizes.push_back(n * (segment - 16) - 40 + off - 1);
    for (int i = 0; i < 8; ++i) sizes.push_back(draw() % (segment * (i < 4 ? 3 : 12)));
    for (const std::size_t size : sizes) {
      CAPTURE(segment, size);
      std::string text(size, '\0');
      for (char& one : text) one = static_cast<char>(draw());
      const std::string stored = encrypted(text, {.segment_size = segment});
      CHECK(ps::detail::segment_layout(segment).file_size(size) == stored.size());
      const ps::decrypting_options options{.segment_size = segment};
      compare_ranges(decrypted(one_object(stored), options), text, draw);
      compare_ranges(ps::decrypting(noting_storage{one_object(stored)}, test_key(), options), text, draw);
      if (size % 3 != 0) continue;
      const std::string path = (folder / "one").string();
      std::ofstream(path, std::ios::binary) << stored;
      compare_ranges(ps::decrypting(ps::file(path), test_key(), options), text, draw);
      compare_ranges(ps::decrypting(ps::file(path, {.access = ps::file_access::map}), test_key(), options),
                     text, draw);
      compare_ranges(ps::decrypting(ps::mapped_file(path), test_key(), options), text, draw);
    }
  }
}

TEST_CASE("storage/decrypting: places in the file and in the plaintext agree") {
  const ps::detail::segment_layout layout(64);
  for (std::uint64_t plain = 0; plain < 500; ++plain) {
    const std::uint64_t segment = layout.segment_at(plain), file = layout.file_at(plain);
    CHECK(layout.plain_begin(segment) <= plain);
    CHECK(plain < layout.plain_begin(segment) + layout.room(segment));
    CHECK(file == layout.file_begin(segment) + plain - layout.plain_begin(segment));
    CHECK(layout.plain_at(file) == plain);
  }
  CHECK(layout.plain_at(0) == 0);
  CHECK(layout.plain_at(63) == 8);
  CHECK(layout.segments(55) == std::nullopt);
  CHECK(layout.segments(56) == 1u);
  CHECK(layout.segments(64) == 1u);
  CHECK(layout.segments(65) == std::nullopt);
  CHECK(layout.segments(80) == std::nullopt);  // a tag alone; nobody would read that segment
  CHECK(layout.segments(81) == 2u);
  CHECK(layout.segments(std::uint64_t{64} << 32) == std::uint64_t{1} << 32);
  CHECK(layout.segments((std::uint64_t{64} << 32) + 30) == std::nullopt);
}

TEST_CASE("storage/decrypting: every changed bit is an error that names the object and the segment") {
  const std::string text = numbered_bytes(130), good = encrypted(text, {.segment_size = 64});
  REQUIRE(good.size() == 234);
  CHECK(error_of_harmed(good, text).message() == "no error");
  for (std::size_t bit = 0; bit < 8 * good.size(); ++bit) {
    std::string bad = good;
    bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << bit % 8));
    const ps::error failed = error_of_harmed(bad, text);
    CAPTURE(bit);
    CHECK(failed.code() == (bit < 8 ? ps::errc::format : ps::errc::checksum));
    CHECK(failed.file() == "one");
    const std::size_t segment = bit / 8 / 64;
    CHECK(failed.offset() == 0u);  // of the read
    CHECK(place_of_harm(bad, text) == (bit < 8 ? 0 : segment == 0 ? 40 : segment * 64));
  }
  const ps::error failed = error_of_harmed(good.substr(0, 100) + "??" + good.substr(102), text);
  CHECK_THAT(std::string(failed.message()), contains("segment 1 of 4") && contains("check the key"));
  CHECK_FALSE(failed.code() == ps::errc::io);

  // other segments can be read, and an empty object's tag is verified as well
  std::string bad = good;
  bad[200] = static_cast<char>(bad[200] ^ 1);
  const auto session = decrypted(one_object(bad), {.segment_size = 64}).connect();
  CHECK(read_of(session, 0, 0, 100) == text.substr(0, 100));
  CHECK(error_in([&] { (void)read_of(session, 0, 120, 1); }).code() == ps::errc::checksum);
  CHECK(read_of(session, 0, 8, 48) == text.substr(8, 48));
  std::string empty = encrypted("");
  CHECK(all_of(decrypted(one_object(empty)).connect()).empty());
  empty[45] = static_cast<char>(empty[45] ^ 1);
  CHECK(error_in([&] { (void)all_of(decrypted(one_object(empty)).connect()); }).code() == ps::errc::checksum);
}

TEST_CASE("storage/decrypting: an object that was cut or that grew is an error, wherever it was cut") {
  const std::string text = numbered_bytes(130), good = encrypted(text, {.segment_size = 64});
  for (std::size_t size = 0; size < good.size(); ++size) {
    CAPTURE(size);
    const auto session = decrypted(one_object(good.substr(0, size)), {.segment_size = 64}).connect();
    const ps::error failed = error_in([&] {
      const auto left = session.size(0);
      CHECK(left < text.size());
      (void)read_of(session, 0, left == 0 ? 0 : left - 1,
                    left == 0 ? 0 : 1);  // of the segment that is last now
    });
    CHECK((failed.code() == ps::errc::format || failed.code() == ps::errc::checksum));
    CHECK(failed.file() == "one");
    if (size % 64 == 0 && size >= 128) CHECK(read_of(session, 0, 0, 8) == text.substr(0, 8));
  }
  for (std::size_t more = 1; more < 130; ++more)
    CHECK(error_of_harmed(good + std::string(more, 'x'), text).message() != "no error");
}

TEST_CASE("storage/decrypting: segments cannot change places, nor move to another object") {
  const std::string text = numbered_bytes(152), good = encrypted(text, {.segment_size = 64});
  REQUIRE(good.size() == 4 * 64);
  const auto part = [&](const std::string& of, std::size_t i) { return of.substr(64 * i, 64); };
  CHECK(error_of_harmed(part(good, 0) + part(good, 2) + part(good, 1) + part(good, 3), text).code() ==
        ps::errc::checksum);
  CHECK(place_of_harm(part(good, 0) + part(good, 1) + part(good, 3) + part(good, 2), text) == 128);
  CHECK(place_of_harm(part(good, 0) + part(good, 1) + part(good, 1) + part(good, 3), text) == 128);
  const std::string twin = encrypted(text, {.segment_size = 64});
  CHECK(twin != good);
  CHECK(place_of_harm(part(good, 0) + part(twin, 1) + part(good, 2) + part(good, 3), text) == 64);
}

TEST_CASE("storage/decrypting: another key, other associated data or another segment size is an error") {
  const std::string text = numbered_bytes(1000);
  const ps::encryption_key other(ps::bytes_of("take the bytes from your vault!?"));
  CHECK(error_of_harmed(encrypted(text, {.segment_size = 64}, other), text).code() == ps::errc::checksum);
  const std::string named = encrypted(text, {.segment_size = 64, .associated = "photos"});
  CHECK(error_of_harmed(named, text).code() == ps::errc::checksum);
  CHECK(error_of_harmed(named, text, {.segment_size = 64, .associated = "photo"}).code() ==
        ps::errc::checksum);
  CHECK(error_of_harmed(named, text, {.segment_size = 64, .associated = "photos"}).message() == "no error");
  for (const std::size_t size : {57u, 63u, 65u, 128u, 4096u})
    CHECK(error_of_harmed(named, text, {.segment_size = size, .associated = "photos"}).message() !=
          "no error");
  const ps::error plain = error_of_harmed(text, text);
  CHECK(plain.code() == ps::errc::format);
  CHECK_THAT(std::string(plain.message()), contains("encrypted"));
}

TEST_CASE("storage/decrypting: options that make no sense are errors") {
  for (const std::size_t size : {std::size_t{0}, std::size_t{56}, (std::size_t{1} << 30) + 1})
    CHECK(error_in([&] { (void)decrypted(ps::memory_files(), {.segment_size = size}); }).code() ==
          ps::errc::argument);
  CHECK(error_in([] { (void)decrypted(ps::memory_files(), {.max_in_flight = 0}); }).code() ==
        ps::errc::argument);
}

TEST_CASE("storage/decrypting: a key provider is asked once for each object of a session") {
  const auto asked = std::make_shared<std::vector<std::string>>();
  const auto fails = std::make_shared<int>(0);
  const ps::encryption_key second(ps::bytes_of("another key, of exactly 32 bytes"));
  const auto files = ps::memory_files()
                         .add("one", encrypted("first"))
                         .add("two", encrypted("second", {}, second))
                         .add("bad", "x");
  const auto where = ps::decrypting<ps::aes_256_gcm>(files, [=](std::string_view name) {
    asked->emplace_back(name);
    if (*fails == 1) throw ps::error(ps::errc::io, "the vault is closed");
    if (*fails == 2) throw std::runtime_error("foreign");
    return name == "two" ? second : test_key();
  });
  static_assert(ps::storage<std::remove_const_t<decltype(where)>>);
  const auto session = where.connect();
  CHECK(session.size(0) == 5);
  CHECK(session.version(1).size == 6);
  CHECK(asked->empty());
  *fails = 1;
  const ps::error failed = error_in([&] { (void)all_of(session); });
  CHECK(failed.code() == ps::errc::io);
  CHECK(failed.file() == "one");
  CHECK(failed.message() == "the vault is closed");
  *fails = 2;
  CHECK_THROWS_WITH(all_of(session), "foreign");
  *fails = 0;
  asked->clear();
  for (int i = 0; i < 3; ++i) {
    CHECK(all_of(session) == "first");
    CHECK(all_of(session, 1) == "second");
  }
  CHECK(*asked == std::vector<std::string>{"one", "two"});
  CHECK(error_in([&] { (void)all_of(session, 2); }).code() == ps::errc::format);
  CHECK(error_in([&] { (void)session.size(3); }).code() == ps::errc::argument);
  CHECK(error_in([&] { (void)read_of(session, 3, 0, 1); }).code() == ps::errc::argument);
  CHECK(asked->size() == 2);
  CHECK(all_of(where.with_names({"two"}).connect()) == "second");
  CHECK(asked->back() == "two");
}

TEST_CASE("storage/decrypting: names other objects and those beside them") {
  const auto files = ps::memory_files()
                         .add("a.tar", encrypted("shard"))
                         .add("a.tar.idx", encrypted("index"))
                         .add("b", encrypted("b"));
  const auto where = decrypted(files);
  CHECK(all_of(where.with_names({"b"}).connect()) == "b");
  CHECK(all_of(where.sidecars({".idx"}).connect()) == "index");
  const auto missing = where.with_names({"c"}).connect();
  CHECK(error_in([&] { (void)missing.size(0); }).code() == ps::errc::io);

  const penstock_test::temp_dir folder;
  std::ofstream((folder / "s").string(), std::ios::binary) << encrypted("of a file");
  std::ofstream((folder / "s.idx").string(), std::ios::binary) << encrypted("its index");
  const auto local = ps::decrypting<ps::aes_256_gcm>(ps::file((folder / "s").string()), test_key());
  const auto session = local.connect();
  CHECK(all_of(session) == "of a file");
  CHECK(session.version(0).stamp == ps::file((folder / "s").string()).connect().version(0).stamp);
  CHECK(all_of(local.sidecars({".idx"}).connect()) == "its index");
  CHECK_FALSE(session.resident(0));
}

TEST_CASE("storage/decrypting: reads together what lies together, and hints at what is stored") {
  const std::string text = numbered_bytes(1'000'000);
  const noting_storage inside{one_object(encrypted(text, {.segment_size = 4096}))};
  const auto session = ps::decrypting(inside, test_key(), {.segment_size = 4096}).connect();
  session.will_need(0, 5000, 100);  // the size is not known yet: to the byte that is needed
  CHECK(inside.notes->hints.back() == penstock_test::noted_range{4096, 5000 + 40 + 16 + 100});
  CHECK(read_of(session, 0, 5000, 10'000) == text.substr(5000, 10'000));
  using range = penstock_test::noted_range;
  CHECK(inside.notes->reads == std::vector<range>{{0, 40}, {4096, 4 * 4096}});
  session.will_need(0, 5000, 10'000);
  session.will_need(0, 5000, 0);
  CHECK(inside.notes->hints.size() == 2);
  CHECK(inside.notes->hints.back() == range{4096, 4 * 4096});
  session.plan_read(0, 5000, 10'000, 5);
  CHECK(inside.notes->planned == std::vector<range>{{4096, 4 * 4096}});
  CHECK(session.access_plan().self == nullptr);
  inside.notes->plans = true;
  CHECK(session.access_plan().self == inside.notes.get());
  inside.notes->clear();
  CHECK(read_of(session, 0, 0, text.size()) == text);  // at most 256 KiB at once
  REQUIRE(inside.notes->reads.size() == 4);
  CHECK(inside.notes->reads[0] == range{40, 262'144});
  inside.notes->clear();
  CHECK(read_of(session, 0, 10, 1) == text.substr(10, 1));
  CHECK(inside.notes->reads == std::vector<range>{{40, 4096}});
  inside.notes->worn_begin = 20'480;
  inside.notes->worn_end = 20'481;
  const ps::error failed = error_in([&] { (void)read_of(session, 0, 20'450, 10); });
  CHECK(failed.code() == ps::errc::io);
  CHECK(failed.message() == "worn out, at byte 20480 of the stored object");
  CHECK(failed.offset() == 20'450u);
}

TEST_CASE("storage/decrypting: many threads share a session") {
  const deadline limit("threads that decrypt");
  const std::string text = numbered_bytes(200'000);
  std::atomic<int> asked{0};
  ps::memory_files files;
  for (const char* const name : {"a", "b", "c", "d"})
    files.add(name, encrypted(text, {.segment_size = 1024}));
  const auto where = ps::decrypting<ps::aes_256_gcm>(noting_storage{files},
                                                     [&](std::string_view) {
                                                       ++asked;
                                                       return test_key();
                                                     },
                                                     {.segment_size = 1024});
  const auto session = where.connect();
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 8; ++t)
    threads.emplace_back([&, t] {
      std::mt19937_64 draw(t);
      for (int i = 0; i < 300; ++i) {
        const std::size_t begin = draw() % text.size(),
                          size = draw() % (std::min<std::size_t>(5000, text.size() - begin));
        if (read_of(session, static_cast<ps::object_id>(draw() % 4), begin, size) != text.substr(begin, size))
          ++wrong;
      }
    });
  for (auto& one : threads) one.join();
  CHECK(wrong == 0);
  CHECK(asked == 4);
}

TEST_CASE("storage/decrypting: reads in the background") {
  const deadline limit("reads in the background of decrypting");
  const std::string text = numbered_bytes(100'000);
  const far_memory far(one_object(encrypted(text, {.segment_size = 4096})), {.latency = 2ms});
  const auto where =
      ps::decrypting<ps::aes_256_gcm>(far, test_key(), {.segment_size = 4096, .max_in_flight = 16});
  auto session = where.connect();
  CHECK(session.report().max_in_flight == 16);
  std::vector<std::string> into(200, std::string(300, ' '));
  std::vector<ps::read_request> requests;
  for (std::size_t i = 0; i < into.size(); ++i)
    requests.push_back({0, i * 7919 % 99'000, {reinterpret_cast<std::byte*>(into[i].data()), 300}, i});
  requests.back().offset = 99'900;  // ends beyond the end
  read_outcomes outcomes(requests.size());
  session.read_many(requests, outcomes.listener());
  outcomes.wait();
  CHECK(outcomes.each_once());
  CHECK(outcomes.failures() == 1);
  REQUIRE(outcomes.error_of(199));
  CHECK(outcomes.error_of(199)->code() == ps::errc::format);
  CHECK(outcomes.error_of(199)->offset() == 99'900);
  for (std::size_t i = 0; i < 199; ++i) CHECK(into[i] == text.substr(requests[i].offset, 300));
  CHECK(far.peak_in_flight() > 1);
  CHECK(far.peak_in_flight() <= 16);
  CHECK(session.report().counters.requests == far.reads());
  CHECK(far.reads() == 200);  // the header, and 199

  const far_memory faulty(one_object(encrypted(text, {.segment_size = 4096})),
                          {.latency = 0ms, .faults = {{.object = 0, .begin = 50'000, .times = 1}}});
  auto retried =
      ps::decrypting(ps::retrying(faulty, {.initial_backoff = 0ms}), test_key(), {.segment_size = 4096})
          .connect();
  read_outcomes again(1);
  session.cancel();
  retried.read_many(
      std::vector<ps::read_request>{{0, 49'000, {reinterpret_cast<std::byte*>(into[0].data()), 300}, 0}},
      again.listener());
  again.wait();
  CHECK(again.failures() == 0);
  CHECK(into[0] == text.substr(49'000, 300));
  CHECK(retried.report().counters.retries == 1);
  CHECK_FALSE(retried.report().oldest);
}

TEST_CASE("storage/decrypting: cancel ends the reads, and the session stays usable") {
  const deadline limit("cancelling reads of decrypting");
  const std::string text = numbered_bytes(10'000);
  const penstock_test::held_storage held(one_object(encrypted(text, {.segment_size = 1024})));
  const auto where =
      ps::decrypting<ps::aes_256_gcm>(held, test_key(), {.segment_size = 1024, .max_in_flight = 2});
  auto session = where.connect();
  CHECK(read_of(session, 0, 1, 1) == text.substr(1, 1));  // the header is known from now on
  std::vector<std::string> into(5, std::string(100, ' '));
  std::vector<ps::read_request> requests;
  for (std::size_t i = 0; i < into.size(); ++i)
    requests.push_back({0, i * 2000, {reinterpret_cast<std::byte*>(into[i].data()), 100}, i});
  read_outcomes outcomes(5);
  session.read_many(requests, outcomes.listener());
  eventually([&] { return held.reads->count() == 2; });
  session.cancel();
  outcomes.wait();
  CHECK(outcomes.each_once());
  CHECK(outcomes.failures(ps::errc::stopped) == 5);
  CHECK(held.reads->begun() == 2);
  CHECK(read_of(session, 0, 5000, 10) == text.substr(5000, 10));

  read_outcomes once_more(5);
  session.read_many(requests, once_more.listener());
  for (std::size_t i = 0; i < 5; ++i) {
    eventually([&] { return held.reads->count() != 0; });
    held.reads->end(0);
  }
  once_more.wait();
  CHECK(once_more.failures() == 0);
  for (std::size_t i = 0; i < 5; ++i) CHECK(into[i] == text.substr(i * 2000, 100));

  read_outcomes abandoned(5);
  session.read_many(requests, abandoned.listener());
  eventually([&] { return held.reads->count() == 2; });
  { const auto ends = std::move(session); }  // waits for its threads
  CHECK(abandoned.each_once());
  CHECK(abandoned.failures(ps::errc::stopped) == 5);
}

TEST_CASE("storage/decrypting: reads allocate nothing in the steady state") {
  const std::string text = numbered_bytes(300'000);
  std::string into(100'000, ' ');
  const ps::mutable_bytes room(reinterpret_cast<std::byte*>(into.data()), into.size());
  const auto check = [&](const auto& session) {
    session.read(0, 100, room);
    CHECK(penstock_test::allocations_of([&] {
            for (std::uint64_t i = 0; i < 50; ++i) session.read(0, i * 997, room.first(20'000));
            session.read(0, 100, room);
          }) == 0);
    CHECK(into == text.substr(100, into.size()));
  };
  const std::string stored = encrypted(text, {.segment_size = 4096});
  check(decrypted(one_object(stored), {.segment_size = 4096}).connect());
  check(ps::decrypting(copied_files{one_object(stored)}, test_key(), {.segment_size = 4096}).connect());
}

TEST_CASE("storage/decrypting: without memory a read fails and the session stays whole") {
  const std::string text = numbered_bytes(5000), stored = encrypted(text, {.segment_size = 1024});
  const auto where = decrypted(one_object(stored), {.segment_size = 1024});
  CHECK(penstock_test::fail_each_allocation([&] {
          const auto session = where.connect();
          if (all_of(session) != text) throw std::logic_error("other bytes");
        }) > 3);
}

TEST_CASE("storage/decrypting: an encrypted shard gives the samples of the plain one") {
  const deadline limit("samples of encrypted shards");
  const penstock_test::temp_dir folder;
  std::vector<std::string> plain;
  ps::memory_files far_files;
  for (int shard = 0; shard < 3; ++shard) {
    plain.push_back((folder / ("s" + std::to_string(shard) + ".tar")).string());
    ps::tar_writer out(plain.back());
    for (int i = 0; i < 40; ++i) {
      const std::string key = std::to_string(shard) + "-" + std::to_string(i);
      const std::string value = std::string(static_cast<std::size_t>(i * 97 % 1500), 'x') + key;
      out.write(key, {{"txt", std::string_view(value)}});
    }
    out.close();
    std::ifstream in(plain.back(), std::ios::binary);
    const std::string bytes(std::istreambuf_iterator<char>(in), {});
    const std::string sealed = encrypted(bytes, {.segment_size = 1024});
    std::ofstream(plain.back() + ".sealed", std::ios::binary) << sealed;
    far_files.add("s" + std::to_string(shard), sealed);
  }
  const auto values = [](const auto& where, unsigned workers) {
    std::vector<std::string> all;
    for (auto&& one :
         (ps::webdataset(where, {.index = ps::index_policy::transient}) | ps::shuffle(ps::seed(7)) |
          ps::decode<ps::field<"txt", ps::text>> | ps::workers(workers))
             .epoch(0))
      all.emplace_back(std::string_view(ps::get<"txt">(one)));
    return all;
  };
  const auto wanted = values(ps::file(plain), 0);
  REQUIRE(wanted.size() == 120);
  std::vector<std::string> sealed;
  for (const std::string& path : plain) sealed.push_back(path + ".sealed");
  for (const unsigned workers : {0u, 1u, 2u, 7u}) {
    CAPTURE(workers);
    CHECK(values(ps::decrypting(ps::file(sealed), test_key(), {.segment_size = 1024}), workers) == wanted);
    CHECK(
        values(ps::decrypting(far_memory(far_files, {.latency = 500us}), test_key(), {.segment_size = 1024}),
               workers) == wanted);
  }
}

}  // namespace decrypting_test
