// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/storage/sha256_list.hpp>

#include <penstock/core/error.hpp>
#include <penstock/storage/file.hpp>
#include <penstock/storage/memory_files.hpp>
#include <penstock/storage/simulated_storage.hpp>

#include "support/catch.hpp"
#include "support/temp_dir.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ps = penstock;

namespace sha256_list_test {

/// A hash whose bytes are all this one, and its digits.
ps::sha256_hash all(unsigned byte) {
  ps::sha256_hash made;
  made.bytes.fill(static_cast<std::byte>(byte));
  return made;
}
std::string digits(unsigned byte) { return ps::to_string(all(byte)); }

ps::error refusal_of(std::string_view text) {
  try {
    (void)ps::sha256_list_from_string(text);
  } catch (const ps::error& e) {
    return e;
  }
  return {ps::errc::state, "it was read"};
}

TEST_CASE("storage/sha256_list: a hash is 64 digits") {
  CHECK(digits(0xa7) == "a7a7a7a7a7a7a7a7a7a7a7a7a7a7a7a7a7a7a7a7a7a7a7a7a7a7a7a7a7a7a7a7");
  CHECK(ps::to_string(ps::sha256_hash{}) == std::string(64, '0'));
}

TEST_CASE("storage/sha256_list: what sha256sum writes is read, and written the same") {
  const std::string text = digits(1) + "  a.tar\n" + digits(0xab) + "  b c.tar\n" + "\\" + digits(3) +
                           "  odd\\nname\\\\with\\r.tar\n" + digits(4) + "   blank\n" + digits(5) +
                           "  *star\n";
  const ps::sha256_list read = ps::sha256_list_from_string(text);
  REQUIRE(read.size() == 5);
  CHECK(read.entries()[0].name == "a.tar");
  CHECK(read.entries()[1].hash == all(0xab));
  CHECK(read.entries()[2].name == "odd\nname\\with\r.tar");
  CHECK(read.entries()[3].name == " blank");
  CHECK(read.entries()[4].name == "*star");
  CHECK(ps::to_string(read) == text);
  CHECK(ps::sha256_list().size() == 0);
  CHECK(ps::to_string(ps::sha256_list()).empty());
}

TEST_CASE("storage/sha256_list: binary mode, CRLF and upper case are read as well") {
  std::string upper = digits(0xab);
  for (char& c : upper)
    if (c >= 'a') c = static_cast<char>(c - 'a' + 'A');
  const ps::sha256_list read =
      ps::sha256_list_from_string(upper + " *a.tar\r\n\\" + digits(2) + "  b\\\\\r\n" + digits(3) + "  c\n");
  REQUIRE(read.size() == 3);
  CHECK(read.find("a.tar") == all(0xab));
  CHECK(read.find("b\\") == all(2));
  CHECK(read.find("c") == all(3));
}

TEST_CASE("storage/sha256_list: anything else is an error with its offset and what to do") {
  const std::string good = digits(1) + "  a.tar\n";
  const auto offset = [](const std::string& text) {
    const ps::error e = refusal_of(text);
    CHECK(e.code() == ps::errc::format);
    CHECK(e.message().find("write") != std::string_view::npos);
    return e.offset();
  };
  CHECK(offset("") == 0u);
  for (std::size_t cut = 1; cut < good.size(); ++cut) {
    CAPTURE(cut);
    CHECK(offset(good.substr(0, cut)) == cut);
    CHECK(offset(good + good.substr(0, cut)) == good.size() + cut);
  }
  CHECK(offset(good + "\n") == good.size());
  CHECK(offset("g" + good.substr(1)) == 0u);
  CHECK(offset(" " + good) == 0u);
  CHECK(offset("# a comment\n" + good) == 0u);
  CHECK(offset("\xef\xbb\xbf" + good) == 0u);
  CHECK(offset("SHA256 (a.tar) = " + digits(1) + "\n") == 0u);
  CHECK(offset("0" + good) == 64u);  // 65 digits
  CHECK(offset(digits(1) + "\ta.tar\n") == 64u);
  CHECK(offset(digits(1) + " a.tar\n") == 65u);
  CHECK(offset(digits(1) + "  \n") == 66u);
  CHECK(offset(digits(1) + "  ./\n") == 66u);
  CHECK(offset(digits(1) + "  a" + std::string(1, '\0') + "b\n") == 67u);
  CHECK(offset("\\" + digits(1) + "  a\\tb\n") == 69u);
  CHECK(offset("\\" + digits(1) + "  ab\\\n") == 70u);
  CHECK(offset("\\\\" + digits(1) + "  a\n") == 1u);
  // an md5sum, and sums of other sizes
  CHECK(offset(std::string(32, 'a') + "  a.tar\n") == 32u);
  CHECK(offset(std::string(128, 'a') + "  a.tar\n") == 64u);
}

TEST_CASE("storage/sha256_list: two entries for one object are an error") {
  const std::string one = digits(1) + "  a.tar\n", two = digits(2) + "  b.tar\n";
  for (const std::string& again : {digits(1) + "  a.tar\n", digits(3) + " *a.tar\n",
                                   digits(3) + "  ./a.tar\n", digits(3) + "  ././a.tar\n"}) {
    const ps::error e = refusal_of(one + two + again + two);
    CHECK(e.code() == ps::errc::format);
    CHECK(e.offset() == one.size() + two.size());
    CHECK(std::string(e.message()).find("a.tar") != std::string::npos);
  }
  CHECK(refusal_of(one + two).code() == ps::errc::state);
  const auto refused = [](std::vector<ps::sha256_list::entry> entries) {
    try {
      (void)ps::sha256_list(std::move(entries));
    } catch (const ps::error& e) {
      return e.code() == ps::errc::argument;
    }
    return false;
  };
  CHECK(refused({{"a", all(1)}, {"./a", all(1)}}));
  CHECK(refused({{"", all(1)}}));
  CHECK(refused({{"./", all(1)}}));
  CHECK(refused({{std::string("a\0b", 3), all(1)}}));
  CHECK_FALSE(refused({{"a", all(1)}, {"b", all(1)}}));
}

TEST_CASE("storage/sha256_list: an object is found by its name, or by the most of its last parts") {
  const ps::sha256_list list({{"a.tar", all(1)},
                              {"train/a.tar", all(2)},
                              {"./val/b.tar", all(3)},
                              {"/data/c.tar", all(4)},
                              {"https://host/d.tar", all(5)}});
  CHECK(list.find("a.tar") == all(1));
  CHECK(list.find("./a.tar") == all(1));
  CHECK(list.find("val/a.tar") == all(1));
  CHECK(list.find("bucket/x/train/a.tar") == all(2));
  CHECK(list.find("s3://bucket/train/a.tar") == all(2));
  CHECK(list.find("https://host/train/a.tar?X-Signature=a/a.tar") == all(2));
  CHECK(list.find("https://host/x/a.tar?...") == all(1));
  CHECK(list.find("/data/val/b.tar") == all(3));
  CHECK(list.find("./x/./val/b.tar") == all(3));
  CHECK(list.find("/data/c.tar") == all(4));
  CHECK(list.find("https://host/d.tar") == all(5));
  CHECK(list.find("b.tar") == std::nullopt);
  CHECK(list.find("c.tar") == std::nullopt);
  CHECK(list.find("ba.tar") == std::nullopt);
  CHECK(list.find("a.tar/") == std::nullopt);
  CHECK(list.find("a.tar?x") == std::nullopt);  // a file may be called so
  CHECK(list.find("") == std::nullopt);
  CHECK(ps::sha256_list().find("a.tar") == std::nullopt);
}

TEST_CASE("storage/sha256_list: read from any storage, with errors that name it") {
  const std::string text = digits(1) + "  a.tar\n";
  const auto there = ps::memory_files().add("data/train.sha256", text);
  CHECK(ps::read_sha256_list(there).find("data/a.tar") == all(1));
  const ps::simulated_storage far(there, {.latency = std::chrono::microseconds(1)});
  CHECK(ps::to_string(ps::read_sha256_list(far)) == text);
  const penstock_test::temp_dir folder;
  const std::string path = (folder / "train.sha256").string();
  std::ofstream(path) << text;
  CHECK(ps::to_string(ps::read_sha256_list(ps::file(path))) == text);

  const auto error_of = [](const ps::memory_files& where) {
    try {
      (void)ps::read_sha256_list(where);
    } catch (const ps::error& e) {
      return e;
    }
    return ps::error(ps::errc::state, "it was read");
  };
  const ps::error cut = error_of(ps::memory_files().add("train.sha256", text.substr(0, 70)));
  CHECK(cut.code() == ps::errc::format);
  CHECK(cut.file() == "train.sha256");
  CHECK(cut.offset() == 70u);
  CHECK(error_of(ps::memory_files()).code() == ps::errc::argument);
  CHECK(error_of(ps::memory_files().add("a", text).add("b", text)).code() == ps::errc::argument);
}

}  // namespace sha256_list_test
