// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/storage/file_names.hpp>

#include "support/catch.hpp"
#include "support/raw_tar.hpp"
#include "support/temp_dir.hpp"

#include <penstock/core/error.hpp>
#include <penstock/source/webdataset.hpp>
#include <penstock/storage/mapped_file.hpp>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <unistd.h>

namespace ps = penstock;
namespace fs = std::filesystem;

namespace {

void touch(const fs::path& path) {
  fs::create_directories(path.parent_path());
  std::ofstream(path) << "x";
}

/// The names below `dir` that a pattern stands for, without the folder's own name.
std::vector<std::string> found(const penstock_test::temp_dir& dir, const std::string& pattern) {
  std::vector<std::string> names;
  for (const std::string& name : ps::file_names((dir / pattern).string()))
    names.push_back(fs::path(name).lexically_relative(dir.path()).string());
  return names;
}

ps::errc refusal(const std::string& pattern, const std::string& words) {
  try {
    (void)ps::file_names(pattern);
  } catch (const ps::error& e) {
    CHECK_THAT(e.what(), penstock_test::contains(words));
    return e.code();
  }
  FAIL("accepted: " << pattern);
  return ps::errc::argument;
}

}  // namespace

TEST_CASE("storage/file_names: *, ? and [...] match files, in the order of their names") {
  const penstock_test::temp_dir dir;
  for (const char* name :
       {"b-2.tar", "a-10.tar", "a-9.tar", "B.tar", "a-9.txt", ".hidden.tar", "sub/c.tar", "sub2/d.tar"})
    touch(dir / name);
  using names = std::vector<std::string>;
  CHECK(found(dir, "*.tar") == names{"B.tar", "a-10.tar", "a-9.tar", "b-2.tar"});
  CHECK(found(dir, "a-?.*") == names{"a-9.tar", "a-9.txt"});
  CHECK(found(dir, "[ab]-[0-9].tar") == names{"a-9.tar", "b-2.tar"});
  CHECK(found(dir, "[!ab]*.tar") == names{"B.tar"});
  CHECK(found(dir, "sub*/*.tar") == names{"sub/c.tar", "sub2/d.tar"});
  // Braces come first, the leftmost group varying slowest; each of their names is matched by itself.
  CHECK(found(dir, "{b,a}-*.tar") == names{"b-2.tar", "a-10.tar", "a-9.tar"});
  CHECK(found(dir, "{missing.tar,a-?.tar}") == names{"missing.tar", "a-9.tar"});
  CHECK(found(dir, "plain.tar") == names{"plain.tar"});
  CHECK(found(dir, "{a-*,*-9}.tar") == names{"a-10.tar", "a-9.tar"});  // overlapping: each file once
}

TEST_CASE("storage/file_names: a name with brackets is that file, and an escaped character is itself") {
  const penstock_test::temp_dir dir;
  for (const char* name : {"run[1].tar", "run1.tar", "star*.tar", "stars.tar"}) touch(dir / name);
  using names = std::vector<std::string>;
  CHECK(found(dir, "run[1].tar") == names{"run[1].tar"});
  CHECK(found(dir, "run[12].tar") == names{"run1.tar"});
  CHECK(found(dir, "star\\*.tar") == names{"star*.tar"});
  fs::remove(dir / "run[1].tar");
  CHECK(found(dir, "run[1].tar") == names{"run1.tar"});
}

TEST_CASE("storage/file_names: a pattern that nothing matches, an address and a command say what to do") {
  const penstock_test::temp_dir dir;
  CHECK(refusal((dir / "*.tar").string(), "no file matches '" + (dir / "*.tar").string() + "'") ==
        ps::errc::missing);
  touch(dir / "a.tar");
  CHECK(refusal((dir / "a.tar" / "*").string(), "no file matches") == ps::errc::missing);
  CHECK(refusal("s3://bucket/train-{00..09}.tar",
                "is a URL, and this reads local files: give the source s3(") == ps::errc::argument);
  CHECK(refusal("{s3://b/a.tar,s3://b/c.tar}", "<penstock/storage/s3.hpp>") == ps::errc::argument);
  CHECK(refusal("https://host/a.tar", "give the source http(") == ps::errc::argument);
  CHECK(refusal("ftp://host/a.tar", "pipe it into webdataset_pipe") == ps::errc::argument);
  CHECK(refusal("file:///data/a.tar", "write the path without file://") == ps::errc::argument);
  CHECK(refusal("pipe:curl -s https://host/a.tar", "read it with webdataset_pipe") == ps::errc::argument);
  CHECK_THROWS_WITH(ps::file({"s3://bucket/a.tar"}), penstock_test::contains("<penstock/storage/s3.hpp>"));
  CHECK_THROWS_WITH(ps::mapped_file({"s3://bucket/a.tar"}),
                    penstock_test::contains("<penstock/storage/s3.hpp>"));
  CHECK_THROWS_WITH(ps::webdataset("pipe:cat a.tar"), penstock_test::contains("webdataset_pipe"));
}

TEST_CASE("storage/file_names: a folder that cannot be read is an error, not a smaller dataset") {
  const penstock_test::temp_dir dir;
  touch(dir / "open" / "a.tar");
  touch(dir / "shut" / "b.tar");
  fs::permissions(dir / "shut", fs::perms::owner_exec);
  if (::access((dir / "shut").c_str(), R_OK) != 0)  // root may read everything
    CHECK(refusal((dir / "*" / "*.tar").string(), "cannot list a folder of the pattern") == ps::errc::io);
  fs::permissions(dir / "shut", fs::perms::owner_all);
  CHECK(found(dir, "*/*.tar").size() == 2);
}

TEST_CASE("storage/file_names: what Penstock keeps beside shards matches nothing") {
  const penstock_test::temp_dir dir;
  for (const char* name : {"a.tar", "b.tar"})
    penstock_test::raw_tar().member("x.txt", name).end().save((dir / name).string());
  for (int i = 0; i < 2; ++i) {  // the second time the indexes are there
    const ps::webdataset data((dir / "*").string(), {.index = ps::index_policy::keep});
    CHECK(data.size() == 2);
    CHECK(data.manifest().shards().size() == 2);
  }
  CHECK(fs::exists(dir / "a.tar.penstock-index"));
}
