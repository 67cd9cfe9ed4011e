// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "support/fuse_mount.hpp"
#include "support/s3_server.hpp"

#include <array>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace penstock_test {

/// The program of SeaweedFS: $PENSTOCK_TEST_WEED, or `weed`.
[[nodiscard]] inline std::string weed_program() {
  const char* const named = std::getenv("PENSTOCK_TEST_WEED");
  return named == nullptr || *named == '\0' ? "weed" : named;
}
/// Whether SeaweedFS and boto3 are here. If not, the test says so and returns; in CI it fails.
[[nodiscard]] inline bool have_seaweed() {
  return have_program("SeaweedFS", weed_program() + " version") && have_boto3();
}

/// A SeaweedFS with its S3 gateway, on loopback, in a folder of its own, until it is destroyed. Names of
/// buckets have three letters or more.
///
///     if (!have_seaweed()) return;
///     const seaweed_server server;
///     server.put("bucket", "a.tar", bytes);
///     fetch(server.endpoint(), server.key(), server.secret(), server.region());
///
/// If asked for, it has a REST catalogue of Apache Iceberg, too, whose credential is `key():secret()`, or may
/// be a cache of another store on loopback, which it refuses otherwise.
class seaweed_server : public s3_server {
 public:
  enum class tables { without, iceberg };
  enum class others { refused, on_loopback };

  explicit seaweed_server(tables with = tables::without, others may_cache = others::refused)
      : s3_server("key-of-seaweed", "secret-of-seaweed") {
    std::ofstream(folder_ / "s3.json")
        << R"({"identities": [{"name": "tests", "credentials": [{"accessKey": ")" << key()
        << R"(", "secretKey": ")" << secret()
        << R"("}], "actions": ["Admin", "Read", "Write", "List", "Tagging"]}]})";
    std::array<std::uint16_t, 8> ports{};
    for (std::uint16_t& one : ports) one = free_port();
    port_ = ports[0];
    grpc_ = {ports[1], ports[3], ports[5], ports[7]};
    filer_ = "127.0.0.1:" + std::to_string(ports[6]) + "." + std::to_string(ports[7]);
    master_ = "127.0.0.1:" + std::to_string(ports[2]) + "." + std::to_string(ports[3]);
    if (with == tables::iceberg) catalog_ = free_port();
    const auto flag = [](const std::string& name, std::uint16_t port) {
      return "-" + name + "=" + std::to_string(port);
    };
    command_ = {weed_program(),
                "server",
                "-dir=" + folder_.path().string(),
                "-ip=127.0.0.1",
                "-ip.bind=127.0.0.1",
                "-master.telemetry=false",
                "-volume.max=40",
                "-master.volumeSizeLimitMB=256",
                "-filer",
                "-s3",
                "-s3.config=" + (folder_ / "s3.json").string(),
                flag("s3.port.iceberg", catalog_),
                "-s3.localSocket=" + (folder_ / "s3.sock").string(),
                "-filer.localSocket=" + (folder_ / "filer.sock").string(),
                "-s3.port.lance=0",
                "-s3.domainName=example",  // bucket.example is a bucket
                flag("s3.port", ports[0]),
                flag("s3.port.grpc", ports[1]),
                flag("master.port", ports[2]),
                flag("master.port.grpc", ports[3]),
                flag("volume.port", ports[4]),
                flag("volume.port.grpc", ports[5]),
                flag("filer.port", ports[6]),
                flag("filer.port.grpc", ports[7])};
    if (may_cache == others::on_loopback)
      for (const char* const part : {"filer", "s3", "volume"})
        command_.push_back("-" + std::string(part) + ".allowUntrustedRemoteEndpoints");
    start();
    try {
      settle();
    } catch (const std::runtime_error& e) {
      throw std::runtime_error(std::string("SeaweedFS does not start: ") + e.what() + "\n" +
                               process_->output());
    }
  }
  ~seaweed_server() {
    process_->kill();         // its data go with the folder
    std::error_code ignored;  // it has sockets outside the folder
    for (const char* const part : {"s3", "master", "volume", "filer"})
      for (const std::uint16_t port : grpc_)
        std::filesystem::remove(
            "/tmp/seaweedfs-" + std::string(part) + "-grpc-" + std::to_string(port) + ".sock", ignored);
  }

  /// The URL of the catalogue.
  [[nodiscard]] std::string catalog() const { return "http://127.0.0.1:" + std::to_string(catalog_); }
  /// Makes a bucket for tables, which the catalogue calls the warehouse s3://NAME.
  void add_warehouse(const std::string& name) const {
    const std::string said = shell("s3tables.bucket -create -name " + name + " -account 000000000000");
    if (said.find("bucket/" + name) == std::string::npos)
      throw std::runtime_error("SeaweedFS makes no bucket for tables: " + said);
  }
  /// Shows a bucket of another store as a bucket of this one, which keeps what is read of it.
  void cache_bucket_of(const s3_server& far, const std::string& bucket) const {
    (void)shell("remote.configure -name=far -type=s3 -s3.access_key=" + far.key() + " -s3.secret_key=" +
                far.secret() + " -s3.region=" + far.region() + " -s3.endpoint=" + far.endpoint());
    (void)shell("remote.mount -dir=/buckets/" + bucket + " -remote=far/" + bucket);
  }
  /// What `weed shell` answers to a command.
  std::string shell(const std::string& command) const {
    const program_result made =
        run_program("echo '" + command + "' | HOME='" + folder_.path().string() + "' " + weed_program() +
                    " shell -master=" + master_ + " -filer=" + filer_);
    if (made.status != 0) throw std::runtime_error("SeaweedFS: " + command + ": " + made.output);
    return made.output;
  }
  /// Its buckets as folders, mounted until the result is destroyed, which must be before this.
  [[nodiscard]] std::unique_ptr<fuse_mount> mounted() const {
    return std::make_unique<fuse_mount>([&](const std::string& place) {
      const std::vector<std::string> command{weed_program(),
                                             "mount",
                                             "-filer=" + filer_,
                                             "-filer.path=/buckets",
                                             "-dir=" + place,
                                             "-cacheDir=" + (folder_ / "mount-cache").string(),
                                             "-localSocket=" + (folder_ / "mount.sock").string()};
      return std::make_unique<server_process>(command, folder_.path(), folder_ / "mount.out",
                                              std::vector<std::string>{"HOME=" + folder_.path().string()});
    });
  }

  /// Kills it, as the end of its machine would.
  void kill() { process_->kill(); }
  /// Starts it with its data, and waits until it answers; it may not know its objects yet.
  void start() {
    process_.reset();
    process_ = std::make_unique<server_process>(command_, folder_.path(), folder_ / "output",
                                                std::vector<std::string>{"HOME=" + folder_.path().string()});
    if (!wait_until_ready(*process_, [&] { return plain_client(port_).get("/status").status() == 200; }))
      throw std::runtime_error("SeaweedFS does not answer: " + process_->output());
  }

 private:
  temp_dir folder_;
  std::vector<std::string> command_;
  std::array<std::uint16_t, 4> grpc_{};
  std::string master_, filer_;
  std::uint16_t catalog_ = 0;  // none
  std::unique_ptr<server_process> process_;
};

}  // namespace penstock_test
