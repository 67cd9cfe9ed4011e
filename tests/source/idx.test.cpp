// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/source/idx.hpp>

#include "support/catch.hpp"
#include "support/codec_test.hpp"
#include "support/count_allocations.hpp"
#include "support/temp_dir.hpp"

#include <penstock/core/destination.hpp>
#include <penstock/core/random.hpp>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace ps = penstock;
using codec_test::byte_vector;
using codec_test::caught;
using penstock_test::contains;

static_assert(ps::indexed_source<ps::idx_source<std::uint8_t>>);
static_assert(ps::indexed_source<ps::idx_pair_source<std::uint8_t, std::int32_t>>);
static_assert(ps::array_expression<ps::idx_source<float>::element>);
static_assert(!ps::idx_value<std::uint64_t>);

namespace idx_test {

byte_vector made(unsigned code, std::initializer_list<std::uint32_t> lengths, const byte_vector& payload) {
  byte_vector file = {std::byte{0}, std::byte{0}, static_cast<std::byte>(code),
                      static_cast<std::byte>(lengths.size())};
  for (const std::uint32_t length : lengths)
    for (int shift = 24; shift >= 0; shift -= 8) file.push_back(static_cast<std::byte>(length >> shift));
  return codec_test::joined(file, payload);
}
byte_vector counting(std::size_t size) {
  byte_vector bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i);
  return bytes;
}
std::string written(const std::filesystem::path& path, const byte_vector& bytes) {
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  return path.string();
}
template <class T>
std::vector<T> row(const ps::idx_source<T>& source, std::uint64_t index, const ps::extents& shape) {
  typename ps::idx_source<T>::reader::worker worker;
  std::vector<T> values(static_cast<std::size_t>(shape.elements()));
  source.connect().evaluate({0, index}, worker, [&](const auto& expression) {
    REQUIRE(expression.shape() == shape);
    expression.write_to(ps::destination(values.data(), shape));
    const auto view = expression.finish();
    REQUIRE(view.shape() == shape);
    REQUIRE(std::vector<T>(view.flat().begin(), view.flat().end()) == values);
  });
  return values;
}
template <class T = std::uint8_t>
codec_test::thrown refusal(const byte_vector& file) {
  const penstock_test::temp_dir dir;
  const std::string path = written(dir / "bad.idx", file);
  const auto error = caught([&] { static_cast<void>(ps::idx<T>(path)); });
  if (!error.line.empty()) CHECK_THAT(error.line, contains("bad.idx") && contains("offset"));
  return error;
}

}  // namespace idx_test

TEST_CASE("source/idx: reads rows of every type, whatever the byte order of the machine") {
  using namespace idx_test;
  const penstock_test::temp_dir dir;
  const auto bytes = ps::idx(written(dir / "u8", made(0x08, {2, 2, 3}, counting(12))));
  CHECK(bytes.size() == 2);
  CHECK(bytes.starts() == nullptr);
  CHECK(bytes.connect().key(17) == "17");
  CHECK(bytes.connect().bytes_per_sample() == 6);
  CHECK_THAT(bytes.describe(), contains("2 rows of (2, 3)"));
  CHECK(row(bytes, 1, ps::extents(2, 3)) == std::vector<std::uint8_t>{6, 7, 8, 9, 10, 11});
  const auto shorts = ps::idx<std::int16_t>(written(dir / "i16", made(0x0b, {2, 2}, counting(8))));
  CHECK(row(shorts, 1, ps::extents(2)) == std::vector<std::int16_t>{0x0405, 0x0607});
  const auto ints = ps::idx<std::int32_t>(written(dir / "i32", made(0x0c, {2}, counting(8))));
  CHECK(row(ints, 1, ps::extents()) == std::vector<std::int32_t>{0x04050607});
  const byte_vector half_and_two =
      codec_test::to_vector(std::string_view("\x3f\x00\x00\x00\x40\x00\x00\x00", 8));
  CHECK(row(ps::idx<float>(written(dir / "f32", made(0x0d, {1, 2}, half_and_two))), 0, ps::extents(2)) ==
        std::vector<float>{0.5f, 2.0f});
  const byte_vector one = codec_test::to_vector(std::string_view("\x3f\xf0\0\0\0\0\0\0", 8));
  CHECK(row(ps::idx<double>(written(dir / "f64", made(0x0e, {1}, one))), 0, ps::extents()) ==
        std::vector<double>{1.0});
  CHECK(row(ps::idx<std::int8_t>(written(dir / "i8", made(0x09, {256}, counting(256)))), 255,
            ps::extents()) == std::vector<std::int8_t>{-1});
  CHECK(ps::idx(written(dir / "none", made(0x08, {0, 28, 28}, {}))).size() == 0);
}

TEST_CASE("source/idx: images and labels are one record") {
  using namespace idx_test;
  const penstock_test::temp_dir dir;
  const std::string images = written(dir / "images", made(0x08, {3, 2, 2}, counting(12)));
  const std::string labels = written(dir / "labels", made(0x0c, {3}, counting(12)));
  const auto source = ps::idx<std::uint8_t, std::int32_t>(images, labels);
  CHECK(source.size() == 3);
  CHECK_THAT(source.describe(), contains("images") && contains("labels"));
  decltype(source)::reader::worker worker;
  int calls = 0;
  source.connect().evaluate({4, 2}, worker, [&](const auto& sample) {
    CHECK(ps::get<"label">(sample) == 0x08090a0b);
    std::uint8_t image[4];
    ps::get<"image">(sample).write_to(ps::destination(image, ps::get<"image">(sample).shape()));
    CHECK(image[0] == 8);
    CHECK(image[3] == 11);
    ++calls;
  });
  CHECK(calls == 1);
  const std::string fewer = written(dir / "fewer", made(0x0c, {2}, counting(8)));
  const auto error = caught([&] { static_cast<void>(ps::idx<std::uint8_t, std::int32_t>(images, fewer)); });
  CHECK(error.code == ps::errc::format);
  CHECK_THAT(error.line, contains("2 labels for the 3 images") && contains("fewer"));
  CHECK_THAT(caught([&] { static_cast<void>(ps::idx(images, images)); }).line, contains("one dimension"));
}

TEST_CASE("source/idx: a false header is an error that names file and offset") {
  using namespace idx_test;
  CHECK(refusal({}).code == ps::errc::format);
  CHECK_THAT(refusal(counting(100)).line, contains("two zeros"));
  CHECK_THAT(refusal({std::byte{0x1f}, std::byte{0x8b}, std::byte{8}}).line, contains("with idx_gz"));
  CHECK_THAT(refusal(made(0x08, {2, 3}, counting(5))).line,
             contains("2 rows of shape (3,), but 5 bytes") && contains("offset 12"));
  CHECK_THAT(refusal(made(0x08, {2, 3}, counting(7))).line, contains("but 7 bytes"));
  CHECK_THAT(refusal(made(0x0c, {2}, counting(8))).line, contains("type 0x0c, but 0x08 was asked for"));
  CHECK_THAT(refusal(made(0x08, {}, {})).line, contains("0 dimensions"));
  CHECK_THAT(refusal(made(0x08, {1, 1, 1, 1, 1, 1, 1, 1, 1}, counting(1))).line, contains("9 dimensions"));
  const std::uint32_t maximum = 0xffffffffu;
  CHECK(refusal(made(0x08, {maximum, maximum, maximum, maximum}, counting(1))).code == ps::errc::format);
  // products that are zero, or one, modulo 2^64
  CHECK(!refusal<double>(made(0x0e, {1, 0x80000000u, 0x80000000u, 8}, {})).line.empty());
  CHECK(!refusal(made(0x08, {0x10000u, 0x10000u, 0x10000u, 0x10000u}, {})).line.empty());
  CHECK(!refusal(made(0x08, {maximum, maximum}, counting(1))).line.empty());
  const byte_vector good = made(0x08, {2, 2, 3}, counting(12));
  for (std::size_t size = 0; size < good.size(); ++size)
    CHECK(refusal(byte_vector(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(size))).code ==
          ps::errc::format);
  ps::rng random(1, 1, 1);
  for (int round = 0; round < 300; ++round) {
    byte_vector noise = good;
    for (auto n = random.below(4); n > 0; --n) noise[random.below(16)] = static_cast<std::byte>(random());
    static_cast<void>(refusal(noise));
  }
}

TEST_CASE("source/idx: a missing file is an io error that names it") {
  const penstock_test::temp_dir dir;
  const auto missing = caught([&] { static_cast<void>(ps::idx((dir / "missing").string())); });
  CHECK(missing.code == ps::errc::io);
  CHECK_THAT(missing.line, contains("missing") && contains("opened"));
  const auto folder = caught([&] { static_cast<void>(ps::idx(dir.path().string())); });
  CHECK(folder.code == ps::errc::io);
  CHECK_THAT(folder.line, contains("not a regular file"));
}

TEST_CASE("source/idx: the fingerprint changes with the files, and evaluating allocates nothing") {
  using namespace idx_test;
  const penstock_test::temp_dir dir;
  const auto a = ps::idx<std::int16_t>(written(dir / "a", made(0x0b, {2, 2}, counting(8))));
  const auto b = ps::idx<std::int16_t>(written(dir / "b", made(0x0b, {2, 2}, counting(8))));
  const auto c = ps::idx<std::int16_t>(written(dir / "c", made(0x0b, {2, 2}, byte_vector(8))));
  CHECK(a.fingerprint() == b.fingerprint());
  CHECK(a.fingerprint() != c.fingerprint());
  const auto reader = a.connect();
  decltype(reader)::worker worker;
  int sum = 0;
  const auto all = [&] {
    for (std::uint64_t i = 0; i < 2; ++i)
      reader.evaluate({0, i}, worker,
                      [&](const auto& expression) { sum += expression.finish()[1].data()[0]; });
  };
  all();
  CHECK(penstock_test::allocations_of(all) == 0);
  CHECK(sum == 2 * (0x0203 + 0x0607));
}
