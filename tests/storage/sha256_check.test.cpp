// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/storage/sha256_check.hpp>

#include <penstock/core/error.hpp>
#include <penstock/storage/file.hpp>
#include <penstock/storage/memory_files.hpp>
#include <penstock/storage/object_check.hpp>
#include <penstock/storage/stage_to.hpp>

#include "support/catch.hpp"
#include "support/external_program.hpp"
#include "support/noting_storage.hpp"
#include "support/temp_dir.hpp"

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace ps = penstock;

namespace sha256_check_test {

static_assert(std::movable<ps::sha256_check::state>);
static_assert(ps::object_check<ps::sha256_check>);

std::string hash_of(std::string_view text) { return ps::to_string(ps::sha256_of(ps::bytes_of(text))); }

ps::error error_in(auto&& call) {
  try {
    call();
  } catch (const ps::error& e) {
    return e;
  }
  return {ps::errc::state, "no error"};
}

TEST_CASE("storage/sha256_check: hashes are those of FIPS 180-4") {
  CHECK(hash_of("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(hash_of("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(hash_of("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq") ==
        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  CHECK(hash_of(std::string(1'000'000, 'a')) ==
        "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST_CASE("storage/sha256_check: pieces of any size are compared as a whole") {
  const std::string text(1000, 'x');
  const ps::sha256_check check(ps::sha256_list({{"a.tar", ps::sha256_of(ps::bytes_of(text))}}));
  for (const std::size_t piece : {1u, 7u, 999u, 1000u}) {
    auto began = check.begin("data/a.tar");
    began.add({});
    for (std::size_t at = 0; at < text.size(); at += piece)
      began.add(ps::bytes_of(text).subspan(at, std::min(piece, text.size() - at)));
    ps::sha256_check::state moved = std::move(began);
    CHECK_NOTHROW(moved.finish());
  }
}

TEST_CASE("storage/sha256_check: other bytes are an error with the object, both hashes and what to do") {
  const std::string text(1000, 'x');
  const ps::sha256_check check(ps::sha256_list({{"a.tar", ps::sha256_of(ps::bytes_of(text))}}));
  std::string flipped = text;
  flipped[500] = static_cast<char>(flipped[500] ^ 1);
  for (const std::string& other : {flipped, text.substr(1), text + "x", std::string()}) {
    const ps::error e = error_in([&] {
      auto state = check.begin("data/a.tar");
      state.add(ps::bytes_of(other));
      state.finish();
    });
    CHECK(e.code() == ps::errc::io);
    CHECK_FALSE(e.recurs());
    CHECK(e.file() == "data/a.tar");
    const std::string message(e.message());
    CHECK(message.find(hash_of(text)) != std::string::npos);
    CHECK(message.find(hash_of(other)) != std::string::npos);
    CHECK(message.find("fetch or write the object again") != std::string::npos);
  }
}

TEST_CASE("storage/sha256_check: an object without an entry is an error when it begins") {
  const ps::sha256_check check(ps::sha256_list({{"a.tar", ps::sha256_of({})}}));
  CHECK(check.knows("x/a.tar"));
  CHECK_FALSE(check.knows("x/b.tar"));
  const ps::error e = error_in([&] { (void)check.begin("x/b.tar"); });
  CHECK(e.code() == ps::errc::io);
  CHECK(e.recurs());
  CHECK(e.file() == "x/b.tar");
  CHECK(std::string(e.message()).find("write the list again") != std::string::npos);
}

TEST_CASE("storage/sha256_check: the list of a storage has the hash of each object, read once") {
  const std::string large(9'000'000, 'l');
  const penstock_test::noting_storage where{
      ps::memory_files().add("d/a.tar", "abc").add("d/b.tar", large).add("d/c.tar", "")};
  const ps::sha256_list list = ps::sha256_of(where);
  REQUIRE(list.size() == 3);
  CHECK(list.entries()[0].name == "d/a.tar");
  CHECK(list.find("d/a.tar") == ps::sha256_of(ps::bytes_of("abc")));
  CHECK(list.find("d/b.tar") == ps::sha256_of(ps::bytes_of(large)));
  CHECK(list.find("d/c.tar") == ps::sha256_of({}));
  CHECK(where.notes->bytes_read() == 9'000'003);
  for (const auto& read : where.notes->reads) CHECK(read.end - read.begin <= 4u << 20);
  CHECK(ps::to_string(ps::sha256_of(where.files)) == ps::to_string(list));
}

TEST_CASE("storage/sha256_check: sha256sum verifies our list, and we read what it writes") {
  if (!penstock_test::have_program("sha256sum", "sha256sum --version")) return;
  const penstock_test::temp_dir folder;
  const std::vector<std::string> names{"a.tar",       "b c.tar",   " blank.tar", "*star.tar",
                                       "back\\slash", "new\nline", "q'uote\"d",  "\xc3\xa9.tar"};
  std::vector<std::string> paths;
  for (const std::string& name : names) {
    paths.push_back((folder / name).string());
    std::ofstream(paths.back(), std::ios::binary) << "the bytes of " << name;
  }
  const ps::sha256_list ours = ps::sha256_of(ps::file(paths));
  const std::string list = (folder / "ours.sha256").string();
  std::ofstream(list, std::ios::binary) << ps::to_string(ours);
  const auto verified = penstock_test::run_program("sha256sum --strict -c '" + list + "'");
  CAPTURE(verified.output);
  CHECK(verified.status == 0);

  const std::string at = "cd '" + folder.path().string() + "' && ";
  for (const char* how : {"sha256sum -- ", "sha256sum -b -- "}) {
    REQUIRE(penstock_test::run_program(at + how + "a* b* ' '* \\** q* n* $(printf '\\303')* > theirs.sha256")
                .status == 0);
    const ps::sha256_list theirs = ps::read_sha256_list(ps::file((folder / "theirs.sha256").string()));
    CHECK(theirs.size() == names.size());
    for (const std::string& path : paths) CHECK(theirs.find(path) == ours.find(path));
  }

  std::ofstream(paths[1], std::ios::binary) << "other bytes";
  CHECK(penstock_test::run_program("sha256sum --strict -c '" + list + "'").status != 0);
}

TEST_CASE("storage/sha256_check: what is staged is compared as it comes") {
  const penstock_test::temp_dir dir;
  const std::string good(100'000, 'x');
  std::string bad = good;
  bad[70'000] = 'y';
  const ps::sha256_check check(ps::sha256_list({{"a.tar", ps::sha256_of(ps::bytes_of(good))}}));
  const std::string folder = (dir.path() / "staged").string();
  const ps::error failed = error_in(
      [&] { (void)ps::stage_to(ps::memory_files().add("a.tar", bad), folder, ps::stage_options{}, check); });
  CHECK(failed.code() == ps::errc::io);
  CHECK(failed.message().find("SHA-256") != std::string::npos);
  CHECK_FALSE(std::filesystem::exists(dir.path() / "staged" / "a.tar"));
  const ps::file local =
      ps::stage_to(ps::memory_files().add("a.tar", good), folder, ps::stage_options{}, check);
  CHECK(local.connect().size(0) == good.size());
}

}  // namespace sha256_check_test
