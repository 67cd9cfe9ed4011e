// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/run/bad/bad_tally.hpp>

#include "support/bad_samples.hpp"
#include "support/catch.hpp"
#include "support/temp_dir.hpp"

#include <fstream>
#include <string>
#include <utility>

namespace bad_ledger_test {

namespace ps = penstock;

TEST_CASE("run/bad_ledger: each rank has a name of its own") {
  CHECK(ps::ledger_name("bad.jsonl", 0, 1) == "bad.jsonl");
  CHECK(ps::ledger_name("bad.jsonl", 3, 8) == "bad.rank3.jsonl");
  CHECK(ps::ledger_name("a.b/bad", 3, 8) == "a.b/bad.rank3");
  CHECK(ps::ledger_name("a/.bad", 3, 8) == "a/.bad.rank3");
  CHECK(ps::ledger_name("x{rank}/{rank}.jsonl", 12, 16) == "x12/12.jsonl");
  CHECK(ps::ledger_name("bad-{rank}", 0, 1) == "bad-0");
}

TEST_CASE("run/bad_ledger: lines are appended, and a truncated line is ended first") {
  const penstock_test::temp_dir folder;
  const std::string path = (folder / "l").string();
  {
    ps::bad_ledger log(path);
    CHECK(log);
    log.write("one");
    CHECK(bad_samples_test::text_of(folder / "l") == "one\n");
    ps::bad_ledger moved(std::move(log));
    moved.write("two");
  }
  { std::ofstream(path, std::ios::app) << "cut"; }
  { ps::bad_ledger(path).write("three"); }
  { ps::bad_ledger(path).write("four"); }
  CHECK(bad_samples_test::text_of(folder / "l") == "one\ntwo\ncut\nthree\nfour\n");
  CHECK(!ps::bad_ledger(""));
  CHECK_THROWS_WITH(ps::bad_ledger((folder / "no/l").string()), penstock_test::contains("cannot be opened"));
}

}  // namespace bad_ledger_test
