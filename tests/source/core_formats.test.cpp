// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/source/core_formats.hpp>

#include "support/arrow_text.hpp"
#include "support/catch.hpp"
#include "support/collect.hpp"
#include "support/dataset_files.hpp"

#include <penstock/source/dataset_format.hpp>
#include <penstock/storage/memory_files.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

namespace ps = penstock;
using namespace penstock_test;
using fit = ps::format_fit;

namespace core_formats_test {

template <class... Formats>
constexpr bool all_are_formats(ps::light_tuple<Formats...>*) {
  return (ps::dataset_format<Formats> && ...);
}
static_assert(all_are_formats(static_cast<ps::core_formats*>(nullptr)));
static_assert(ps::stored_format<ps::webdataset_format<>, ps::memory_files> &&
              ps::stored_format<ps::lines_format, ps::memory_files> &&
              !ps::stored_format<ps::lines_format, ps::file> &&
              !ps::stored_format<ps::directory_format, ps::memory_files>);

/// How a format finds one file.
template <class Format>
fit look(std::string_view name, std::string_view bytes, const Format& format = {}) {
  const dataset_folder folder;
  return format.look(ps::dataset_listing(folder.write(name, bytes)));
}
/// What a format makes of one file.
template <class Format>
auto opened(std::string_view name, std::string_view bytes, const Format& format = {}) {
  const dataset_folder folder;
  return format.open(ps::dataset_listing(folder.write(name, bytes)));
}
template <class Sources>
std::uint64_t size_of(const Sources& sources) {
  return std::visit([](const auto& one) { return one.size(); }, sources);
}

}  // namespace core_formats_test

using namespace core_formats_test;

TEST_CASE("source/core_formats: tar by its checksum, not by its name") {
  using format = ps::webdataset_format<>;
  const std::string tar = shard_bytes(3);
  CHECK(look<format>("a.tar", tar) == fit::content);
  CHECK(look<format>("a.dat", tar) == fit::content);
  CHECK(size_of(opened<format>("a.dat", tar)) == 3);
  std::string damaged = tar;
  damaged[0] ^= 1;
  CHECK(look<format>("a.tar", damaged) == fit::none);
  CHECK(look<format>("a.tar", tar.substr(0, 511)) == fit::none);
  CHECK(look<format>("a.tar", "") == fit::none);
  CHECK(look<format>("a.tar", std::string(1024, '\0')) == fit::content);  // an archive without members
  CHECK(look<format>("a.bin", std::string(1024, '\0')) == fit::none);
  CHECK(look<format>("a.tar.gz", "\x1f\x8b\x08") == fit::content);
  CHECK(look<format>("a.tgz", "\x1f\x8b\x08") == fit::content);
  CHECK(look<format>("a.gz", "\x1f\x8b\x08") == fit::none);
  CHECK_THAT(error_of([&] { static_cast<void>(opened<format>("a.tar.gz", "\x1f\x8b\x08")); }),
             contains("unpack_gzip"));
}

TEST_CASE("source/core_formats: Arrow's files and streams, and Hugging Face's folders") {
  using format = ps::arrow_ipc_format<>;
  for (const char* const name : {"file.arrow", "stream.arrow"}) {
    CHECK(look<format>("x", arrow_oracle(name)) == fit::content);
    CHECK(size_of(opened<format>("x.arrow", arrow_oracle(name))) != 0);
    CHECK(size_of(opened<format>("x.feather", arrow_oracle(name))) != 0);
  }
  CHECK(look<format>("x", std::string(64, '\xff')) == fit::none);
  CHECK(look<format>("x", "\xff\xff\xff\xff") == fit::none);
  const dataset_folder folder;
  folder.write("data-00000-of-00002.arrow", arrow_oracle("stream.arrow"));
  folder.write("cache-0123.arrow", arrow_oracle("file.arrow"));
  folder.write("state.json", "{}");
  CHECK(format::look(ps::dataset_listing(folder())) == fit::content);
  CHECK_THAT(error_of([&] { static_cast<void>(format{}.open(ps::dataset_listing(folder()))); }),
             contains("lacks number 1: fetch the others"));
  folder.write("data-00001-of-00002.arrow", arrow_oracle("stream.arrow"));
  CHECK(size_of(format{}.open(ps::dataset_listing(folder()))) ==
        2 * size_of(opened<format>("x.arrow", arrow_oracle("stream.arrow"))));
}

TEST_CASE("source/core_formats: FFCV's files") {
  const std::string bytes = ffcv_bytes();
  CHECK(look<ps::ffcv_format>("x", bytes) == fit::content);
  CHECK(size_of(opened<ps::ffcv_format>("x", bytes)) == 3);
  for (const std::size_t place : {0u, 4u}) {  // another version, another size of pages
    std::string other = bytes;
    other[place] ^= 1;
    CHECK(look<ps::ffcv_format>("x.beton", other) == fit::none);
  }
  CHECK(look<ps::ffcv_format>("x.beton", bytes.substr(0, 23)) == fit::none);
}

TEST_CASE("source/core_formats: npy and npz files, of the types that are listed") {
  using all = ps::npy_rows_format<>;
  CHECK(look<all>("x", npy_text<float>(ps::extents(4, 2))) == fit::content);
  CHECK(look<all>("x.npy", "NUMPY") == fit::none);
  const auto floats = opened<all>("x", npy_text<float>(ps::extents(4, 2)));
  CHECK(std::holds_alternative<ps::npy_row_source<float, ps::mapped_file>>(floats));
  CHECK(size_of(floats) == 4);
  CHECK(opened<all>("x", npy_text<std::uint8_t>(ps::extents(4))).index() == 0);
  CHECK_THAT(
      error_of([] { static_cast<void>(opened<all>("x.npy", npy_text<std::uint16_t>(ps::extents(4)))); }),
      contains("the dataset holds 'u2', which is not among the types of npy_rows_format<...>: add it"));
  CHECK(size_of(opened<ps::npy_rows_format<std::uint16_t>>("x.npy",
                                                           npy_text<std::uint16_t>(ps::extents(4)))) == 4);

  using packed = ps::npz_rows_format<>;
  const std::string one = zip_writer().add("a.npy", npy_text<float>(ps::extents(4, 2))).text();
  const std::string two = zip_writer()
                              .add("a.npy", npy_text<float>(ps::extents(4, 2)))
                              .add("b.npy", npy_text<std::int32_t>(ps::extents(5)))
                              .text();
  CHECK(look<packed>("x", one) == fit::content);
  CHECK(look<packed>("x.npz", zip_writer().add("a.txt", "x").text()) == fit::none);
  CHECK(size_of(opened<packed>("x", one)) == 4);
  CHECK_THAT(error_of([&] { static_cast<void>(opened<packed>("x.npz", two)); }),
             contains("the arrays a, b: name one, as in dataset(path, npz_rows_format<>{.array = \"a\"})"));
  CHECK(size_of(opened<packed>("x.npz", two, {.array = "b"})) == 5);
  CHECK_THAT(error_of([&] { static_cast<void>(opened<packed>("x.npz", two, {.array = "c"})); }),
             contains("has no array 'c'"));
  const auto stored = ps::memory_files().add("x.npz", two);
  CHECK(size_of(packed{.array = "b"}.open_in(stored, ps::dataset_listing(stored))) == 5);
}

TEST_CASE("source/core_formats: IDX by a header that matches the size") {
  using format = ps::idx_format<>;
  const std::string bytes = idx_bytes({3, 2, 2}, 12);
  CHECK(look<format>("x", bytes) == fit::content);
  CHECK(size_of(opened<format>("x", bytes)) == 3);
  CHECK(look<format>("x", bytes + "y") == fit::none);
  CHECK(look<format>("x", bytes.substr(0, 7)) == fit::none);
  CHECK(look<format>("x", idx_bytes({0xffffffff, 0xffffffff, 0xffffffff}, 1)) == fit::none);
  std::string floats = idx_bytes({3}, 12);
  floats[2] = 0x0d;
  CHECK(look<format>("x", floats) == fit::content);
  CHECK_THAT(error_of([&] { static_cast<void>(opened<format>("x", floats)); }),
             contains("numbers of code 13, which is not among the types of idx_format<...>"));
  CHECK(size_of(opened<ps::idx_format<std::uint8_t, float>>("x", floats)) == 3);
  const dataset_folder folder;
  folder.write("t-1", bytes);
  folder.write("t-2", bytes);
  CHECK_THAT(error_of([&] { static_cast<void>(format::open(ps::dataset_listing(folder()))); }),
             contains("an IDX file is one array, so name one"));
}

TEST_CASE("source/core_formats: tokens of llm.c and Megatron, whose windows are an option") {
  using format = ps::tokens_format<>;
  const format windows{.window = {.length = 4}};
  CHECK(look<format>("x", llmc_bytes(9)) == fit::content);
  const auto narrow = opened("x", llmc_bytes(9), windows);
  CHECK(std::holds_alternative<ps::token_source<std::uint16_t, ps::token_windows, ps::mapped_file>>(narrow));
  CHECK(size_of(narrow) == 2);
  CHECK(look<format>("x.bin", std::string(64, '\1')) == fit::none);

  const dataset_folder folder;
  folder.write("t.idx", megatron_index(9, 4));
  folder.write("t.bin", std::string(36, '\1'));
  for (const char* const name : {"t", "t.idx", "t.bin", ""}) {
    const ps::dataset_listing there(folder(name));
    CHECK(format::look(there) == fit::content);
    const auto wide = windows.open(there);
    CHECK(std::holds_alternative<ps::token_source<std::int32_t, ps::token_windows, ps::mapped_file>>(wide));
    CHECK(size_of(wide) == 2);
  }
  folder.write("t.idx", megatron_index(9, 1));
  CHECK_THAT(error_of([&] { static_cast<void>(windows.open(ps::dataset_listing(folder("t")))); }),
             contains("unsigned tokens of 8 bits"));
  folder.write("t.idx", megatron_index(9, 7));
  CHECK_THAT(error_of([&] { static_cast<void>(windows.open(ps::dataset_listing(folder("t")))); }),
             contains("tokens are of type 7, which is no whole number"));
}

TEST_CASE("source/core_formats: folders of images, and of classes of images") {
  const dataset_folder folder;
  folder.write("cat/1.jpg", jpeg_beginning);
  folder.write("dog/1.PNG", png_beginning);
  folder.write("readme.txt", "x");
  const ps::dataset_listing there(folder());
  CHECK(ps::directory_format::look(there) == fit::layout);
  CHECK(std::get<0>(ps::directory_format::open(there)).classes().size() == 2);
  const ps::dataset_listing cats(folder("cat"));
  CHECK(ps::directory_format::look(cats) == fit::layout);
  CHECK(size_of(ps::directory_format::open(cats)) == 1);
  CHECK(ps::directory_format::look(ps::dataset_listing(folder("cat/1.jpg"))) == fit::none);
  const dataset_folder other;
  other.write("a/b/1.jpg", jpeg_beginning);
  other.write("c/x.jpg", "no image");
  CHECK(ps::directory_format::look(ps::dataset_listing(other())) == fit::none);
}

TEST_CASE("source/core_formats: JSON lines, and text where nothing else fits") {
  using format = ps::lines_format;
  CHECK(look<format>("x", "{\"a\": 1}\n{\"a\": 2}\n") == fit::content);
  CHECK(look<format>("x", "[1]\r\n[2]\r\n") == fit::content);
  CHECK(look<format>("x.jsonl", "{\"a\": 1}\n") == fit::content);
  CHECK(look<format>("x.jsonl", "{\"a\": \"" + std::string(5000, 'x') + "\"}\n") == fit::content);
  CHECK(look<format>("x.json", "{\"a\": 1}\n") == fit::none);
  CHECK(look<format>("x.json", "{\n\"a\": 1\n}\n") == fit::none);
  CHECK(look<format>("x.txt", "text\n") == fit::layout);
  CHECK(look<format>("x.txt", "g\xc3\xbcnstig, \xe2\x82\xac, \xf0\x9f\x98\x80") == fit::layout);
  CHECK(look<format>("x.txt", std::string(4095, 'x') + "\xc3\xbc") == fit::layout);  // cut within a character
  CHECK(look<format>("x.txt", "\xff\xfe") == fit::none);
  CHECK(look<format>("x.txt", {"a\0b", 3}) == fit::none);
  CHECK(look<format>("x.txt", "") == fit::none);
  CHECK(size_of(opened<format>("x.txt", "a\nb\n")) == 2);
  const dataset_folder folder;
  folder.write("part-0.jsonl", "{}\n");
  folder.write("part-1.jsonl", "{}\n");
  folder.write("README.md", "text");
  CHECK(format::look(ps::dataset_listing(folder())) == fit::layout);
  CHECK(size_of(format{}.open(ps::dataset_listing(folder()))) == 2);
  folder.write("photo.jpg", jpeg_beginning);
  CHECK(format::look(ps::dataset_listing(folder())) == fit::none);
}
