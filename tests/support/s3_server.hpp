// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "support/external_program.hpp"
#include "support/server_process.hpp"
#include "support/sockets.hpp"
#include "support/temp_dir.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace penstock_test {

/// What every S3 server of the tests has: where it is, who may use it, and objects put there by boto3.
///
/// The members that call boto3 take a second each; to put many objects, put them together. They throw
/// std::runtime_error with its output. The environment of a client is `environment()`.
class s3_server {
 public:
  s3_server(const s3_server&) = delete;
  s3_server& operator=(const s3_server&) = delete;

  [[nodiscard]] std::uint16_t port() const noexcept { return port_; }
  [[nodiscard]] std::string endpoint() const { return "http://127.0.0.1:" + std::to_string(port_); }
  [[nodiscard]] const std::string& key() const noexcept { return key_; }
  [[nodiscard]] const std::string& secret() const noexcept { return secret_; }
  [[nodiscard]] std::string region() const { return "us-east-1"; }

  /// An object and its bytes.
  struct object {
    std::string key, bytes;
  };
  void put(const std::string& bucket, const std::string& key, std::string_view bytes) const {
    put(bucket, {{key, std::string(bytes)}});
  }
  void put(const std::string& bucket, const std::vector<object>& objects) const {
    std::string arguments = "put " + quoted(bucket);
    const temp_dir files;
    for (std::size_t i = 0; i < objects.size(); ++i) {
      const std::string file = (files / std::to_string(i)).string();
      std::ofstream(file, std::ios::binary) << objects[i].bytes;
      arguments += " " + quoted(objects[i].key) + " " + quoted(file);
    }
    (void)call(arguments);
  }
  [[nodiscard]] std::string get(const std::string& bucket, const std::string& key) const {
    const temp_dir files;
    const std::string file = (files / "object").string();
    (void)call("get " + quoted(bucket) + " " + quoted(key) + " " + quoted(file));
    return text_in(file);
  }
  /// The keys of a bucket, each with its line break.
  [[nodiscard]] std::string list(const std::string& bucket) const { return call("list " + quoted(bucket)); }

  /// The keys of uploads that have begun and not ended, each with its line break.
  [[nodiscard]] std::string uploads(const std::string& bucket) const {
    return call("uploads " + quoted(bucket));
  }

 protected:
  s3_server(std::string key, std::string secret) : key_(std::move(key)), secret_(std::move(secret)) {}
  ~s3_server() = default;

  /// Waits until the server answers boto3, whose first requests may come too early for it.
  void settle(std::chrono::seconds limit = std::chrono::seconds(60)) const {
    const auto end = std::chrono::steady_clock::now() + limit;
    for (;;) {
      try {
        return put("ready", "ready", "ready");
      } catch (const std::runtime_error&) {
        if (std::chrono::steady_clock::now() > end) throw;
      }
    }
  }

  std::uint16_t port_ = 0;

 private:
  /// ctest says where it is; a compiler's cache may have made this file's own name relative.
  [[nodiscard]] static std::filesystem::path support_folder() {
    const char* const named = std::getenv("PENSTOCK_TEST_SUPPORT");
    return named == nullptr ? std::filesystem::path(__FILE__).parent_path() : std::filesystem::path(named);
  }
  [[nodiscard]] static std::string quoted(const std::string& text) { return "'" + text + "'"; }
  [[nodiscard]] std::string client(const std::string& arguments) const {
    static const std::string python = python_for("-c 'import boto3'");
    const std::string script = (support_folder() / "s3_client.py").string();
    return "env -u http_proxy -u HTTP_PROXY -u AWS_PROFILE AWS_CONFIG_FILE=/dev/null AWS_ACCESS_KEY_ID=" +
           quoted(key_) + " AWS_SECRET_ACCESS_KEY=" + quoted(secret_) + " AWS_DEFAULT_REGION=" + region() +
           " " + python + " -B " + quoted(script) + " " + endpoint() + " " + arguments;
  }
  [[nodiscard]] std::string call(const std::string& arguments) const {
    const program_result done = run_program(client(arguments));
    if (done.status != 0) throw std::runtime_error("boto3 fails: " + done.output);
    return done.output;
  }

  friend class s3_putter;
  std::string key_, secret_;
};

/// A client that stays, for tests that put many objects: the others take a second for each call.
class s3_putter {
 public:
  explicit s3_putter(const s3_server& server)
      : pipe_(::popen(server.client("serve " + s3_server::quoted((folder_ / "answer").string())).c_str(),
                      "w")) {
    if (pipe_ == nullptr) throw std::runtime_error("boto3 does not start");
  }
  s3_putter(const s3_putter&) = delete;
  s3_putter& operator=(const s3_putter&) = delete;
  ~s3_putter() { ::pclose(pipe_); }

  /// Puts files; a pair is a key and a path, neither with a tab or a line break.
  void put(const std::string& bucket, const std::vector<std::pair<std::string, std::string>>& files) {
    std::string line = bucket;
    for (const auto& [key, path] : files) line += "\t" + key + "\t" + path;
    line += "\n";
    const std::filesystem::path answer = folder_ / "answer";
    std::filesystem::remove(answer);
    if (std::fwrite(line.data(), 1, line.size(), pipe_) != line.size() || std::fflush(pipe_) != 0)
      throw std::runtime_error("boto3 has ended");
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (!std::filesystem::exists(answer)) {
      if (std::chrono::steady_clock::now() > end) throw std::runtime_error("boto3 does not answer");
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    if (const std::string text = text_in(answer); text != "put")
      throw std::runtime_error("boto3 fails: " + text);
  }

 private:
  temp_dir folder_;
  std::FILE* pipe_;
};

/// Whether boto3 is here; see `have_program`.
[[nodiscard]] inline bool have_boto3() {
  return have_program("boto3", python_for("-c 'import boto3'") + " -c 'import boto3'");
}

}  // namespace penstock_test
