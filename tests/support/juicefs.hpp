// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "support/fuse_mount.hpp"
#include "support/s3_server.hpp"

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace penstock_test {

/// The program of JuiceFS: $PENSTOCK_TEST_JUICEFS, or `juicefs`.
[[nodiscard]] inline std::string juicefs_program() {
  const char* const named = std::getenv("PENSTOCK_TEST_JUICEFS");
  return named == nullptr || *named == '\0' ? "juicefs" : named;
}
/// Whether JuiceFS is here. If not, the test says so and returns; in CI it fails.
[[nodiscard]] inline bool have_juicefs() { return have_program("JuiceFS", juicefs_program() + " version"); }

/// A volume of JuiceFS in a folder of its own: metadata in SQLite, objects in files.
///
///     if (!have_juicefs()) return;
///     const juicefs_volume volume;
///     const juicefs_gateway server(volume);
class juicefs_volume {
 public:
  juicefs_volume() {
    const program_result made = run_program(
        "HOME='" + folder_.path().string() + "' " + juicefs_program() + " format --storage file --bucket '" +
        (folder_ / "objects").string() + "/' --trash-days 0 " + metadata() + " volume");
    if (made.status != 0) throw std::runtime_error("JuiceFS makes no volume: " + made.output);
  }
  [[nodiscard]] std::string metadata() const { return "sqlite3://" + (folder_ / "meta.db").string(); }
  [[nodiscard]] const std::filesystem::path& folder() const noexcept { return folder_.path(); }
  /// The program with this volume, a cache of its own, and the user's home out of its way.
  [[nodiscard]] std::unique_ptr<server_process> run(std::string_view what, std::vector<std::string> last,
                                                    std::vector<std::string> environment = {}) const {
    const std::string own = std::string(what);
    std::vector<std::string> command{
        juicefs_program(),       own,
        "--no-usage-report",     "--backup-meta=0",
        "--metrics=127.0.0.1:0", "--cache-dir=" + (folder_ / (own + "-cache")).string()};
    if (what == "gateway") command.push_back("--log=" + (folder_ / "gateway.log").string());
    command.insert(command.end(), last.begin(), last.end());
    environment.push_back("HOME=" + folder_.path().string());
    return std::make_unique<server_process>(std::move(command), folder_.path(), folder_ / (own + ".out"),
                                            std::move(environment));
  }

 private:
  temp_dir folder_;
};

/// The S3 gateway of a volume on loopback, until it is destroyed: the folders at its top are buckets.
class juicefs_gateway : public s3_server {
 public:
  explicit juicefs_gateway(const juicefs_volume& volume)
      : s3_server("key-of-juicefs", "secret-of-juicefs"), volume_(volume) {
    port_ = free_port();
    start();
    try {
      settle();
    } catch (const std::runtime_error& e) {
      throw std::runtime_error(std::string("JuiceFS does not start: ") + e.what() + "\n" +
                               process_->output());
    }
  }
  void kill() { process_->kill(); }
  void start() {
    process_.reset();
    process_ = volume_.run("gateway",
                           {"--multi-buckets", "--keep-etag", "--no-banner", volume_.metadata(),
                            "127.0.0.1:" + std::to_string(port_)},
                           {"MINIO_ROOT_USER=" + key(), "MINIO_ROOT_PASSWORD=" + secret()});
    if (!wait_until_ready(*process_,
                          [&] { return plain_client(port_).get("/minio/health/ready").status() == 200; }))
      throw std::runtime_error("JuiceFS does not answer: " + process_->output());
  }

 private:
  const juicefs_volume& volume_;
  std::unique_ptr<server_process> process_;
};

/// A volume mounted, until it is destroyed.
[[nodiscard]] inline std::unique_ptr<fuse_mount> mounted(const juicefs_volume& volume) {
  return std::make_unique<fuse_mount>([&](const std::string& place) {
    return volume.run("mount", {"--no-syslog", volume.metadata(), place});
  });
}

}  // namespace penstock_test
