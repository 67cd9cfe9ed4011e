// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/core/known_formats.hpp>

#include "support/catch.hpp"
#include "support/codec_test.hpp"
#include "support/collect.hpp"
#include "support/fixtures.hpp"
#include "support/temp_dir.hpp"

#include <penstock/source/arrow_ipc.hpp>
#include <penstock/source/ffcv.hpp>
#include <penstock/source/idx.hpp>
#include <penstock/source/lines.hpp>
#include <penstock/source/npy_rows.hpp>
#include <penstock/source/npz_rows.hpp>
#include <penstock/source/tokens.hpp>
#include <penstock/source/webdataset.hpp>
#include <penstock/storage/memory_files.hpp>

#if __has_include(<nlohmann/json.hpp>)
#include <penstock/source/mds.hpp>
#include <penstock/source/safetensors.hpp>
#endif
#if __has_include(<isa-l/crc.h>)
#include <penstock/source/tfrecord.hpp>
#include <penstock/source/tfrecord_stream.hpp>
#endif

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

namespace ps = penstock;
using codec_test::caught;
using penstock_test::contains;
using namespace std::string_view_literals;

namespace known_formats_test {

std::string content_of(const char* name) {
  std::ifstream in(penstock_test::fixture(name), std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// Whether what `open` throws for each of the two files says what it is.
template <class Open>
void says_what_it_is(const char* wanted, Open open) {
  CAPTURE(wanted);
  const std::string pointer = content_of("reports/lfs_pointer.tar"),
                    page = content_of("reports/page.parquet");
  CHECK_THAT(caught([&] { open(ps::memory_files().add("x", pointer)); }).line,
             contains(wanted) && contains("it is a Git LFS pointer") && contains("git lfs pull"));
  CHECK_THAT(caught([&] { open(ps::memory_files().add("x", page)); }).line,
             contains(wanted) && contains("it is an HTML page"));
}

}  // namespace known_formats_test

TEST_CASE("core/known_formats: what a file is by its first bytes") {
  using ps::detail::known_format;
  const auto of = [](std::string_view text) { return std::string(known_format(ps::bytes_of(text))); };
  CHECK_THAT(of("version https://git-lfs.github.com/spec/v1\noid sha256:4d\n"),
             contains("a Git LFS pointer"));
  CHECK_THAT(of("<!DOCTYPE html>\n<html>"), contains("an HTML page"));
  CHECK_THAT(of("{\"error\": \"token expired\"}"), contains("a JSON text"));
  CHECK(of("PAR1\x15\x04") == "a Parquet file");
  CHECK(of("ARROW1\0\0"sv) == "an Arrow file");
  CHECK(of("BZh91AY&SY") == "a bzip2 file");
  CHECK(of("\xfd"
           "7zXZ\0"sv) == "an xz file");
  CHECK(of("\x89HDF\r\n\x1a\n") == "an HDF5 file");
  CHECK(of(std::string(257, 'a') + "ustar") == "a tar archive");
  CHECK(of("").empty());
  CHECK(of("a text").empty());
  CHECK(of("BZhang").empty());
  const auto e = ps::detail::not_a("a tar archive", ps::bytes_of("text"), {"it has ", 4, " bytes"});
  CHECK_THAT(std::string(e.what()),
             contains("this is not a tar archive: it has 4 bytes") && contains("offset 0"));
  // a damaged file is what it is
  CHECK_THAT(std::string(ps::detail::not_a("a Parquet file", ps::bytes_of("PAR1"), {"it is cut"}).what()),
             contains("this is not a Parquet file: it is cut"));
  CHECK_THAT(caught([] {
               (void)ps::webdataset(ps::memory_files().add("x.tar", std::string(257, 'a') + "ustar"));
             }).line,
             contains("cut off within a header"));
  CHECK_THAT(std::string(ps::detail::not_a("gzip", {}, {}).what()), contains("this is not gzip"));
}

TEST_CASE("core/known_formats: every source says what a file is that is not its own") {
  using namespace known_formats_test;
  says_what_it_is("not a tar archive", [](auto files) { (void)ps::webdataset(files); });
  says_what_it_is("not an Arrow file", [](auto files) { (void)ps::arrow_ipc(files); });
  says_what_it_is("not a file of FFCV", [](auto files) { (void)ps::ffcv(files); });
  says_what_it_is("not an npy file", [](auto files) { (void)ps::npy_rows<float>(files); });
  says_what_it_is("not a zip archive", [](auto files) { (void)ps::npz_rows<float>(files, "x"); });
  says_what_it_is("not a file of tokens",
                  [](auto files) { (void)ps::raw_tokens<std::uint8_t>(files, ps::token_window<4>{}); });
  says_what_it_is("not an llm.c token file",
                  [](auto files) { (void)ps::llmc_tokens<std::uint16_t>(files, ps::token_window<4>{}); });
#if __has_include(<nlohmann/json.hpp>)
  says_what_it_is("not a safetensors file",
                  [](auto files) { (void)ps::safetensors_rows<float>(files, "x"); });
  says_what_it_is("the description is not JSON", [](auto files) { (void)ps::read_mds_index(files); });
#endif
#if __has_include(<isa-l/crc.h>)
  says_what_it_is("not a TFRecord file", [](auto files) { (void)ps::tfrecord(files); });
  says_what_it_is("not a TFRecord file", [](auto files) {
    auto run = ps::tfrecord_stream(files).open();
    for (auto&& one : run.epoch(0)) (void)one;
  });
#endif
  CHECK_THAT(caught([] {
               (void)ps::lines(ps::memory_files().add("x", content_of("reports/lfs_pointer.tar")));
             }).line,
             contains("not a text: it is a Git LFS pointer"));
  CHECK_THAT(
      caught([] { (void)ps::webdataset(penstock_test::fixture("reports/lfs_pointer.tar").string()); }).line,
      contains("lfs_pointer.tar") && contains("a Git LFS pointer"));
}
