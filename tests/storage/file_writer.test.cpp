// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/storage/file_writer.hpp>

#include <penstock/core/error.hpp>
#include <penstock/storage/concepts.hpp>
#include <penstock/storage/file.hpp>

#include "support/catch.hpp"
#include "support/temp_dir.hpp"

#include <sys/stat.h>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>

namespace ps = penstock;
namespace fs = std::filesystem;
static_assert(ps::object_writer<ps::file_writer>);

namespace file_writer_test {

std::string slurp(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}
std::size_t files_in(const penstock_test::temp_dir& folder) {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& one : fs::directory_iterator(folder.path())) ++count;
  return count;
}
template <class F>
ps::error error_in(F&& f) {
  try {
    f();
  } catch (const ps::error& e) {
    return e;
  }
  return {ps::errc::format, "no error"};
}

TEST_CASE("storage/file_writer: a file appears whole at finish, and in the place of the one before") {
  const penstock_test::temp_dir folder;
  const std::string path = (folder / "one.bin").string(), other = (folder / "other.bin").string();
  std::string text(3'000'000, 'a');
  for (std::size_t i = 0; i < text.size(); i += 997) text[i] = static_cast<char>(i);
  ps::file_writer out;
  out.open(path);
  out.write(ps::bytes_of(text).first(10));
  out.write(ps::bytes_of(text).subspan(10));
  CHECK_FALSE(fs::exists(path));
  const ps::object_version made = out.finish();
  CHECK(slurp(path) == text);
  CHECK(made == ps::file(path).connect().version(0));
  CHECK(files_in(folder) == 1);

  out.open(path);
  out.write(ps::bytes_of("new"));
  CHECK(slurp(path) == text);
  CHECK(out.finish().size == 3);
  CHECK(slurp(path) == "new");
  out.open(other);
  CHECK(out.finish().size == 0);
  CHECK(slurp(other).empty());
  CHECK(files_in(folder) == 2);
}

TEST_CASE("storage/file_writer: the umask decides who may read a file") {
  const penstock_test::temp_dir folder;
  const std::string path = (folder / "private").string();
  const ::mode_t before = ::umask(0077);
  ps::file_writer out;
  out.open(path);
  (void)out.finish();
  ::umask(before);
  CHECK(fs::status(path).permissions() == (fs::perms::owner_read | fs::perms::owner_write));
}

TEST_CASE("storage/file_writer: what is given up leaves nothing") {
  const penstock_test::temp_dir folder;
  {
    ps::file_writer out;
    out.open((folder / "a").string());
    out.write(ps::bytes_of("aborted"));
    CHECK(files_in(folder) == 1);
    out.abort();
    out.abort();
    CHECK(files_in(folder) == 0);
    out.open((folder / "b").string());
    out.open((folder / "c").string());
    CHECK(files_in(folder) == 1);
    ps::file_writer moved = std::move(out);
    moved.write(ps::bytes_of("destroyed"));
  }
  CHECK(files_in(folder) == 0);
}

TEST_CASE("storage/file_writer: errors name the file, and calls out of turn say what to do") {
  const penstock_test::temp_dir folder;
  const std::string path = (folder / "missing/a").string();
  ps::file_writer out;
  const ps::error failed = error_in([&] { out.open(path); });
  CHECK(failed.code() == ps::errc::io);
  CHECK(failed.file() == path);
  CHECK(error_in([&] { out.write(ps::bytes_of("x")); }).code() == ps::errc::state);
  CHECK(error_in([&] { (void)out.finish(); }).code() == ps::errc::state);
  CHECK_THAT(std::string(error_in([&] { (void)out.finish(); }).message()),
             penstock_test::contains("open(path)"));
  fs::create_directory(folder / "folder");
  out.open((folder / "folder").string());
  CHECK(error_in([&] { (void)out.finish(); }).code() == ps::errc::io);  // a folder has this name
  CHECK(error_in([&] { (void)out.finish(); }).code() == ps::errc::state);
  CHECK(files_in(folder) == 1);
}

}  // namespace file_writer_test
