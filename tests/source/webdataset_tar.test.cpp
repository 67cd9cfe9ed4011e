// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/source/webdataset.hpp>

#include "support/catch.hpp"
#include "support/raw_tar.hpp"
#include "support/stored_listing.hpp"
#include "support/tar_cases.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace {

using penstock::errc;
using penstock_test::raw_tar;

/// From every kind of store.
std::vector<std::string> listing_of(const std::string& bytes) {
  return penstock_test::listing_in_stores(bytes);
}

}  // namespace

TEST_CASE("source/webdataset_tar: every dialect and rule") {
  for (const auto& one : penstock_test::good_tar_cases()) {
    INFO(one.name);
    CHECK(listing_of(one.bytes) == one.lines);
  }
}

TEST_CASE("source/webdataset_tar: errors and their places") {
  for (const auto& one : penstock_test::bad_tar_cases()) {
    INFO(one.name);
    try {
      (void)listing_of(one.bytes);
      FAIL_CHECK("read what is wrong");
    } catch (const penstock::error& e) {
      CHECK((e.code() == (one.error.starts_with("the limit is") ? errc::limit : errc::format)));
      CHECK(e.file() == "t.tar");
      CHECK_THAT(e.what(), penstock_test::contains(one.error));
      CHECK(e.offset() == one.offset);
      CHECK(e.key() == one.key);
    }
  }
}

TEST_CASE("source/webdataset_tar: floods of headers cost no more than their bytes") {
  raw_tar tar;
  const std::string name(60'000, 'n');
  for (int i = 0; i < 50; ++i) {
    tar.pax('x', penstock_test::pax_record("path=" + name + std::to_string(i) + ".txt"));
    tar.member("././@LongLink", name, 'L', raw_tar::dialect::gnu);
    tar.pax('g', penstock_test::pax_record("comment=" + name));
  }
  tar.member("s", "1");
  for (int i = 0; i < 20'000; ++i) tar.pax('g', "");
  tar.member("b.txt", "2").end();
  CHECK(listing_of(tar.bytes) == std::vector<std::string>{name + "49: txt=1", "b: txt=2"});
}

TEST_CASE("source/webdataset_tar: names are bounded, because they are copied for each header") {
  const auto problem = [](const raw_tar& tar) {
    try {
      (void)listing_of(tar.bytes);
    } catch (const penstock::error& e) {
      CHECK((e.code() == errc::format || e.code() == errc::limit));
      CHECK(e.file() == "t.tar");
      CHECK(e.offset() == 1024);
      return std::string(e.what());
    }
    return std::string();
  };
  const auto after = [](auto add) {
    raw_tar tar;
    tar.member("a.txt", "1");
    add(tar);
    return tar.member("s", "2").end();
  };
  const std::string fits(65'536 - 4, 'n'), large(65'537 - 4, 'n');
  CHECK(listing_of(
            after([&](raw_tar& t) { t.pax('x', penstock_test::pax_record("path=" + fits + ".txt")); }).bytes)
            .size() == 2);
  for (const char type : {'x', 'g'}) {
    CHECK_THAT(
        problem(after([&](raw_tar& t) { t.pax(type, penstock_test::pax_record("path=" + large + ".txt")); })),
        penstock_test::contains("a name of 65537 bytes"));
  }
  CHECK_THAT(problem(after(
                 [&](raw_tar& t) { t.member("././@LongLink", large + ".txt", 'L', raw_tar::dialect::gnu); })),
             penstock_test::contains("a name of 65537 bytes"));
  CHECK_THAT(problem(after([&](raw_tar& t) {
               t.pax('x', penstock_test::pax_record("path=" + std::string(10'000'000, 'n') + ".txt"));
             })),
             penstock_test::contains("the limit is 1048576"));
}

TEST_CASE("source/webdataset_tar: names that lead out of the folder are names of samples, and nothing else") {
  CHECK(listing_of(raw_tar().member("../../etc/passwd.txt", "1").member("/dev/null.txt", "2").end().bytes) ==
        std::vector<std::string>{"../../etc/passwd: txt=1", "/dev/null: txt=2"});
}

TEST_CASE("source/webdataset_tar: compressed archives say what reads them") {
  const auto problem = [](const std::string& head) {
    try {
      (void)listing_of(head + std::string(600, 'z'));
    } catch (const penstock::error& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  const std::string skippable("\x5e\x2a\x4d\x18\2\0\0\0xx", 10);
  CHECK_THAT(problem("\x1f\x8b\x08"), penstock_test::contains("gzip"));
  CHECK_THAT(problem("\x1f\x8b\x08"), penstock_test::contains("webdataset_stream"));
  CHECK_THAT(problem("\x1f\x9d\x90"), penstock_test::contains("compress (.Z)"));
  CHECK_THAT(problem("BZh9"), penstock_test::contains("bzip2"));
  CHECK_THAT(problem(std::string("\xfd"
                                 "7zXZ\0",
                                 6)),
             penstock_test::contains("xz"));
  CHECK_THAT(problem("\x28\xb5\x2f\xfd"), penstock_test::contains("zstd"));
  CHECK_THAT(problem(skippable + "\x28\xb5\x2f\xfd"), penstock_test::contains("zstd"));
  CHECK_THAT(problem(skippable + skippable + "\x04\x22\x4d\x18"), penstock_test::contains("lz4"));
  CHECK_THAT(problem("\x02\x21\x4c\x18"), penstock_test::contains("lz4 (legacy)"));
  // magic bytes may be part of a name
  CHECK(listing_of(raw_tar().member("BZh.txt", "1").end().bytes) == std::vector<std::string>{"BZh: txt=1"});
}
