// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "support/external_program.hpp"
#include "support/server_process.hpp"
#include "support/temp_dir.hpp"

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>

namespace penstock_test {

/// Whether this process may mount by FUSE. It needs /dev/fuse, which no package brings, and root; if it may
/// not, the test says so and returns.
[[nodiscard]] inline bool can_mount() {
  const int device = ::open("/dev/fuse", O_RDWR | O_CLOEXEC);
  if (device >= 0) ::close(device);
  if (device >= 0 && ::geteuid() == 0) return true;
  WARN("not tested with a FUSE mount, which this user may not make");
  return false;
}

/// A file system in a folder of its own, served by a program in the foreground, until it is destroyed.
///
///     if (!can_mount()) return;
///     fuse_mount there([&](const std::string& place) { return start("mount", place); });
///     std::ofstream(there.path() / "a.tar") << bytes;
class fuse_mount {
 public:
  using starter = std::function<std::unique_ptr<server_process>(const std::string& place)>;

  explicit fuse_mount(const starter& start) {
    std::filesystem::create_directory(path());
    const dev_t before = device_of(path());
    process_ = start(path().string());
    if (wait_until_ready(*process_, [&] { return device_of(path()) != before; })) return;
    const std::string said = process_->output();
    end();
    throw std::runtime_error("nothing is mounted: " + said);
  }
  fuse_mount(const fuse_mount&) = delete;
  fuse_mount& operator=(const fuse_mount&) = delete;
  ~fuse_mount() { end(); }

  [[nodiscard]] std::filesystem::path path() const { return folder_ / "mount"; }
  /// Kills the program, as the end of its machine would; the folder stays mounted.
  void kill() { process_->kill(); }

 private:
  [[nodiscard]] static dev_t device_of(const std::filesystem::path& path) {
    struct ::stat facts {};
    return ::stat(path.c_str(), &facts) == 0 ? facts.st_dev : dev_t{0};
  }
  void end() noexcept {
    // Unmounted first, so that nobody waits for a program that has ended.
    ::umount2(path().c_str(), MNT_DETACH);
    process_->kill();
    ::umount2(path().c_str(), MNT_DETACH);
  }

  temp_dir folder_;
  std::unique_ptr<server_process> process_;
};

}  // namespace penstock_test
