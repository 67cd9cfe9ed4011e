// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/storage/signature.hpp>

#include <penstock/core/error.hpp>
#include <penstock/storage/any_of.hpp>
#include <penstock/storage/file.hpp>
#include <penstock/storage/mapped_file.hpp>
#include <penstock/storage/memory_files.hpp>
#include <penstock/storage/retrying.hpp>

#include "support/catch.hpp"
#include "support/external_program.hpp"
#include "support/temp_dir.hpp"

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ps = penstock;

namespace signature_test {

const std::string list_text = ps::to_string(ps::sha256_hash{}) + "  0.tar\n";
ps::signing_key ours() { return ps::signing_key(ps::bytes_of("take the bytes from your vault!!")); }

/// The objects of a store that can be named beside another, as those of s3.
struct store {
  ps::memory_files all;
  std::vector<std::string> chosen;
  using session = ps::memory_files::session;
  [[nodiscard]] std::span<const std::string> names() const { return chosen; }
  [[nodiscard]] session connect() const { return all.with_names(chosen).connect(); }
  [[nodiscard]] store sidecars(ps::sidecar which) const {
    store made{all, {}};
    for (const std::string& name : chosen) made.chosen.push_back(which.of(name));
    return made;
  }
};

store signed_list(std::string_view text, std::string_view signature) {
  return {ps::memory_files().add("d/train.sha256", text).add("d/train.sha256.sig", signature),
          {"d/train.sha256"}};
}
std::string signature_of(std::string_view text) {
  return std::string(ps::text_of(ours().sign(ps::bytes_of(text)).bytes));
}
ps::error error_of(const auto& where) {
  try {
    (void)ps::read_sha256_list(where, ps::require_signature(ours().public_key()));
  } catch (const ps::error& e) {
    return e;
  }
  return {ps::errc::state, "it was read"};
}

TEST_CASE("storage/signature: a list that was signed is read from any storage") {
  const auto rule = ps::require_signature(ours().public_key());
  const store there = signed_list(list_text, signature_of(list_text));
  CHECK(ps::to_string(ps::read_sha256_list(there, rule)) == list_text);
  CHECK(ps::read_sha256_list(ps::retrying(there), rule).size() == 1);
  const penstock_test::temp_dir folder;
  const std::string path = (folder / "{train}.sha256").string();
  std::ofstream(path, std::ios::binary) << list_text;
  std::ofstream(path + ".sig", std::ios::binary) << signature_of(list_text);
  CHECK(ps::read_sha256_list(ps::file(std::vector{path}), rule).size() == 1);
  CHECK(ps::read_sha256_list(ps::mapped_file(std::vector{path}), rule).size() == 1);
  CHECK(ps::read_sha256_list(ps::retrying(ps::file(std::vector{path})), rule).size() == 1);
  using chosen = ps::any_of<ps::file>;
  CHECK(ps::read_sha256_list(chosen(ps::file(std::vector{path})), rule).size() == 1);
}

TEST_CASE("storage/signature: a signature that is missing, cut, altered or of another key is an error") {
  const std::string good = signature_of(list_text);
  const ps::error missing =
      error_of(store{ps::memory_files().add("d/train.sha256", list_text), {"d/train.sha256"}});
  CHECK(missing.code() == ps::errc::io);
  CHECK(missing.recurs());
  CHECK(missing.file() == "d/train.sha256.sig");
  CHECK(std::string(missing.message()).find("signature that is required") != std::string::npos);

  for (const std::string& other : {good.substr(1), good + "\n", std::string(), std::string(88, 'b')}) {
    const ps::error e = error_of(signed_list(list_text, other));
    CHECK(e.code() == ps::errc::checksum);
    CHECK(e.file() == "d/train.sha256.sig");
    CHECK(std::string(e.message()).find("64 bytes") != std::string::npos);
  }
  std::string flipped = good;
  flipped[10] = static_cast<char>(flipped[10] ^ 4);
  const std::string by_another(
      ps::text_of(ps::signing_key(ps::bytes_of(std::string(32, 'k'))).sign(ps::bytes_of(list_text)).bytes));
  for (const std::string& other :
       {flipped, by_another, std::string(64, '\0'), signature_of(list_text + "\n")}) {
    const ps::error e = error_of(signed_list(list_text, other));
    CHECK(e.code() == ps::errc::checksum);
    CHECK(e.file() == "d/train.sha256");
    CHECK(std::string(e.message()).find("not signed with this key") != std::string::npos);
  }
  CHECK(error_of(signed_list(list_text, good)).code() == ps::errc::state);
}

TEST_CASE(
    "storage/signature: of a file that was changed nothing is used, not even to say what is wrong in it") {
  const std::string good = signature_of(list_text);
  for (std::size_t at = 0; at < list_text.size(); at += 7) {
    std::string other = list_text;
    other[at] = static_cast<char>(other[at] ^ 1);
    CHECK(error_of(signed_list(other, good)).code() == ps::errc::checksum);
  }
  CHECK(error_of(signed_list("", good)).code() == ps::errc::checksum);
  const ps::error signed_but_no_list = error_of(signed_list("no list", signature_of("no list")));
  CHECK(signed_but_no_list.code() == ps::errc::format);
  CHECK(signed_but_no_list.file() == "d/train.sha256");
  CHECK(signed_but_no_list.offset() == 0u);
  CHECK(error_of(store{ps::memory_files().add("a", "1").add("b", "2"), {"a", "b"}}).code() ==
        ps::errc::argument);
}

TEST_CASE("storage/signature: what the programs sha256sum and openssl make is read") {
  if (!penstock_test::have_program("openssl", "openssl version && sha256sum --version")) return;
  const penstock_test::temp_dir folder;
  std::ofstream(folder / "0.tar") << "bytes";
  const auto made = penstock_test::run_program(
      "cd '" + folder.path().string() +
      "' && openssl genpkey -algorithm ed25519 -out key.pem && openssl pkey -in key.pem -pubout -out "
      "public.pem && "
      "sha256sum *.tar > train.sha256 && "
      "openssl pkeyutl -sign -rawin -inkey key.pem -in train.sha256 -out train.sha256.sig");
  CAPTURE(made.output);
  REQUIRE(made.status == 0);
  const auto key = ps::verifying_key::from_file((folder / "public.pem").string());
  const ps::file where(std::vector{(folder / "train.sha256").string()});
  CHECK(ps::read_sha256_list(where, ps::require_signature(key)).find("x/0.tar").has_value());
  std::ofstream(folder / "train.sha256", std::ios::app) << "\n";
  CHECK_THROWS_AS(ps::read_sha256_list(where, ps::require_signature(key)), ps::error);
}

}  // namespace signature_test
