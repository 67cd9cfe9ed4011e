// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// What tests/source/fingerprints, replaced_files and paths say of all sources, for those of tables.

#include <penstock/run/run.hpp>
#include <penstock/source/delta.hpp>
#include <penstock/source/iceberg.hpp>
#include <penstock/source/parquet.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/map.hpp>
#include <penstock/storage/file.hpp>

#include "support/catch.hpp"
#include "support/child.hpp"
#include "support/fixtures.hpp"
#include "support/temp_dir.hpp"

#ifdef __GLIBC__
#include <malloc.h>
#endif

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace ps = penstock;
namespace fs = std::filesystem;
using penstock_test::contains;
using penstock_test::fixture;

namespace files_of_tables_test {

std::vector<std::uint64_t> prints_of_tables() {
  return {ps::parquet(ps::file(std::vector{fixture("reports/not_null.parquet").string()},
                               {.access = ps::file_access::read}))
              .fingerprint(),
          ps::parquet(fixture("reports/messages.parquet").string()).fingerprint(),
          ps::delta(fixture("reports/removed_file").string()).fingerprint()};
}
template <class Plan>
std::string error_of_run(const Plan& plan) {
  try {
    auto run = (plan | ps::map([](const auto&) { return 1; }) | ps::batch(1)).open();
    for (auto&& b : run) static_cast<void>(b.size());
  } catch (const ps::error& e) {
    return e.what();
  }
  return "none";
}
template <class Call>
std::string error_of_plan(const Call& call) {
  try {
    static_cast<void>(call());
  } catch (const ps::error& e) {
    return e.what();
  }
  return "none";
}

}  // namespace files_of_tables_test
using namespace files_of_tables_test;

TEST_CASE("source/files_of_tables: one fingerprint in every process") {
  const penstock_test::temp_dir dir;
  std::vector<std::vector<std::uint64_t>> found;
  for (const int fill : {0x11, 0xee}) {
    const fs::path result = dir / std::to_string(fill);
    REQUIRE(penstock_test::in_child([&] {
              ::setenv("ARROW_DEFAULT_MEMORY_POOL", "system", 1);
#ifdef __GLIBC__
              ::mallopt(M_PERTURB, fill);
#endif
              std::ofstream out(result);
              for (const std::uint64_t one : prints_of_tables()) out << one << '\n';
              return out.flush() ? 0 : 1;
            }) == 0);
    found.emplace_back();
    std::ifstream in(result);
    for (std::uint64_t one = 0; in >> one;) found.back().push_back(one);
  }
  CHECK(found[0].size() == 3);
  CHECK(found[0] == found[1]);
}

TEST_CASE("source/files_of_tables: a Parquet file that was replaced by another of its size and time") {
  const penstock_test::temp_dir dir;
  const std::string path = (dir / "x.parquet").string();
  fs::copy_file(fixture("reports/not_null.parquet"), path);
  const auto time = fs::last_write_time(path);
  const auto plan = ps::parquet(path);
  CHECK(error_of_run(plan) == "none");
  fs::copy_file(path, path + ".copy");
  fs::rename(path + ".copy", path);
  fs::last_write_time(path, time);
  CHECK(error_of_run(plan) == "none");
  {
    std::fstream out(path, std::ios::binary | std::ios::in | std::ios::out);
    out.seekp(-20, std::ios::end);
    out.put('!');
  }
  fs::last_write_time(path, time);
  CHECK_THAT(error_of_run(plan), contains("x.parquet") && contains("another one of the same size and time"));
}

TEST_CASE("source/files_of_tables: URLs and the home folder") {
  const std::string before = std::getenv("HOME") == nullptr ? "" : std::getenv("HOME");
  const auto each = [](const std::string& path, const auto& check) {
    check(error_of_plan([&] { return ps::parquet(path); }));
    check(error_of_plan([&] { return ps::delta(path); }));
    check(error_of_plan([&] { return ps::iceberg(path); }));
  };
  each("s3://bucket/table", [](const std::string& said) { CHECK_THAT(said, contains("s3(\"s3://bucket")); });
  each("hf://datasets/owner/name",
       [](const std::string& said) { CHECK_THAT(said, contains("https://huggingface.co/datasets/")); });
  ::setenv("HOME", fixture("reports").c_str(), 1);
  CHECK(ps::parquet("~/messages.parquet").size() == 2);
  CHECK(ps::delta("~/removed_file").size() == 1);
  ::setenv("HOME", before.c_str(), 1);
}
