// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/source/npy_ranges.hpp>

#include "support/catch.hpp"
#include "support/temp_dir.hpp"

#include <penstock/codec/npy.hpp>
#include <penstock/core/error.hpp>
#include <penstock/core/file_range.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/npy_rows.hpp>
#include <penstock/stage/batch.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <vector>

namespace npy_ranges_test {

namespace ps = penstock;
using penstock_test::contains;

static_assert(ps::indexed_source<ps::npy_range_source<float>>);

void write(const std::filesystem::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}
template <class T>
std::string npy(const ps::extents& shape, T first) {
  std::vector<T> values(static_cast<std::size_t>(shape.elements()));
  for (T& value : values) value = first++;
  const auto bytes = ps::npy_bytes<T>(shape, std::span<const T>(values));
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}
std::string contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST_CASE("source/npy_ranges: ranges have the bytes that npy_rows reads, in the same order") {
  const penstock_test::temp_dir folder;
  write(folder / "0.npy", npy<float>(ps::extents(3, 2, 4), 0));
  write(folder / "1.npy", npy<float>(ps::extents(0, 2, 4), 0));
  write(folder / "2.npy", npy<float>(ps::extents(5, 2, 4), 100));
  const std::string pattern = (folder / "{0..2}.npy").string();
  const auto ranges = ps::npy_ranges<float>(pattern);
  CHECK(ranges.size() == 8);
  CHECK(ranges.row() == ps::extents(2, 4));
  CHECK(ranges.located()->row == ps::extents(2, 4));
  REQUIRE(ranges.located()->files.size() == 3);
  CHECK(ranges.located()->files[2].path == (folder / "2.npy").string());
  CHECK(ranges.located()->files[2].bytes == std::filesystem::file_size(folder / "2.npy"));
  CHECK(ranges.describe() == "npy_ranges(3 files): 8 rows of (2, 4) 'f4', not read");
  CHECK(ranges.connect().key(4) == (folder / "2.npy").string() + ":1");

  std::vector<float> found, expected;
  for (auto&& b : (ranges | ps::shuffle(ps::seed(7)) | ps::batch(3)).epoch(1))
    for (const ps::file_range& range : b.values()) {
      const std::string file = contents(ranges.located()->files[range.file].path);
      REQUIRE(range.bytes == 32);
      REQUIRE(range.offset + range.bytes <= file.size());
      found.resize(found.size() + 8);
      std::memcpy(found.data() + found.size() - 8, file.data() + range.offset, 32);
    }
  for (auto&& b : (ps::npy_rows<float>(pattern) | ps::shuffle(ps::seed(7)) | ps::batch(3)).epoch(1))
    expected.insert(expected.end(), b.values().data(), b.values().data() + b.size() * 8);
  CHECK(found == expected);
}

TEST_CASE("source/npy_ranges: what a device could not read as it is, is refused") {
  const penstock_test::temp_dir folder;
  const auto message = [&](const std::string& bytes) -> std::string {
    write(folder / "a.npy", bytes);
    try {
      (void)ps::npy_ranges<std::int32_t>((folder / "a.npy").string());
    } catch (const ps::error& e) {
      return e.what();
    }
    return "";
  };
  std::string good = npy<std::int32_t>(ps::extents(3, 2), 1);
  CHECK(message(good).empty());
  std::string swapped = good;
  const std::size_t order = good.find("i4") - 1;
  swapped[order] = swapped[order] == '<' ? '>' : '<';
  CHECK_THAT(message(swapped),
             contains("in the other byte order") && contains("npy_rows") && contains("a.npy"));
  CHECK_THAT(message(good.substr(0, good.size() - 1)), contains("a.npy"));
  CHECK_THAT(message(npy<std::int16_t>(ps::extents(3, 2), std::int16_t{1})), contains("'i4' was asked for"));
  CHECK_THAT(message("no npy file"), contains("a.npy"));
}

TEST_CASE("source/npy_ranges: another file, or another content at its ends, is another dataset") {
  const penstock_test::temp_dir folder;
  write(folder / "a.npy", npy<float>(ps::extents(3, 2), 1));
  const std::string path = (folder / "a.npy").string();
  const std::uint64_t before = ps::npy_ranges<float>(path).fingerprint();
  CHECK(ps::npy_ranges<float>(path).fingerprint() == before);
  CHECK(ps::npy_rows<float>(path).fingerprint() != before);
  write(folder / "a.npy", npy<float>(ps::extents(3, 2), 2));
  CHECK(ps::npy_ranges<float>(path).fingerprint() != before);
}

}  // namespace npy_ranges_test
