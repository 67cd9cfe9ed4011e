// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/storage/cache/staged_object.hpp>

#include "support/catch.hpp"

#include <cstddef>
#include <string>

namespace staging = penstock::detail::staging;

namespace staged_record_test {

staging::record example() {
  staging::record made;
  made.object = "s3://bucket/a\nb 1";
  made.file = "a\nb 1";
  made.before = staging::whole_copy{{10, 11}, {10, 12, 13, 14, true}};
  made.last = staging::whole_copy{{20, ~std::uint64_t{0}}, {20, 22, 23, 0, true}};
  made.part = penstock::object_version{30, 31};
  made.boot = "boot";
  return made;
}

TEST_CASE("storage/cache/staged_record: a record is read as it was written") {
  for (int without = 0; without < 8; ++without) {
    staging::record made = example();
    if ((without & 1) != 0) made.before.reset();
    if ((without & 2) != 0) made.last.reset();
    if ((without & 4) != 0) {
      made.part.reset();
      made.boot.clear();
    }
    const auto found = staging::parse_record(staging::to_text(made));
    REQUIRE(found);
    CHECK(found->object == made.object);
    CHECK(found->file == made.file);
    CHECK(found->before.has_value() == made.before.has_value());
    if (made.before) CHECK((found->before->of == made.before->of && found->before->file.born == 14));
    CHECK(found->last.has_value() == made.last.has_value());
    if (made.last) CHECK((found->last->of == made.last->of && found->last->file.inode == 23));
    CHECK(found->part == made.part);
    CHECK(found->boot == made.boot);
  }
}

TEST_CASE("storage/cache/staged_record: a record that was cut off or changed is none") {
  const std::string text = staging::to_text(example());
  for (std::size_t size = 0; size < text.size(); ++size)
    CHECK_FALSE(staging::parse_record(text.substr(0, size)));
  CHECK_FALSE(staging::parse_record(text + "\n"));
  for (std::size_t i = 0; i < text.size(); ++i) {
    std::string other = text;
    other[i] = static_cast<char>(other[i] ^ 1);
    CHECK_FALSE(staging::parse_record(other));
  }
}

TEST_CASE("storage/cache/staged_record: a file is known by its inode, or by its size and time") {
  const staging::record about = example();
  const auto last = [&](staging::file_facts found) { return about.copy_of(found) == &*about.last; };
  CHECK(last({20, 22, 23, 0, true}));
  CHECK(last({20, 22, 99, 99, true}));  // a copy with its time
  CHECK(last({5, 5, 23, 0, true}));     // written to
  CHECK_FALSE(about.last->intact({5, 22, 23, 0, true}));
  CHECK_FALSE(about.last->intact({20, 5, 23, 0, true}));
  CHECK(about.copy_of({10, 12, 13, 14, true}) == &*about.before);
  CHECK(about.copy_of({20, 21, 24, 0, true}) == nullptr);
  CHECK(about.copy_of({10, 5, 13, 15, true}) == nullptr);  // another file with the inode of one that is gone
}

}  // namespace staged_record_test
