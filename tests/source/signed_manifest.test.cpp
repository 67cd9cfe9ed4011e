// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/source/signed_manifest.hpp>

#include <penstock/core/error.hpp>
#include <penstock/storage/file.hpp>

#include "support/catch.hpp"
#include "support/temp_dir.hpp"

#include <fstream>
#include <string>
#include <string_view>
#include <vector>

namespace ps = penstock;

namespace signed_manifest_test {

TEST_CASE("source/signed_manifest: only a manifest that was signed is read") {
  const ps::signing_key ours(ps::bytes_of("take the bytes from your vault!!"));
  const auto rule = ps::require_signature(ours.public_key());
  const penstock_test::temp_dir folder;
  const std::string path = (folder / "train.manifest").string();
  const ps::file where(std::vector{path});
  const auto write = [&](std::string_view text, std::string_view as_signed) {
    std::ofstream(path, std::ios::binary) << text;
    std::ofstream(path + ".sig", std::ios::binary) << ps::text_of(ours.sign(ps::bytes_of(as_signed)).bytes);
  };
  const auto error_of = [&] {
    try {
      (void)ps::read_manifest(where, rule);
    } catch (const ps::error& e) {
      return e;
    }
    return ps::error(ps::errc::state, "it was read");
  };
  const std::string text = to_string(ps::manifest({{"d/a", 10, 2, 8, 1, 17}, {"d/b", 20, 3, 9, 2, 18}}));
  std::ofstream(path, std::ios::binary) << text;
  CHECK(error_of().code() == ps::errc::io);
  CHECK(error_of().file() == path + ".sig");

  write(text, text);
  CHECK(to_string(ps::read_manifest(where, rule)) == text);
  CHECK(to_string(ps::read_manifest(where)) == text);

  std::string edited = text;
  edited[edited.find("20 3")] = '3';
  write(edited, text);
  CHECK(to_string(ps::read_manifest(where)) == edited);  // it is one, which nobody signed
  CHECK(error_of().code() == ps::errc::checksum);
  CHECK(error_of().file() == path);

  write("no manifest", "no manifest");
  CHECK(error_of().code() == ps::errc::format);
  CHECK(error_of().file() == path);
  CHECK(error_of().offset() == 0u);
}

}  // namespace signed_manifest_test
