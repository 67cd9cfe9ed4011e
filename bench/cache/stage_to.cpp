// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rows 28e and 28h: shards copied to a folder of the same disk by stage_to, and by cp.

#include "support/folder.hpp"
#include "support/harness.hpp"

#include <penstock/storage/file.hpp>
#include <penstock/storage/stage_to.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

namespace ps = penstock;

namespace {

std::uint64_t bytes_in(const std::string& folder) {
  std::uint64_t all = 0;
  for (const auto& one : std::filesystem::directory_iterator(folder))
    if (one.is_regular_file()) all += one.file_size();
  return all;
}

void run_shell(const std::string& line) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::execl("/bin/sh", "sh", "-c", line.c_str(), nullptr);
    ::_exit(127);
  }
  int status = 0;
  if (child < 0 || ::waitpid(child, &status, 0) != child || status != 0)
    throw std::runtime_error("this failed: " + line);
}

void measure(const bench::options& o) {
  const bench::folder folder(o, "stage_to");
  const auto files = bench::write_shards(folder, 4, o.quick ? 128 : 1024, 110'000, false);
  const ps::file far(files);
  const std::string near = folder.file("near"), copied = folder.file("copied");
  const auto ours = [&] {
    (void)ps::stage_to(far, near);
    return bytes_in(near);
  };
  const auto copy = [&](const std::string& then) {
    return [&, then] {
      std::string line = "mkdir '" + copied + "' && cp";
      for (const std::string& one : files) line += " '" + one + "'";
      run_shell(line + " '" + copied + "'" + then);
      return bytes_in(copied);
    };
  };
  const auto prepare = [&] {
    std::filesystem::remove_all(near);
    std::filesystem::remove_all(copied);
    ::sync();
  };
  const std::string what = "450 MB of shards in 4 files, to the same disk: stage_to / cp";
  bench::compare(o, {"28e", what + " and sync", 0.9}, ours, copy(" && sync '" + copied + "'/*"), prepare);
  bench::compare(o, {"28h", what + ", which does not wait for the disk", 0}, ours, copy(""), prepare);
}

}  // namespace

int main(int argc, char** argv) { return bench::run_main(argc, argv, measure); }
