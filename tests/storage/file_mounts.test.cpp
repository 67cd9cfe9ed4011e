// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Files on the mounts of distributed file systems, each served by a process beside the test.

#include <penstock/storage/file.hpp>

#include <penstock/core/error.hpp>
#include <penstock/storage/mapped_file.hpp>
#include <penstock/storage/stage_to.hpp>

#include "support/catch.hpp"
#include "support/deadline.hpp"
#include "support/fuse_mount.hpp"
#include "support/juicefs.hpp"
#include "support/read_outcomes.hpp"
#include "support/seaweed.hpp"
#include "support/stored.hpp"
#include "support/temp_dir.hpp"
#include "support/web_reads.hpp"

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <vector>

namespace file_mounts_test {

namespace ps = penstock;
using namespace penstock_test;
using namespace std::chrono_literals;

void put(const std::filesystem::path& path, const std::string& bytes) {
  std::ofstream out(path, std::ios::binary);
  out << bytes;
  out.close();
  REQUIRE(out.good());
}
template <class Session>
std::string read_of(const Session& session, ps::object_id id, std::uint64_t offset, std::size_t size) {
  std::string into(size, 'x');
  session.read(id, offset, std::as_writable_bytes(std::span(into)));
  return into;
}

/// What is true of local files must be true of these.
void reads_files(fuse_mount& there) {
  const std::filesystem::path folder = there.path() / "data";
  std::filesystem::create_directories(folder);
  // Larger than a block of JuiceFS (4 MiB) and a chunk of SeaweedFS.
  const std::string large = web_content(9'000'000), small = web_content(3000);
  put(folder / "large.tar", large);
  put(folder / "small.tar", small);
  put(folder / "empty.tar", "");
  put(folder / "late.tar", small);

  const std::vector<std::string> paths{(folder / "large.tar").string(), (folder / "small.tar").string(),
                                       (folder / "empty.tar").string()};
  const auto check = [&](const auto& session) {
    CHECK(session.size(0) == large.size());
    CHECK(session.size(1) == small.size());
    CHECK(session.size(2) == 0);
    CHECK(session.version(0).stamp != 0);
    CHECK((read_of(session, 0, 4'194'000, 500'000) == large.substr(4'194'000, 500'000)));
    CHECK((read_of(session, 1, 0, small.size()) == small));
    CHECK((read_of(session, 0, 0, large.size()) == large));
  };
  check(ps::file(paths).connect());
  check(ps::mapped_file(paths).connect());

  const auto session = stored(ps::file(paths)).connect();
  std::vector<std::string> parts(60, std::string(10'000, 'x'));
  std::vector<ps::read_request> requests;
  for (std::size_t i = 0; i < parts.size(); ++i)
    requests.push_back({0, i * 147'001, std::as_writable_bytes(std::span(parts[i])), i});
  read_outcomes outcomes(parts.size());
  session.read_many(requests, outcomes.listener());
  outcomes.wait();
  CHECK(outcomes.failures() == 0);
  for (std::size_t i = 0; i < parts.size(); ++i) CHECK((parts[i] == large.substr(i * 147'001, 10'000)));

  const temp_dir near;
  const ps::file staged = ps::stage_to(ps::file(paths), (near / "staged").string());
  check(staged.connect());

  // A file that is replaced by one of its size has another version.
  const ps::object_version before = ps::file({paths[1].c_str()}).connect().version(0);
  put(folder / "fresh", std::string(small.size(), 'y'));
  std::filesystem::rename(folder / "fresh", paths[1]);
  CHECK(ps::file({paths[1].c_str()}).connect().version(0).stamp != before.stamp);

  // The end of the process that serves the files is an error, and nobody waits for it.
  const std::string late = (folder / "late.tar").string();
  const auto orphaned = ps::file({late.c_str()}).connect();
  there.kill();
  const ps::error failed = web_error_of([&] { (void)read_of(orphaned, 0, 0, 100); });
  INFO(failed.what());
  CHECK(failed.code() == ps::errc::io);
  CHECK(says(failed, late));
}

}  // namespace file_mounts_test

using namespace file_mounts_test;

TEST_CASE("storage/file_mounts: JuiceFS") {
  if (!have_juicefs() || !can_mount()) return;
  const deadline limit("a mount of JuiceFS", 120s);
  const juicefs_volume volume;
  const auto there = mounted(volume);
  reads_files(*there);
}

TEST_CASE("storage/file_mounts: SeaweedFS") {
  if (!have_seaweed() || !can_mount()) return;
  const deadline limit("a mount of SeaweedFS", 120s);
  const seaweed_server server;
  const auto there = server.mounted();
  reads_files(*there);
}
