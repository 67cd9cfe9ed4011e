// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "support/s3_server.hpp"

#include <array>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <list>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace penstock_test {

/// Whether Swift, memcached and boto3 are here. If not, the test says so and returns; in CI it fails.
[[nodiscard]] inline bool have_swift() {
  return have_program("Swift",
                      "command -v swift-ring-builder && command -v swift-proxy-server && command -v "
                      "swift-account-server && command -v swift-container-server && command -v "
                      "swift-object-server && test -r /etc/swift/swift.conf") &&
         have_program("memcached", "command -v memcached") && have_boto3();
}

/// OpenStack Swift with its s3api, one copy of each object, on loopback, in a folder of its own, until it is
/// destroyed. It is strict where other servers are lenient: about regions, clocks, signatures and conditions.
///
///     if (!have_swift()) return;
///     const swift_server server;
///     server.put("bucket", "a.tar", bytes);
///     fetch(server.endpoint(), server.key(), server.secret(), server.region());
class swift_server : public s3_server {
 public:
  swift_server() : s3_server("test:tester", "testing") {
    std::filesystem::create_directories(folder_ / "node/d1");
    std::filesystem::create_directory(folder_ / "cache");
    user_ = run_program("id -un").output;
    user_.resize(user_.find_last_not_of('\n') + 1);
    port_ = free_port();
    const std::uint16_t memory = free_port();
    std::vector<std::string> cache{"memcached", "-l", "127.0.0.1", "-p", std::to_string(memory), "-m", "32"};
    if (user_ == "root") cache.insert(cache.end(), {"-u", "root"});
    start(cache, "memcached");
    for (const char* const kind : {"account", "container", "object"}) {
      const std::uint16_t port = free_port();
      make_ring(kind, port);
      common(kind, port) << "devices = " << (folder_ / "node").string()
                         << "\nmount_check = false\ndisable_fallocate = true\nrecon_cache_path = "
                         << (folder_ / "cache").string() << "\n[pipeline:main]\npipeline = " << kind
                         << "-server\n[app:" << kind << "-server]\nuse = egg:swift#" << kind << "\n";
      start({std::string("swift-") + kind + "-server", conf(kind)}, kind);
    }
    write_proxy(memory);
    start({"swift-proxy-server", conf("proxy")}, "proxy");
    try {
      if (!wait_until_ready(processes_.back(), [&] {
            return plain_client(port_).get("/healthcheck", "Connection: close\r\n").status() == 200;
          }))
        throw std::runtime_error("it does not answer");
      settle();
    } catch (const std::runtime_error& e) {
      throw std::runtime_error(std::string("Swift does not start: ") + e.what() + "\n" +
                               run_program("cat " + folder_.path().string() + "/*.log").output);
    }
  }
  ~swift_server() {
    for (server_process& one : processes_) one.kill();  // the data go with the folder
  }

 private:
  [[nodiscard]] std::string conf(const std::string& kind) const {
    return (folder_ / (kind + "-server.conf")).string();
  }
  void start(std::vector<std::string> command, const std::string& name) {
    processes_.emplace_back(std::move(command), folder_.path(), folder_ / (name + ".log"));
  }
  void make_ring(const std::string& kind, std::uint16_t port) const {
    const std::string builder =
        "cd '" + folder_.path().string() + "' && swift-ring-builder " + kind + ".builder ";
    const program_result done =
        run_program(builder + "create 4 1 1 && " + builder + "add r1z1-127.0.0.1:" + std::to_string(port) +
                    "/d1 1 && " + builder + "rebalance");
    if (done.status != 0) throw std::runtime_error("swift-ring-builder fails: " + done.output);
  }
  /// What the configuration of each server begins with. Without workers of its own, a server is one process.
  [[nodiscard]] std::ofstream common(const std::string& kind, std::uint16_t port) const {
    std::ofstream file(conf(kind));
    file << "[DEFAULT]\nbind_ip = 127.0.0.1\nbind_port = " << port << "\nworkers = 0\nuser = " << user_
         << "\nswift_dir = " << folder_.path().string() << "\nlog_address = /nonexistent\n";
    return file;
  }
  void write_proxy(std::uint16_t memory) const {
    std::ofstream file = common("proxy", port_);
    file << "[pipeline:main]\n"
            "pipeline = catch_errors gatekeeper healthcheck proxy-logging cache listing_formats bulk s3api "
            "tempauth "
            "slo dlo versioned_writes symlink proxy-logging proxy-server\n"
            "[app:proxy-server]\nuse = egg:swift#proxy\nallow_account_management = true\n"
            "account_autocreate = true\n"
            "[filter:s3api]\nuse = egg:swift#s3api\ns3_acl = false\nlocation = us-east-1\n"
            "[filter:tempauth]\nuse = egg:swift#tempauth\nuser_test_tester = testing .admin\n"
            "[filter:cache]\nuse = egg:swift#memcache\nmemcache_servers = 127.0.0.1:"
         << memory
         << "\n[filter:versioned_writes]\nuse = egg:swift#versioned_writes\nallow_versioned_writes = true\n"
            "[filter:proxy-logging]\nuse = egg:swift#proxy_logging\n";
    for (const char* const one :
         {"catch_errors", "gatekeeper", "healthcheck", "listing_formats", "bulk", "slo", "dlo", "symlink"})
      file << "[filter:" << one << "]\nuse = egg:swift#" << one << "\n";
  }

  temp_dir folder_;
  std::string user_;
  std::list<server_process> processes_;
};

}  // namespace penstock_test
