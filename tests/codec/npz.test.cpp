// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/codec/npz.hpp>
#include <penstock/core/random.hpp>

#include "support/catch.hpp"
#include "support/codec_test.hpp"
#include "support/count_allocations.hpp"
#include "support/zip_writer.hpp"

#include <libdeflate.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ps = penstock;
using codec_test::byte_vector;
using codec_test::caught;
using penstock_test::contains;
using namespace penstock::literals;

static_assert(ps::codec<ps::npz<float>>);

namespace npz_test {

/// What numpy 2.4.6 wrote: savez_compressed(arr=float32, 2 x 3), as Petastorm does; savez(x=int64, 3;
/// y=float64 without a dimension); savez_compressed of 100 x 100 zeros of uint8.
const byte_vector petastorm = codec_test::from_base64(
    "UEsDBC0AAAAIAAAAIQBP6QAq//////////8HABQAYXJyLm5weQEAEACYAAAAAAAAAFUAAAAAAAAAm+wX6hsQychQxlCtnpJanFykbqWg"
    "bpNmoq6joJ6WX1RSlJgXn1+UkgoSd0vMKU4FihdnJBakAvkaRjoKxpo6CrUKZAMuBjBosAcSDkAExA1AvMABAFBLAQItAy0AAAAIAAAA"
    "IQBP6QAqVQAAAJgAAAAHAAAAAAAAAAAAAACAAQAAAABhcnIubnB5UEsFBgAAAAABAAEANQAAAI4AAAAAAA==");
const byte_vector two = codec_test::from_base64(
    "UEsDBC0AAAAAAAAAIQD3QBLq//////////8FABQAeC5ucHkBABAAmAAAAAAAAACYAAAAAAAAAJNOVU1QWQEAdgB7J2Rlc2NyJzogJzxp"
    "OCcsICdmb3J0cmFuX29yZGVyJzogRmFsc2UsICdzaGFwZSc6ICgzLCksIH0gICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAg"
    "ICAgICAgICAgICAgICAgICAgICAgICAgICAKAAAAAAAAAAABAAAAAAAAAAIAAAAAAAAAUEsDBC0AAAAAAAAAIQA1tDqT//////////8F"
    "ABQAeS5ucHkBABAAiAAAAAAAAACIAAAAAAAAAJNOVU1QWQEAdgB7J2Rlc2NyJzogJzxmOCcsICdmb3J0cmFuX29yZGVyJzogRmFsc2Us"
    "ICdzaGFwZSc6ICgpLCB9ICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAK"
    "AAAAAAAABEBQSwECLQMtAAAAAAAAACEA90AS6pgAAACYAAAABQAAAAAAAAAAAAAAgAEAAAAAeC5ucHlQSwECLQMtAAAAAAAAACEANbQ6"
    "k4gAAACIAAAABQAAAAAAAAAAAAAAgAHPAAAAeS5ucHlQSwUGAAAAAAIAAgBmAAAAjgEAAAAA");
const byte_vector zeros = codec_test::from_base64(
    "UEsDBC0AAAAIAAAAIQDjE2F2//////////8JABQAYXJyXzAubnB5AQAQAJAnAAAAAAAAcAAAAAAAAADtyDEOgkAURdGhZRW/+5JMAa0L"
    "oNPYUFiRCYyxMGBmhAZZBRtm3IIluad4ybvbtbnc7pmZzaK9j13Qs+h3qtSKPsbwCW5ox9D7X6/dK/rU49O9ffqnqiytpCmsrPKX3AAA"
    "AAAAAAAAAAAAAAAAcAA7UEsBAi0DLQAAAAgAAAAhAOMTYXZwAAAAkCcAAAkAAAAAAAAAAAAAAIABAAAAAGFycl8wLm5weVBLBQYAAAAA"
    "AQABADcAAACrAAAAAAA=");

template <class T>
std::vector<T> values(ps::bytes_view file, const ps::npz<T>& codec = {}) {
  typename ps::npz<T>::scratch scratch;
  const auto array = codec.decode(file, scratch);
  const auto view = array.finish();
  return {view.data(), view.data() + view.shape().elements()};
}
template <class T = float>
codec_test::thrown failure(ps::bytes_view file, const ps::npz<T>& codec = {}) {
  return caught([&] { values<T>(file, codec); });
}

std::string deflated(std::string_view bytes) {
  const std::unique_ptr<libdeflate_compressor, void (*)(libdeflate_compressor*)> compressor(
      libdeflate_alloc_compressor(6), libdeflate_free_compressor);
  std::string out(libdeflate_deflate_compress_bound(compressor.get(), bytes.size()), '\0');
  out.resize(
      libdeflate_deflate_compress(compressor.get(), bytes.data(), bytes.size(), out.data(), out.size()));
  return out;
}

/// An archive of one array, and its numbers that a test may change: in the directory and its entry's offset.
byte_vector archive(std::string_view npy, std::uint16_t method, std::uint16_t flags = 0) {
  const std::string packed = method == 8 ? deflated(npy) : std::string(npy);
  std::string all = penstock_test::zip_writer()
                        .add({.name = "a.npy", .bytes = packed, .method = method, .flags = flags})
                        .text();
  const std::size_t entry = all.rfind("PK\1\2");
  all.replace(entry + 16, 4,
              penstock_test::zip_writer::little(libdeflate_crc32(0, npy.data(), npy.size()), 4));
  all.replace(entry + 24, 4, penstock_test::zip_writer::little(npy.size(), 4));
  return codec_test::to_vector(std::string_view(all));
}
std::string npy_text(std::vector<float> numbers) {
  const auto file = ps::npy_bytes<float>(ps::extents(numbers.size()), numbers);
  return {reinterpret_cast<const char*>(file.data()), file.size()};
}

TEST_CASE("codec/npz: arrays as numpy writes them, compressed or not") {
  CHECK(values<float>(petastorm) == std::vector<float>{0, 1, 2, 3, 4, 5});
  CHECK(values<float>(petastorm, {.array = "arr"}) == std::vector<float>{0, 1, 2, 3, 4, 5});
  CHECK(values<float>(petastorm, {.array = "arr.npy"}) == std::vector<float>{0, 1, 2, 3, 4, 5});
  ps::npz<float>::scratch scratch;
  CHECK(ps::npz<float>{}.decode(petastorm, scratch).shape() == ps::extents(2, 3));

  CHECK(values<std::int64_t>(two, {.array = "x"}) == std::vector<std::int64_t>{0, 1, 2});
  CHECK(values<double>(two, {.array = "y"}) == std::vector<double>{2.5});
  CHECK(values<std::uint8_t>(zeros) == std::vector<std::uint8_t>(10'000));
  CHECK(values<float>(archive(npy_text({}), 8)).empty());
  CHECK(values<float>(archive(npy_text({1, 2}), 0)) == std::vector<float>{1, 2});
}

TEST_CASE("codec/npz: a stored array stays in place, and nothing is allocated in the steady state") {
  const byte_vector stored = archive(npy_text(std::vector<float>(64, 1.5f)), 0);
  const byte_vector packed = archive(npy_text(std::vector<float>(64, 2.5f)), 8);
  ps::npz<float>::scratch scratch;
  const ps::npz<float> codec{.array = "a"};
  byte_vector into(64 * sizeof(float));
  const auto both = [&] {
    for (const byte_vector* const one : {&stored, &packed}) {
      const auto view = codec.decode(*one, scratch).finish();
      std::memcpy(into.data(), view.data(), into.size());
    }
  };
  both();
  CHECK(penstock_test::allocations_of(both) == 0);
}

TEST_CASE("codec/npz: which array is meant") {
  CHECK_THAT(failure<double>(two).line, contains("the npz file has x, y: name one, as in npz<float>{.array"));
  CHECK(failure<double>(two).code == ps::errc::argument);
  CHECK_THAT(failure<double>(two, {.array = "z"}).line, contains("has no array 'z'; it has: x, y"));
  CHECK(failure<double>(two, {.array = "z"}).code == ps::errc::missing);
  const std::string none = penstock_test::zip_writer().text();
  CHECK_THAT(failure(ps::bytes_of(none)).line, contains("the npz file has no arrays"));
  CHECK(failure(ps::bytes_of(none)).code == ps::errc::missing);
  CHECK_THAT(failure<double>(two, {.array = "x"}).line, contains("the array 'x'"));  // of another type
}

TEST_CASE("codec/npz: damage is an error, or changes nothing that is read") {
  for (const byte_vector* const file : {&petastorm, &zeros}) {
    for (std::size_t size = 0; size < file->size(); ++size)
      REQUIRE(!failure(ps::bytes_view(*file).first(size)).line.empty());
  }
  const auto good = values<float>(petastorm);
  for (std::size_t i = 0; i < petastorm.size(); ++i)
    for (const unsigned flip : {1u, 0x80u, 0xffu}) {
      CAPTURE(i, flip);
      byte_vector bad = petastorm;
      bad[i] ^= static_cast<std::byte>(flip);
      std::optional<std::vector<float>> found;
      const auto error = caught([&] { found = values<float>(bad); });
      if (found)
        REQUIRE(*found == good);
      else
        REQUIRE(!error.line.empty());
    }
  byte_vector bad = petastorm;
  const std::size_t entry = petastorm.size() - 22 - 53;
  bad[entry + 16] ^= std::byte{1};
  CHECK(failure(bad).code == ps::errc::checksum);
  CHECK_THAT(failure(bad).line, contains("the array 'arr' does not match the npz file's checksum"));
}

TEST_CASE("codec/npz: what is refused") {
  CHECK_THAT(failure(archive(npy_text({1}), 12)).line,
             contains("the member 'a.npy' of the npz file is compressed by another method than deflate"));
  CHECK_THAT(failure(archive(npy_text({1}), 8, 1)).line,
             contains("is encrypted; save it without a password"));
  CHECK_THAT(failure(ps::bytes_of(std::string_view("no archive"))).line,
             contains("this is not a zip archive"));

  // Bombs: a size that nothing could expand to, and one beyond the limit.
  const byte_vector large = archive(npy_text(std::vector<float>(100'000)), 8);
  CHECK(failure(large).line.empty());
  CHECK(failure(large, ps::npz<float>{.limit = 100'000}).code == ps::errc::limit);
  CHECK_THAT(
      failure(large, ps::npz<float>{.limit = 100'000}).line,
      contains("the array 'a' has 400128 bytes, and the limit is 100000; raise it with npz<T>{.limit"));
  byte_vector bomb = archive(npy_text({1}), 8);
  std::string size = penstock_test::zip_writer::little(900'000'000, 4);
  const std::size_t entry = bomb.size() - 22 - 51;
  for (std::size_t i = 0; i < 4; ++i) bomb[entry + 24 + i] = static_cast<std::byte>(size[i]);
  CHECK_THAT(failure(bomb).line, contains("is damaged: it cannot have as many bytes as the directory says"));
}

}  // namespace npz_test
