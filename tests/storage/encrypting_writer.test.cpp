// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/storage/encrypting_writer.hpp>

#include <penstock/core/error.hpp>
#include <penstock/source/index_shards.hpp>
#include <penstock/source/shard_writer.hpp>
#include <penstock/source/webdataset.hpp>
#include <penstock/storage/concepts.hpp>
#include <penstock/storage/decrypting.hpp>
#include <penstock/storage/file.hpp>
#include <penstock/storage/file_writer.hpp>
#include <penstock/storage/memory_files.hpp>

#include "support/catch.hpp"
#include "support/encrypted.hpp"
#include "support/temp_dir.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ps = penstock;
using penstock_test::encrypted;
using penstock_test::memory_writer;
using penstock_test::numbered_bytes;
using penstock_test::test_key;
using penstock_test::written_objects;

namespace encrypting_writer_test {

using writer = ps::encrypting_writer<ps::aes_256_gcm, memory_writer, ps::one_key>;
static_assert(ps::object_writer<writer> &&
              ps::object_writer<decltype(ps::encrypting(std::declval<writer>(), test_key()))>);

auto into(const std::shared_ptr<written_objects>& all, ps::encrypting_options options = {}) {
  return ps::encrypting<ps::aes_256_gcm>(memory_writer(all), test_key(), std::move(options));
}
std::string decrypted(std::string_view bytes, ps::decrypting_options options = {}) {
  const auto session =
      ps::decrypting<ps::aes_256_gcm>(ps::memory_files().add("one", bytes), test_key(), std::move(options))
          .connect();
  std::string text(ps::detail::to_size(session.size(0)), ' ');
  session.read(0, 0, {reinterpret_cast<std::byte*>(text.data()), text.size()});
  return text;
}
template <class F>
ps::error error_in(F&& f) {
  try {
    f();
  } catch (const ps::error& e) {
    return e;
  }
  return {ps::errc::format, "no error"};
}
struct tink_object {
  std::size_t segment_size;
  std::string_view associated;
  std::size_t size;
  std::string_view bytes;
};
constexpr tink_object tink_objects[] = {
#include "storage/oracles/tink.inc"
};

TEST_CASE("storage/encrypting_writer: however the bytes come, the object has the same plaintext") {
  std::mt19937_64 draw(20261127);
  const auto all = std::make_shared<written_objects>();
  for (const std::size_t segment : {57u, 64u, 1000u, 65536u}) {
    auto out = into(all, {.segment_size = segment});
    for (int i = 0; i < 30; ++i) {
      const std::string text = numbered_bytes(draw() % (6 * segment));
      out.open("one");
      for (std::size_t at = 0; at < text.size();) {
        const std::size_t size =
            std::min<std::size_t>(draw() % (i % 2 == 0 ? 50 : 3 * segment), text.size() - at);
        out.write(ps::bytes_of(text).subspan(at, size));
        at += size;
      }
      const ps::object_version made = out.finish();
      CHECK(made == ps::object_version{text.size(), 77});
      const std::string& stored = all->objects.at("one");
      CHECK(stored.size() == ps::detail::segment_layout(segment).file_size(text.size()));
      CHECK(decrypted(stored, {.segment_size = segment}) == text);
    }
  }
  CHECK(all->aborts == 0);
}

TEST_CASE("storage/encrypting_writer: seals each segment as Google Tink does") {
  for (const tink_object& one : tink_objects) {
    // With the salt and the nonces of Tink's object the bytes must be Tink's.
    using layout = ps::detail::segment_layout;
    std::array<std::byte, layout::header_size> header;
    std::memcpy(header.data(), one.bytes.data(), header.size());
    const ps::detail::object_cipher cipher(header, test_key(), one.associated);
    ps::detail::segment_context context;
    context.encrypt_with(ps::detail::cipher_handle(ps::aes_256_gcm::name), cipher.key);
    const layout places(one.segment_size);
    const std::string text = numbered_bytes(one.size);
    std::string made(one.bytes.substr(0, header.size()));
    const std::uint64_t segments = places.segments(one.bytes.size()).value();
    for (std::uint64_t i = 0; i < segments; ++i) {
      const std::string plain =
          text.substr(ps::detail::to_size(places.plain_begin(i)), ps::detail::to_size(places.room(i)));
      std::string sealed(plain.size() + layout::tag_size, ' ');
      context.seal(cipher.nonce(i, i + 1 == segments), ps::bytes_of(plain),
                   reinterpret_cast<std::byte*>(sealed.data()));
      made += sealed;
    }
    CHECK(made == one.bytes);
  }
}

TEST_CASE("storage/encrypting_writer: no two objects have the same bytes, nor do they show the plaintext") {
  const std::string text(10'000, 'a');
  std::set<std::string> salts;
  for (int i = 0; i < 50; ++i) {
    const std::string made = encrypted(text);
    CHECK(made.find("aaaa") == std::string::npos);
    CHECK(made[0] == '\x28');
    salts.insert(made.substr(1, 39));
  }
  CHECK(salts.size() == 50);
}

TEST_CASE("storage/encrypting_writer: an error gives the object up") {
  const std::string text = numbered_bytes(1000);
  for (std::size_t after = 0; after < 8; ++after) {
    const auto all = std::make_shared<written_objects>();
    auto out = into(all, {.segment_size = 300});
    all->fails_after = after;
    const ps::error failed = error_in([&] {
      out.open("one");
      out.write(ps::bytes_of(text));
      (void)out.finish();
    });
    CAPTURE(after);
    if (after == 7) {  // open, header, four segments, finish
      CHECK(failed.message() == "no error");
      CHECK(all->aborts == 0);
      continue;
    }
    CHECK(failed.code() == ps::errc::io);
    CHECK(all->aborts == 1);
    CHECK(all->objects.empty());
    CHECK(error_in([&] { out.write(ps::bytes_of(text)); }).code() == ps::errc::state);
    CHECK(error_in([&] { (void)out.finish(); }).code() == ps::errc::state);
    out.abort();
    CHECK(all->aborts == 1);
    all->fails_after = ~std::size_t{0};
    out.open("two");
    CHECK(out.finish().size == 0);
    CHECK(decrypted(all->objects.at("two"), {.segment_size = 300}).empty());
  }
}

TEST_CASE("storage/encrypting_writer: what is given up does not appear") {
  const auto all = std::make_shared<written_objects>();
  auto out = into(all);
  out.open("a");
  out.write(ps::bytes_of("a"));
  out.open("b");
  CHECK(all->aborts == 1);
  out.write(ps::bytes_of("b"));
  writer moved = std::move(out);
  moved.write(ps::bytes_of("c"));
  CHECK(moved.finish().size == 2);
  CHECK(all->objects.size() == 1);
  CHECK(decrypted(all->objects.at("b")) == "bc");
}

TEST_CASE("storage/encrypting_writer: each object has the key that the provider gives for its name") {
  const auto all = std::make_shared<written_objects>();
  std::vector<std::string> asked;
  const ps::encryption_key second(ps::bytes_of("another key, of exactly 32 bytes"));
  auto out = ps::encrypting<ps::aes_256_gcm>(memory_writer(all), [&asked, second](std::string_view name) {
    asked.emplace_back(name);
    if (name == "none") throw ps::error(ps::errc::missing, "the vault has no such key");
    if (name == "foreign") throw std::runtime_error("foreign");
    return name == "two" ? second : test_key();
  });
  static_assert(ps::object_writer<decltype(out)>, "also with a lambda that captures");
  for (const char* const name : {"one", "two"}) {
    out.open(name);
    out.write(ps::bytes_of(name));
    (void)out.finish();
  }
  CHECK(asked == std::vector<std::string>{"one", "two"});
  CHECK(decrypted(all->objects.at("one")) == "one");
  CHECK(error_in([&] { (void)decrypted(all->objects.at("two")); }).code() == ps::errc::checksum);
  const ps::error failed = error_in([&] { out.open("none"); });
  CHECK(failed.code() == ps::errc::missing);
  CHECK(failed.file() == "none");
  CHECK_THROWS_WITH(out.open("foreign"), "foreign");
  CHECK(error_in([&] { out.write(ps::bytes_of("x")); }).code() == ps::errc::state);
}

TEST_CASE("storage/encrypting_writer: options that make no sense are errors") {
  const auto all = std::make_shared<written_objects>();
  CHECK(error_in([&] { (void)into(all, {.segment_size = 56}); }).code() == ps::errc::argument);
  CHECK(error_in([&] { (void)into(all, {.segment_size = std::size_t{2} << 30}); }).code() ==
        ps::errc::argument);
}

TEST_CASE("storage/encrypting_writer: shard_writer writes encrypted shards and indexes") {
  const penstock_test::temp_dir folder;
  ps::shard_writer out((folder / "s-%d.tar").string(),
                       ps::encrypting<ps::aes_256_gcm>(ps::file_writer(), test_key()),
                       {.maxcount = 3, .tar = {.index = true}});
  for (int i = 0; i < 7; ++i) out.write(std::to_string(i), {{"txt", "the text " + std::to_string(i)}});
  (void)out.close();
  std::vector<std::string> shards;
  for (int i = 0; i < 3; ++i) shards.push_back((folder / ("s-" + std::to_string(i) + ".tar")).string());
  for (const auto& one : std::filesystem::directory_iterator(folder.path())) {
    std::ifstream in(one.path(), std::ios::binary);
    const std::string bytes(std::istreambuf_iterator<char>(in), {});
    CHECK(bytes.find("txt") == std::string::npos);
    CHECK(bytes[0] == '\x28');
  }
  // the indexes are found beside the shards, in the same encryption
  const auto where = ps::decrypting<ps::aes_256_gcm>(ps::file(shards), test_key());
  const auto size = [&](const char* kept) {
    return ps::webdataset(where,
                          {.index = ps::index_policy::require, .index_folder = (folder / kept).string()})
        .size();
  };
  CHECK(size("first") == 7);

  // and index_shards makes them for shards that were written without
  for (const std::string& one : shards) std::filesystem::remove(one + ".penstock-index");
  CHECK_THROWS_AS(size("second"), ps::error);
  ps::index_shards(where, ps::encrypting<ps::aes_256_gcm>(ps::file_writer(), test_key()));
  CHECK(size("third") == 7);
}

}  // namespace encrypting_writer_test
