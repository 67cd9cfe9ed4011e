// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/source/idx_gz.hpp>

#include "support/catch.hpp"
#include "support/codec_test.hpp"
#include "support/temp_dir.hpp"
#include "support/test_data.hpp"

#include <array>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

namespace ps = penstock;
using codec_test::byte_vector;
using codec_test::caught;
using penstock_test::contains;

static_assert(std::is_same_v<decltype(ps::idx_gz("a")), ps::idx_source<std::uint8_t>>);
static_assert(std::is_same_v<decltype(ps::idx_gz<float, std::int32_t>("a", "b")),
                             ps::idx_pair_source<float, std::int32_t>>);

namespace idx_gz_test {

byte_vector packed(ps::bytes_view bytes) {
  const std::unique_ptr<libdeflate_compressor, void (*)(libdeflate_compressor*)> compressor(
      libdeflate_alloc_compressor(6), libdeflate_free_compressor);
  byte_vector out(libdeflate_gzip_compress_bound(compressor.get(), bytes.size()));
  out.resize(libdeflate_gzip_compress(compressor.get(), bytes.data(), bytes.size(), out.data(), out.size()));
  return out;
}
/// An IDX file of `rows` bytes, all zero.
byte_vector zeros(std::uint32_t rows) {
  byte_vector file = codec_test::to_vector(std::string_view("\0\0\x08\x01", 4));
  for (int shift = 24; shift >= 0; shift -= 8) file.push_back(static_cast<std::byte>(rows >> shift));
  file.resize(file.size() + rows);
  return file;
}
std::string written(const std::filesystem::path& path, const byte_vector& bytes) {
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  return path.string();
}

}  // namespace idx_gz_test

TEST_CASE("source/idx_gz: reads what idx reads, from one member or several") {
  using namespace idx_gz_test;
  const penstock_test::temp_dir dir;
  const byte_vector file = zeros(100'000);
  const ps::bytes_view all = file;
  CHECK(ps::idx_gz(written(dir / "one", packed(file))).size() == 100'000);
  const auto two = codec_test::joined(packed(all.first(50'000)), packed(all.subspan(50'000)));
  const auto source = ps::idx_gz(written(dir / "two", two));
  CHECK(source.size() == 100'000);
  CHECK(ps::idx_gz(written(dir / "padded", codec_test::joined(two, byte_vector(512)))).size() == 100'000);
  CHECK(caught([&] {
          static_cast<void>(ps::idx_gz(written(dir / "junk", codec_test::joined(two, {std::byte{1}}))));
        }).code == ps::errc::format);
  CHECK(source.fingerprint() == ps::idx(written(dir / "plain", file)).fingerprint());
}

TEST_CASE("source/idx_gz: hostile files are errors that name the file, and cost no more than the limit") {
  using namespace idx_gz_test;
  const penstock_test::temp_dir dir;
  const byte_vector file = zeros(1'000'000);
  const byte_vector good = packed(file);
  const std::string bomb = written(dir / "bomb", good);
  CHECK(ps::idx_gz(bomb, file.size()).size() == 1'000'000);
  for (const std::uint64_t limit : {0u, 5000u, 1'000'007u}) {
    const auto error = caught([&] { static_cast<void>(ps::idx_gz(bomb, limit)); });
    CHECK(error.code == ps::errc::limit);
    CHECK_THAT(error.line, contains(std::to_string(limit)) && contains("bomb"));
  }
  const byte_vector small = packed(zeros(100));
  for (std::size_t size = 0; size < small.size(); ++size) {
    const auto cut =
        written(dir / "cut", byte_vector(small.begin(), small.begin() + static_cast<std::ptrdiff_t>(size)));
    const auto error = caught([&] { static_cast<void>(ps::idx_gz(cut)); });
    REQUIRE(error.code == ps::errc::format);
    REQUIRE_THAT(error.line, contains("cut") && contains("offset"));
  }
  for (std::size_t bit = 0; bit < small.size() * 8; ++bit) {
    byte_vector bad = small;
    bad[bit / 8] ^= std::byte{1} << static_cast<int>(bit % 8);
    const auto flipped = written(dir / "flipped", bad);
    std::uint64_t rows = 100;  // a flipped bit in the header's time does no harm
    static_cast<void>(caught([&] { rows = ps::idx_gz(flipped).size(); }));
    REQUIRE(rows == 100);
  }
  byte_vector lie = packed(file);
  lie.back() = std::byte{0xff};
  const auto lying = written(dir / "lying", lie);
  CHECK(caught([&] { static_cast<void>(ps::idx_gz(lying)); }).code == ps::errc::format);
  // valid gzip, invalid IDX
  byte_vector header = zeros(100);
  header.pop_back();
  const auto bad_idx = written(dir / "bad_idx", packed(header));
  CHECK_THAT(caught([&] { static_cast<void>(ps::idx_gz(bad_idx)); }).line,
             contains("100 rows") && contains("but 99 bytes") && contains("offset 8"));
  CHECK(caught([&] { static_cast<void>(ps::idx_gz((dir / "missing").string())); }).code == ps::errc::io);
}

TEST_CASE("source/idx_gz: reads the MNIST test set") {
  const auto folder = penstock_test::test_data("gzip/idx");
  if (!folder) {
    WARN("PENSTOCK_TEST_DATA has no gzip/idx: the MNIST files are not read");
    return;
  }
  const auto mnist = ps::idx_gz((*folder / "t10k-images-idx3-ubyte.gz").string(),
                                (*folder / "t10k-labels-idx1-ubyte.gz").string());
  REQUIRE(mnist.size() == 10'000);
  decltype(mnist)::reader::worker worker;
  const auto reader = mnist.connect();
  std::array<int, 10> counts{};
  std::vector<int> first;
  double sum = 0;
  for (std::uint64_t i = 0; i < 10'000; ++i)
    reader.evaluate({0, i}, worker, [&](const auto& sample) {
      const int label = ps::get<"label">(sample);
      REQUIRE(label < 10);
      ++counts[static_cast<std::size_t>(label)];
      if (i < 10) first.push_back(label);
      const auto image = ps::get<"image">(sample).finish();
      REQUIRE(image.shape() == ps::extents(28, 28));
      for (const std::uint8_t pixel : image.flat()) sum += pixel;
    });
  // known facts about the dataset: its first labels, and the mean of its pixels
  CHECK(first == std::vector<int>{7, 2, 1, 0, 4, 1, 4, 9, 5, 9});
  CHECK(counts == std::array<int, 10>{980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009});
  const double mean = sum / 7'840'000 / 255;
  CHECK((mean > 0.1324 && mean < 0.1326));
}
