// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/storage/cache/staged_object.hpp>

#include <penstock/core/error.hpp>

#include "support/catch.hpp"

#include <string>
#include <vector>

namespace ps = penstock;

namespace staged_names_test {

using penstock_test::contains;
using list = std::vector<std::string>;

list of(const list& names, bool are_paths = false) {
  return ps::detail::staging::staged_names(names, are_paths);
}
std::string refusal(const list& names, bool are_paths = false) {
  try {
    (void)of(names, are_paths);
  } catch (const ps::error& e) {
    CHECK(e.code() == ps::errc::argument);
    return e.what();
  }
  return "nothing was thrown";
}

TEST_CASE("storage/cache/staged_names: what follows the folder that all names have in common") {
  CHECK(of({}).empty());
  CHECK(of({"a.tar"}) == list{"a.tar"});
  CHECK(of({"b/c/a.tar"}) == list{"a.tar"});
  CHECK(of({"b/c/1.tar", "b/c/0.tar"}) == list{"1.tar", "0.tar"});
  CHECK(of({"b/c/1.tar", "b/d/1.tar"}) == list{"c/1.tar", "d/1.tar"});
  CHECK(of({"b/cc/1.tar", "b/c/1.tar", "b/1.tar"}) == list{"cc/1.tar", "c/1.tar", "1.tar"});
  CHECK(of({"b//c/./1.tar", "/b/2.tar"}) == list{"c/1.tar", "2.tar"});
}

TEST_CASE("storage/cache/staged_names: of a URL neither scheme nor query is part of a file's name") {
  CHECK(of({"https://h/d/a.tar?x=/1", "https://h/d/b.tar?..."}) == list{"a.tar", "b.tar"});
  CHECK(of({"http://h/a%2Fb.tar#c"}) == list{"a%2Fb.tar"});
  CHECK(of({"http://h:80/a.tar", "http://i/a.tar"}) == list{"h:80/a.tar", "i/a.tar"});
  CHECK(of({"s3://bucket/k/a?b#c"}) == list{"a?b#c"});
  CHECK(of({"s3://one/a.tar", "s3://two/a.tar"}) == list{"one/a.tar", "two/a.tar"});
}

TEST_CASE("storage/cache/staged_names: paths are those of the files") {
  CHECK(of({"/data/../x/a.tar", "/x/y/b.tar"}, true) == list{"a.tar", "y/b.tar"});
  CHECK(of({"../q/a.tar", "../q/b.tar"}, true) == list{"a.tar", "b.tar"});
  CHECK(of({"x://h/a.tar?b"}, true) == list{"a.tar?b"});
}

TEST_CASE("storage/cache/staged_names: names that have no place in the folder are refused") {
  CHECK_THAT(refusal({"a/0.tar", "a/../b.tar"}), contains("'..'") && contains("a/../b.tar"));
  CHECK_THAT(refusal({"x/.."}), contains("'..'"));
  CHECK(of({"../x/0", "../x/1"}) == list{"0", "1"});
  CHECK_THAT(refusal({"a/"}), contains("name the objects themselves"));
  CHECK_THAT(refusal({""}), contains("this is none"));
  CHECK_THAT(refusal({"a/."}), contains("this is none"));
  CHECK_THAT(refusal({"http://h/?a"}), contains("this is none"));
  CHECK_THAT(refusal({std::string("a\0b", 3)}), contains("this is none"));
  CHECK_THAT(refusal({".penstock-staged/x", "b"}), contains(".penstock"));
  CHECK_THAT(refusal({"a", ".penstock-index"}), contains(".penstock"));
}

TEST_CASE("storage/cache/staged_names: two objects are never one file") {
  CHECK_THAT(refusal({"b/a.tar", "b//a.tar"}),
             contains("would both be the file a.tar") && contains("b//a.tar"));
  CHECK_THAT(refusal({"http://h/a?1", "http://h/a?2"}), contains("would both be the file a"));
  CHECK_THAT(refusal({"b/a", "b/a"}), contains("would both be"));
  CHECK_THAT(refusal({"b/a/x", "b/a"}), contains("would be the folder of this one"));
  CHECK(of({"b/a/x", "b/a.x"}) == list{"a/x", "a.x"});
}

}  // namespace staged_names_test
