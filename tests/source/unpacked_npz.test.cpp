// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/source/unpacked_npz.hpp>

#include "support/catch.hpp"
#include "support/codec_test.hpp"
#include "support/collect.hpp"
#include "support/external_program.hpp"
#include "support/temp_dir.hpp"
#include "support/zip_writer.hpp"

#include <penstock/codec/npy.hpp>
#include <penstock/source/npz_rows.hpp>
#include <penstock/stage/batch.hpp>

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

namespace ps = penstock;
using codec_test::caught;
using penstock_test::contains;

namespace unpacked_npz_test {

/// numpy.savez_compressed(images=numpy.arange(12, dtype="u1").reshape(3, 4), x=numpy.arange(6,
/// dtype="<f4").reshape(2, 3) * 0.5), NumPy 2.1.3.
std::string compressed() {
  return std::string(ps::text_of(codec_test::from_base64(
      "UEsDBC0AAAAIAAAAIQA4dVta//////////"
      "8KABQAaW1hZ2VzLm5weQEAEACMAAAAAAAAAFIAAAAAAAAAm+wX6hsQychQxlCtnpJanFykbqWgXlNqqK6j"
      "oJ6WX1RSlJgXn1+UkgoSd0vMKU4FihdnJBakAvkaxjoKJpo6CrUKZAMuBkYmZhZWNnYOTi5uAFBLAwQtAAAACAAAACEAC8Cwdv////"
      "//////BQAUAHgu"
      "bnB5AQAQAJgAAAAAAAAAVwAAAAAAAACb7BfqGxDJyFDGUK2eklqcXKRupaBuk2airqOgnpZfVFKUmBefX5SSChJ3S8wpTgWKF2ckFq"
      "QC+RpGOgrGmjoK"
      "tQpkAy4GCLBnYGgA4gNAzODAwKDgAABQSwECLQMtAAAACAAAACEAOHVbWlIAAACMAAAACgAAAAAAAAAAAAAAgAEAAAAAaW1hZ2VzLm"
      "5weVBLAQItAy0A"
      "AAAIAAAAIQALwLB2VwAAAJgAAAAFAAAAAAAAAAAAAACAAY4AAAB4Lm5weVBLBQYAAAAAAgACAGsAAAAcAQAAAAA=")));
}
std::string written(const std::filesystem::path& path, std::string_view bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
  return path.string();
}
template <class T>
std::vector<T> values_of(const std::vector<std::string>& paths, std::string_view array) {
  return penstock_test::values_of(ps::npz_rows<T>(paths, array) | ps::batch(1), 1);
}

}  // namespace unpacked_npz_test

TEST_CASE("source/unpacked_npz: arrays of numpy.savez_compressed by rows") {
  using namespace unpacked_npz_test;
  const penstock_test::temp_dir dir;
  const std::string path = written(dir / "a.npz", compressed());
  CHECK_THAT(caught([&] { (void)ps::npz_rows<float>(path, "x"); }).line, contains("unpacked_npz(...)"));
  const std::vector<std::string> copies = ps::unpacked_npz(path);
  REQUIRE(copies.size() == 1);
  CHECK(copies[0] == path + ".penstock-unpacked");
  CHECK(values_of<float>(copies, "x") == std::vector<float>{0, 0.5, 1, 1.5, 2, 2.5});
  CHECK(values_of<std::uint8_t>(copies, "images") ==
        std::vector<std::uint8_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
  // it is made once, and anew where the file has changed
  const auto made = std::filesystem::last_write_time(copies[0]);
  CHECK(ps::unpacked_npz({path.c_str()}) == copies);
  CHECK(std::filesystem::last_write_time(copies[0]) == made);
  const auto in_folder = ps::unpacked_npz(path, {.folder = (dir / "cache").string()});
  CHECK(values_of<float>(in_folder, "x").size() == 6);
  CHECK(ps::unpacked_npz(copies) == copies);  // nothing is compressed there
  if (penstock_test::have_program("python3", "python3 -c 'import zipfile'"))
    CHECK(penstock_test::run_program("python3 -c 'import sys, zipfile; z = zipfile.ZipFile(sys.argv[1]); "
                                     "print(z.testzip(), *z.namelist())' " +
                                     copies[0])
              .output == "None images.npy x.npy\n");
}

TEST_CASE("source/unpacked_npz: damage is an error that names the file, and leaves no copy") {
  using namespace unpacked_npz_test;
  const penstock_test::temp_dir dir;
  const std::string good = compressed();
  int refused = 0;
  for (std::size_t i = 0; i < good.size(); i += 3) {
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ 0x15);
    const std::string path = written(dir / ("x" + std::to_string(i) + ".npz"), bad);
    const auto e = caught([&] {
      for (const char* const array : {"images", "x"})
        (void)ps::npz_rows<float>(ps::unpacked_npz(path), array);
    });
    if (e.line.empty()) continue;
    ++refused;
    CHECK_THAT(e.line, contains(".npz"));
  }
  CHECK(refused > 60);
  const std::string cut = written(dir / "cut.npz", good.substr(0, 200));
  const auto e = caught([&] { (void)ps::unpacked_npz(cut); });
  CHECK(e.code == ps::errc::format);
  CHECK_THAT(e.line, contains("cut.npz") && contains("not a zip archive: it has no end record"));
  CHECK(!std::filesystem::exists(cut + ".penstock-unpacked"));
  const std::string whole = written(dir / "whole.npz", good);
  CHECK(caught([&] { (void)ps::unpacked_npz(whole, {.limit = 200}); }).code == ps::errc::limit);
  CHECK(!std::filesystem::exists(whole + ".penstock-unpacked"));
  std::string wrong = good;  // the checksum of x in the directory
  wrong[good.rfind("PK\1\2") + 16] ^= 1;
  CHECK(caught([&] { (void)ps::unpacked_npz(written(dir / "wrong.npz", wrong)); }).code ==
        ps::errc::checksum);
}
