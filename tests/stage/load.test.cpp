// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/stage/load.hpp>

#include <penstock/codec/identity.hpp>
#include <penstock/codec/text.hpp>
#include <penstock/core/error.hpp>
#include <penstock/core/guarantee.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/generated.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/workers.hpp>
#include <penstock/storage/file.hpp>
#include <penstock/storage/mapped_file.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "support/catch.hpp"
#include "support/codec_test.hpp"
#include "support/temp_dir.hpp"

namespace ps = penstock;
using codec_test::caught;
using penstock_test::contains;

namespace {

/// Records of a number and the path "<n>.txt", in a folder with such files.
struct example {
  static constexpr int count = 50;
  penstock_test::temp_dir dir;

  example() {
    std::filesystem::create_directories(dir.path() / "sub");
    for (int i = 0; i < count; ++i) write(path_of(i), content_of(i));
  }
  void write(const std::string& name, std::string_view content) const {
    std::ofstream(dir.path() / name, std::ios::binary) << content;
  }
  [[nodiscard]] std::string folder() const { return dir.path().string(); }
  [[nodiscard]] static std::string path_of(int i) {
    return (i % 2 == 0 ? "" : "sub/") + std::to_string(i) + ".txt";
  }
  [[nodiscard]] static std::string content_of(int i) {
    return std::string(static_cast<std::size_t>(i * 37), 'x') + std::to_string(i);
  }
  [[nodiscard]] static auto samples() {
    return ps::generated(count, [](std::uint64_t i) {
      return ps::record<ps::field<"id", int>, ps::field<"file", std::string>>(static_cast<int>(i),
                                                                              path_of(static_cast<int>(i)));
    });
  }
};

/// The line of the error that reading a path gives.
template <class Storage>
codec_test::thrown refusal(const Storage& where, const std::string& path, ps::load_options options = {}) {
  return caught([&] {
    const auto one =
        ps::generated(1, [path](std::uint64_t) { return ps::record<ps::field<"file", std::string>>(path); });
    for (const auto& row : (one | ps::load<"file">(where, ps::text{}, options)).epoch(0))
      static_cast<void>(row);
  });
}

}  // namespace

TEST_CASE("stage/load: a path becomes what its file holds, in any order and by any workers") {
  const example files;
  const auto check = [&](const auto& where) {
    const auto plan = example::samples() | ps::load<"file">(where, ps::text{});
    static_assert(ps::elastic<std::remove_cvref_t<decltype(plan)>> &&
                  ps::lockstep<std::remove_cvref_t<decltype(plan)>>);
    for (const std::size_t workers : {0u, 3u}) {
      std::set<int> seen;
      for (const auto& row : (plan | ps::shuffle(ps::seed(5)) | ps::workers(workers)).epoch(0)) {
        const int id = ps::get<"id">(row);
        CHECK(std::string_view(ps::get<"file">(row)) == example::content_of(id));
        seen.insert(id);
      }
      CHECK(seen.size() == std::size_t{example::count});
    }
  };
  check(ps::file(files.folder()));
  check(ps::mapped_file(files.folder() + "/"));

  const auto raw = example::samples() | ps::load<"file">(ps::file(files.folder()), ps::identity{}) |
                   ps::batch(10, ps::ragged);
  std::uint64_t bytes = 0;
  for (const auto& batch : raw.epoch(0)) bytes += ps::get<"file">(batch).values().size();
  std::uint64_t all = 0;
  for (int i = 0; i < example::count; ++i) all += example::content_of(i).size();
  CHECK(bytes == all);
  CHECK(ps::load<"file">(ps::file("data"), ps::identity{}).describe() == "load<file>(data: identity)");
}

TEST_CASE("stage/load: errors name the file, and paths stay in the folder") {
  const example files;
  const ps::file where(files.folder());
  const auto lost = refusal(where, "none.txt");
  CHECK(lost.code == ps::errc::io);
  CHECK_THAT(lost.line, contains(files.folder() + "/none.txt"));
  for (const char* const path : {"../x.txt", "sub/../../x.txt", "/etc/hostname", "s3://other/x.txt"}) {
    const auto outside = refusal(where, path);
    CHECK(outside.code == ps::errc::argument);
    CHECK_THAT(outside.line, contains(std::string("the path '") + path + "' leads out of the folder") &&
                                 contains(".allow_outside = true"));
  }
  CHECK_THAT(refusal(where, "").line, contains("the path '' is empty"));
  CHECK(refusal(where, files.folder() + "/0.txt", {.allow_outside = true}).line.empty());
  CHECK(refusal(where, "sub/../0.txt", {.allow_outside = true}).line.empty());
  const auto large = refusal(where, "sub/49.txt", {.max_bytes = 100});
  CHECK(large.code == ps::errc::limit);
  CHECK_THAT(large.line, contains("49.txt") && contains("max_bytes is 100"));

  files.write("bad.txt", "\xff");
  const auto bad = refusal(where, "bad.txt");
  CHECK_THAT(bad.line, contains("bad.txt"));
  const auto several = caught([&] {
    static_cast<void>(ps::load<"file">(ps::file(std::vector<std::string>{"a", "b"}), ps::text{}));
  });
  CHECK(several.code == ps::errc::argument);
  CHECK_THAT(several.line, contains("names 2 objects"));
}

TEST_CASE("stage/load: the example of the page, and that of the header") {
  using namespace penstock;
  const auto rows = example::samples();
  auto loaded = rows | load<"file">(file("data"), text{});
  static_assert(indexed<decltype(loaded)>);
}
